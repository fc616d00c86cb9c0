//! What happened during a case: cases wait for it, and it is printed when they fail.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use consign_core_api::spi::PublishReply;
use consign_core_api::{
    Code, DestinationName, MessageId, PublishOutcome, SettlementLevel, SettlementOutcome,
};
use consign_runtime::observer::DeliveryInfo;
use consign_runtime::{Observed, Observer};
use tokio::sync::watch;

/// The most events that are kept; later ones are counted.
const KEPT: usize = 20_000;
/// How many of the first and of the last events a failed case prints.
const SHOWN: (usize, usize) = (60, 240);

/// The events of one case, in order.
#[derive(Debug)]
pub struct History {
    inner: Mutex<Inner>,
    changed: watch::Sender<usize>,
    started: Instant,
}

#[derive(Debug, Default)]
struct Inner {
    events: Vec<Happened>,
    more: usize,
}

/// Something that happened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Happened {
    /// What.
    pub what: What,
    /// The destination, where it is one destination's affair.
    pub destination: Option<DestinationName>,
    /// The message, where it is one message's affair and has an id.
    pub id: Option<MessageId>,
    /// Everything, for people.
    pub line: String,
}

/// The kinds of what happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum What {
    /// A remark of the case's own.
    Note,
    /// A publish was given to its adapter.
    Sent,
    /// A publish ended CONFIRMED.
    Confirmed,
    /// A publish ended REJECTED.
    Rejected(Code),
    /// A publish ended AMBIGUOUS.
    Ambiguous(Code),
    /// An answer came after the verdict: whether it was an acceptance.
    Late(bool),
    /// A delivery came.
    Received,
    /// A delivery was passed over.
    Filtered,
    /// A handler failed.
    HandlerFailed(Code),
    /// A delivery was settled.
    Settled(SettlementLevel),
    /// A settlement has an unknown end.
    SettlementUnknown(Code),
    /// A failed message is tried again.
    Retried,
    /// A copy in the dead letter is confirmed.
    DeadLettered(Code),
    /// A message was discarded.
    Discarded(Code),
    /// An unprocessed delivery was given back.
    Released,
    /// A unit stands still.
    Halted(Code),
    /// A stream of deliveries broke.
    Interrupted,
    /// A unit was assigned, is being revoked or is lost.
    Assignment(&'static str),
    /// Something else.
    Other,
}

impl Default for History {
    fn default() -> Self {
        Self { inner: Mutex::default(), changed: watch::Sender::new(0), started: Instant::now() }
    }
}

impl History {
    /// Adds a line of the case's own.
    pub fn note(&self, line: impl Into<String>) {
        self.add(Happened { what: What::Note, destination: None, id: None, line: line.into() });
    }

    fn add(&self, mut event: Happened) {
        event.line = format!("{:>9.3?} {}", self.started.elapsed(), event.line);
        {
            let mut inner = self.lock();
            if inner.events.len() < KEPT {
                inner.events.push(event);
            } else {
                inner.more += 1;
            }
        }
        self.changed.send_modify(|count| *count += 1);
    }

    /// Counts what is like this.
    #[must_use]
    pub fn count(&self, like: impl Fn(&Happened) -> bool) -> usize {
        self.lock().events.iter().filter(|event| like(event)).count()
    }

    /// Waits, without a bound of its own, until `find` finds something.
    pub async fn until<T>(&self, mut find: impl FnMut(&[Happened]) -> Option<T>) -> T {
        let mut changed = self.changed.subscribe();
        loop {
            changed.mark_unchanged();
            if let Some(found) = find(&self.lock().events) {
                return found;
            }
            // The sender is `self`, so the channel is open.
            let _ = changed.changed().await;
        }
    }

