//! One publish, and all that is known of it.

use super::super::history::{Outcome, Run, Told, Verdict};
use super::lag::Lags;
use super::{Counts, Lie, LieKind};

/// What is known of a publish.
#[derive(Debug)]
pub(super) struct Publish<'h> {
    called: u64,
    behind: u64,
    pub(super) destination: &'h str,
    key: &'h str,
    n: u64,
    awaited: bool,
    pub(super) dropped: bool,
    pub(super) sent: bool,
    pub(super) deleted: bool,
    caller: Option<(u64, &'h Verdict)>,
    observer: Option<(u64, &'h Verdict)>,
    told_again: bool,
    altered: bool,
    handled: bool,
    found: Vec<&'h str>,
}

impl<'h> Publish<'h> {
    pub(super) const fn called(
        at: u64,
        behind: u64,
        destination: &'h str,
        key: &'h str,
        n: u64,
        awaited: bool,
    ) -> Self {
        Self {
            called: at,
            behind,
            destination,
            key,
            n,
            awaited,
            dropped: false,
            sent: false,
            deleted: false,
            caller: None,
            observer: None,
            told_again: false,
            altered: false,
            handled: false,
            found: Vec::new(),
        }
    }

    pub(super) const fn tell(&mut self, at: u64, to: Told, verdict: &'h Verdict) {
        let told = match to {
            Told::Caller => &mut self.caller,
            Told::Observer => &mut self.observer,
        };
        if told.is_some() {
            self.told_again = true;
        } else {
            *told = Some((at, verdict));
        }
    }

    /// It was found at a position, or handled.
    pub(super) fn seen(&mut self, key: &str, n: u64, position: Option<&'h str>) {
        self.altered |= (key, n) != (self.key, self.n);
        match position {
            Some(position) => self.found.push(position),
            None => self.handled = true,
        }
    }

    /// The verdict, as the observer was told, else as the caller was.
    fn verdict(&self) -> Option<(u64, &'h Verdict)> {
        self.observer.or(self.caller)
    }

    pub(super) fn outcome(&self) -> Option<Outcome> {
        self.verdict().map(|(_, verdict)| verdict.outcome)
    }

    pub(super) fn time(&self) -> Option<u64> {
        self.verdict().map(|(at, _)| at.saturating_sub(self.called))
    }

    pub(super) fn check(
        &self,
        id: &str,
        run: Option<&Run>,
        lags: &Lags,
        counts: &mut Counts,
        lies: &mut Vec<Lie>,
    ) {
        let mut lie = |kind, text: String| lies.push(Lie::new(kind, Some(id), text));
        if self.altered {
            lie(LieKind::Altered, format!("published with key {:?} and number {}", self.key, self.n));
        }
        let more = self.found.len().saturating_sub(1);
        counts.duplicates += more as u64;
        let present = !self.found.is_empty() || self.handled;
        self.check_told(&mut lie);
        match self.verdict().map(|(_, verdict)| verdict) {
            None if self.sent || !self.dropped => lie(LieKind::NoOutcome, "it has no verdict".into()),
            None => {
                counts.never_sent += 1;
                if present {
                    lie(LieKind::UntoldPresent, "dropped, never sent, and at the broker".into());
                }
            }
            Some(verdict) => match verdict.outcome {
                Outcome::Confirmed => {
                    counts.confirmed += 1;
                    counts.repeated += u64::from(verdict.attempts > Some(1));
                    if !self.deleted {
                        self.check_confirmed(verdict, &mut lie);
                    }
                }
                Outcome::Rejected => {
                    counts.rejected += 1;
                    if present {
                        let code = verdict.code.as_deref().unwrap_or("no code");
                        let text = format!("{code}; found at {:?}, handled: {}", self.found, self.handled);
                        lie(LieKind::RejectedPresent, text);
                    }
                }
                Outcome::Ambiguous if present => counts.ambiguous_present += 1,
                Outcome::Ambiguous => counts.ambiguous_absent += 1,
            },
        }
        if let Some(run) = run {
            self.check_deadline(run, lags, &mut lie);
        }
    }

    fn check_told(&self, lie: &mut impl FnMut(LieKind, String)) {
        if self.told_again {
            lie(LieKind::TwoOutcomes, "somebody was told twice".into());
        }
        match (self.caller, self.observer) {
            (Some((_, caller)), Some((_, observer))) if caller != observer => {
                lie(LieKind::TwoOutcomes, format!("caller {caller:?}, observer {observer:?}"));
            }
            (None, Some(_)) if !self.dropped => {
                lie(LieKind::NoOutcome, "the observer was told, and the caller was not".into());
            }
            (Some(_), None) => {
                lie(LieKind::NoOutcome, "the caller was told, and the observer was not".into());
            }
            _ => {}
        }
    }

    fn check_confirmed(&self, verdict: &Verdict, lie: &mut impl FnMut(LieKind, String)) {
        if self.found.is_empty() {
            lie(LieKind::ConfirmedMissing, format!("confirmed at {:?}", verdict.position));
        } else if let Some(position) = &verdict.position
            && !self.found.contains(&position.as_str())
        {
            lie(LieKind::ConfirmedElsewhere, format!("confirmed at {position}, found at {:?}", self.found));
        }
        if verdict.once && self.found.len() > 1 {
            lie(LieKind::ConfirmedTwice, format!("said to be there once, found at {:?}", self.found));
        }
    }

    fn check_deadline(&self, run: &Run, lags: &Lags, lie: &mut impl FnMut(LieKind, String)) {
        let due = self.called.saturating_add(self.behind).saturating_add(run.deadline);
        let caller = self.caller.filter(|_| self.awaited);
        for (who, (at, _)) in [("observer", self.observer), ("caller", caller)]
            .into_iter()
            .filter_map(|(who, told)| Some((who, told?)))
        {
            let late = at.saturating_sub(due);
            if late > run.tolerance {
                let lag = lags.between(due, at);
                if late > run.tolerance.saturating_add(lag) {
                    let text =
                        format!("{who} told {late} us after the deadline, the machine's lag was {lag} us");
                    lie(LieKind::Late, text);
                }
            }
        }
    }
}
