//! Reads a history once and lists its lies: linear in the number of records.

mod consuming;
mod lag;
mod lie;
mod order;
mod publish;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

pub use lie::{Lie, LieKind};

use super::history::{Event, Expects, History, Outcome, Run};
use consuming::Consuming;
use lag::Lags;
use order::Order;
use publish::Publish;

/// What a history shows.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Findings {
    /// What the run was; `None` where the history does not say.
    pub run: Option<Run>,
    /// What it is caught at.
    pub lies: Vec<Lie>,
    /// How much of what.
    pub counts: Counts,
    /// The time from call to verdict of each publish with one, in microseconds, ascending.
    pub times: Vec<u64>,
    /// The largest lag of the machine, in microseconds.
    pub worst_lag: u64,
}

/// How much of what a history holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Calls.
    pub published: u64,
    /// CONFIRMED.
    pub confirmed: u64,
    /// Of these, after more than one attempt.
    pub repeated: u64,
    /// REJECTED.
    pub rejected: u64,
    /// AMBIGUOUS, and at the broker.
    pub ambiguous_present: u64,
    /// AMBIGUOUS, and not at the broker.
    pub ambiguous_absent: u64,
    /// Calls of which the caller dropped the future.
    pub dropped: u64,
    /// Of these, never sent and told to nobody.
    pub never_sent: u64,
    /// Copies at the broker beyond the first of each message.
    pub duplicates: u64,
    /// Answers after the verdict.
    pub late_answers: u64,
    /// Settlements with proof.
    pub settled: u64,
    /// Settlements of unknown end.
    pub settlement_unknown: u64,
    /// Settlements as processed after which the message was delivered again.
    pub processed_redelivered: u64,
    /// Deliveries that came after another of the same message.
    pub redelivered: u64,
    /// Messages that are not CONFIRMED and were first handled after a later one of their key.
    pub unconfirmed_out_of_order: u64,
    /// Faults.
    pub faults: u64,
}

impl Findings {
    /// Returns how many ended AMBIGUOUS.
    #[must_use]
    pub const fn ambiguous(&self) -> u64 {
        self.counts.ambiguous_present + self.counts.ambiguous_absent
    }

    /// Returns the time from call to verdict that this share of all publishes did not exceed, in microseconds; zero
    /// without any.
    #[must_use]
    pub fn time(&self, percent: usize) -> u64 {
        let last = self.times.len().saturating_sub(1);
        self.times.get(last * percent.min(100) / 100).copied().unwrap_or_default()
    }
}