    /// Returns the lines to print, the middle of a long history left out.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let inner = self.lock();
        let lines = || inner.events.iter().map(|event| event.line.clone());
        let (first, last) = SHOWN;
        let mut all: Vec<_> = if inner.events.len() <= first + last {
            lines().collect()
        } else {
            let left_out = inner.events.len() - first - last;
            let mut some: Vec<_> = lines().take(first).collect();
            some.push(format!("… {left_out} more …"));
            some.extend(lines().skip(first + left_out));
            some
        };
        if inner.more > 0 {
            all.push(format!("… and {} more", inner.more));
        }
        all
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Happened {
    /// Tells whether it is of this kind.
    #[must_use]
    pub fn is(&self, what: What) -> bool {
        self.what == what
    }

    /// Tells whether it happened at this destination.
    #[must_use]
    pub fn at(&self, destination: &str) -> bool {
        self.destination.as_ref().is_some_and(|name| name.as_str() == destination)
    }

    /// Tells whether it is a settlement, proven.
    #[must_use]
    pub const fn is_settled(&self) -> bool {
        matches!(self.what, What::Settled(_))
    }
}

impl fmt::Display for Happened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

impl Observer for History {
    fn observe(&self, event: &Observed<'_>) {
        let of = |delivery: &DeliveryInfo<'_>| (Some(delivery.destination.clone()), delivery.id.cloned());
        let (what, (destination, id)) = match event {
            // Each is followed by its outcome.
            Observed::Admitted { .. } => return,
            Observed::Sent { destination, id } => (What::Sent, (Some((*destination).clone()), id.cloned())),
            Observed::Outcome { destination, id, outcome } => {
                let what = match outcome {
                    PublishOutcome::Confirmed(_) => What::Confirmed,
                    PublishOutcome::Rejected(rejection) => What::Rejected(rejection.failure().code()),
                    PublishOutcome::Ambiguous(ambiguity) => What::Ambiguous(ambiguity.failure().code()),
                };
                (what, (Some((*destination).clone()), id.cloned()))
            }
            Observed::LateResolution { destination, id, reply } => {
                let accepted = matches!(reply, PublishReply::Accepted(_));
                (What::Late(accepted), (destination.cloned(), id.cloned()))
            }
            Observed::Received { delivery } => (What::Received, of(delivery)),
            Observed::Filtered { delivery, .. } => (What::Filtered, of(delivery)),
            Observed::HandlerFailed { delivery, failure, .. } => {
                (What::HandlerFailed(failure.code()), of(delivery))
            }
            Observed::Settled { delivery, outcome } => {
                let what = match outcome {
                    SettlementOutcome::Settled(evidence) => What::Settled(evidence.level()),
                    SettlementOutcome::Unknown(unknown) => What::SettlementUnknown(unknown.failure().code()),
                };
                (what, of(delivery))
            }
            Observed::Retried { delivery, .. } => (What::Retried, of(delivery)),
            Observed::DeadLettered { delivery, failure, .. } => {
                (What::DeadLettered(failure.code()), of(delivery))
            }
            Observed::Discarded { delivery, failure } => (What::Discarded(failure.code()), of(delivery)),
            Observed::Released { delivery } => (What::Released, of(delivery)),
            Observed::Halted { delivery, failure } => (What::Halted(failure.code()), of(delivery)),
            Observed::Interrupted { destination, .. } => {
                (What::Interrupted, (Some((*destination).clone()), None))
            }
            Observed::Assignment { destination, what, .. } => {
                (What::Assignment(what), (Some((*destination).clone()), None))
            }
            _ => (What::Other, (None, None)),
        };
        self.add(Happened { what, destination, id, line: format!("{event:?}") });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_history_is_printed_without_its_middle() {
        let history = History::default();
        (0..1000).for_each(|n| history.note(format!("line {n}")));
        let lines = history.lines();
        assert_eq!(lines.len(), SHOWN.0 + 1 + SHOWN.1);
        assert!(lines[0].ends_with("line 0") && lines[lines.len() - 1].ends_with("line 999"));
        assert!(lines[SHOWN.0].contains("700 more"));
    }

    #[tokio::test]
    async fn a_wait_sees_what_happened_before_and_what_happens_later() {
        let history = std::sync::Arc::new(History::default());
        history.note("one");
        let waiting = tokio::spawn({
            let history = std::sync::Arc::clone(&history);
            async move { history.until(|events| (events.len() == 2).then_some(events.len())).await }
        });
        history.note("two");
        assert_eq!(waiting.await.unwrap(), 2);
    }
}