/// Holds what was said against what is there.
#[must_use]
pub fn check(history: &History) -> Findings {
    let mut findings = Findings::default();
    let mut publishes: HashMap<&str, Publish<'_>> = HashMap::new();
    let mut consuming = Consuming::default();
    let mut order = Order::default();
    let mut lags = Lags::default();
    let mut end = End::default();
    let Findings { run, lies, counts, times, worst_lag } = &mut findings;
    for record in &history.0 {
        let at = record.at;
        match &record.event {
            Event::Run(is) => *run = Some(is.clone()),
            Event::Call { id, destination, key, n, awaited, behind } => {
                counts.published += 1;
                if publishes
                    .insert(id, Publish::called(at, *behind, destination, key, *n, *awaited))
                    .is_some()
                {
                    lies.push(Lie::new(LieKind::Incomplete, Some(id), "one id was used for two calls"));
                }
            }
            Event::Dropped { id, .. } => {
                counts.dropped += 1;
                on(&mut publishes, lies, id, |publish| publish.dropped = true);
            }
            Event::Sent { id } => on(&mut publishes, lies, id, |publish| publish.sent = true),
            Event::Told { id, to, verdict } => {
                on(&mut publishes, lies, id, |publish| publish.tell(at, *to, verdict));
            }
            Event::Late { .. } => counts.late_answers += 1,
            Event::Delivered(delivery) => consuming.delivered(delivery, counts, lies),
            Event::Handled { delivery, key, n } => {
                consuming.handled(delivery);
                order.handled(&delivery.group, key, *n, &delivery.id);
                on(&mut publishes, lies, &delivery.id, |publish| publish.seen(key, *n, None));
            }
            Event::Settled { delivery, level } => consuming.settled(delivery, *level, counts, lies),
            Event::Fault { .. } => counts.faults += 1,
            Event::Deleted { id } => on(&mut publishes, lies, id, |publish| publish.deleted = true),
            Event::Lag { micros } => lags.add(at, *micros),
            Event::Permits { in_flight, bytes } => {
                end.permits = true;
                if (*in_flight, *bytes) != (0, 0) {
                    let text = format!("{in_flight} publishes and {bytes} bytes are still charged");
                    lies.push(Lie::new(LieKind::PermitsNotBack, None, text));
                }
            }
            Event::Drained { group, destination } => consuming.drained(group, destination),
            Event::Found { id, key, n, position } => {
                end.found += 1;
                on(&mut publishes, lies, id, |publish| publish.seen(key, *n, Some(position)));
            }
            Event::ReadBack { count } => end.read_back = Some(end.read_back.unwrap_or(0) + count),
        }
    }
    *worst_lag = lags.worst();
    end.check(run.as_ref(), lies);
    for (id, publish) in &publishes {
        publish.check(id, run.as_ref(), &lags, counts, lies);
        if publish.outcome() == Some(Outcome::Confirmed) && !publish.deleted {
            consuming.check_handled(id, publish.destination, lies);
        }
        times.extend(publish.time());
    }
    times.sort_unstable();
    if run.as_ref().is_some_and(|run| run.ordered) {
        let confirmed = |id: &str| publishes.get(id).is_some_and(|p| p.outcome() == Some(Outcome::Confirmed));
        order.check(confirmed, counts, lies);
    }
    if let Some(missing) = run.as_ref().and_then(|run| nothing_proved(run.expects, counts)) {
        lies.push(Lie::new(LieKind::ProvedNothing, None, missing));
    }
    lies.sort_by(|a, b| (a.kind, &a.id).cmp(&(b.kind, &b.id)));
    findings
}

/// Does something to a publish that must have been called.
fn on<'h>(
    publishes: &mut HashMap<&'h str, Publish<'h>>,
    lies: &mut Vec<Lie>,
    id: &str,
    act: impl FnOnce(&mut Publish<'h>),
) {
    match publishes.get_mut(id) {
        Some(publish) => act(publish),
        None => lies.push(Lie::new(LieKind::FromNowhere, Some(id), "no such publish was called")),
    }
}

fn nothing_proved(expects: Expects, counts: &Counts) -> Option<&'static str> {
    let ambiguous = counts.ambiguous_present + counts.ambiguous_absent;
    match expects {
        Expects::Ambiguous if ambiguous == 0 => Some("no publish ended AMBIGUOUS"),
        Expects::Dropped if counts.dropped == counts.never_sent => {
            Some("no dropped future had sent anything")
        }
        Expects::SettlementUnknown if counts.settlement_unknown + counts.redelivered == 0 => {
            Some("no settlement had an unknown end, and nothing was delivered again")
        }
        _ => None,
    }
}

/// What has to stand in every history.
#[derive(Default)]
struct End {
    permits: bool,
    found: u64,
    read_back: Option<u64>,
}

impl End {
    fn check(&self, run: Option<&Run>, lies: &mut Vec<Lie>) {
        let mut lacks = |text: &str| lies.push(Lie::new(LieKind::Incomplete, None, text));
        if run.is_none() {
            lacks("it does not say what the run was");
        }
        if !self.permits {
            lacks("it does not say what is charged in the end");
        }
        if self.read_back != Some(self.found) {
            lacks("the broker was not read to its end");
        }
    }
}
