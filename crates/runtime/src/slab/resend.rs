//! Another attempt at a publish of unknown end, where the broker stores a repeated id once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use consign_core_api::spi::{Completion, CompletionSink, PublishReply, PublishRequest, Reply, SlotKey};
use consign_core_api::time::Moment;
use consign_core_api::{Capability, DeliveryGuarantee, OrderingScope};

use super::cell::Entry;
use super::{NEVER, PublishSlab, Slot, lock, nanos, word};
use crate::core::OpenDestination;

/// The wait before the second attempt; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(50);
/// The most attempts at one publish.
const MOST_ATTEMPTS: u32 = 8;

impl PublishSlab {
    /// Takes note of an attempt of unknown end and schedules another, if that can only help. `false`: it cannot.
    pub(super) fn try_again_later(&self, slot: &Slot, generation: u32, reply: Option<&PublishReply>) -> bool {
        let now = self.now();
        let mut cell = lock(&slot.cell);
        let Some(entry) = cell.entry.as_mut() else { return false };
        let Some(at) = next_attempt(entry, now) else { return false };
        if !slot.word.requeue(generation) {
            return false;
        }
        entry.attempts.push(reply.cloned().unwrap_or_else(|| PublishReply::dropped(true)));
        (cell.held, cell.released) = (false, false);
        slot.due.store(nanos(at), Ordering::SeqCst);
        drop(cell);
        self.remind(nanos(at));
        true
    }

    /// Tells what is due in a slot. The slot may be another publish's by now: the key says whose turn it is.
    pub(super) fn due(&self, slot: &Slot, key: SlotKey, now: Moment) -> Due {
        let mut cell = lock(&slot.cell);
        // A slot changes hands only under this lock.
        let current = word::parts(key).is_some_and(|(generation, _)| slot.word.phase(generation).is_some());
        let Some(entry) = cell.entry.as_ref().filter(|_| current) else { return Due::Nothing };
        let deadline = nanos(entry.deadline);
        if deadline <= nanos(now) {
            slot.due.store(NEVER, Ordering::SeqCst);
            return Due::Verdict;
        }
        let due = slot.due.load(Ordering::SeqCst);
        if due > nanos(now) {
            return Due::At(due);
        }
        if cell.held {
            slot.due.store(deadline, Ordering::SeqCst);
            return Due::At(deadline);
        }
        let request = PublishRequest::again(entry.message.clone(), entry.deadline);
        let destination = Arc::clone(&entry.destination);
        cell.held = true;
        slot.due.store(deadline, Ordering::SeqCst);
        Due::Attempt(destination, Box::new(request))
    }

    /// Makes another attempt, and returns when to look again.
    pub(super) fn send_again(
        self: &Arc<Self>,
        key: SlotKey,
        destination: &OpenDestination,
        request: PublishRequest,
    ) -> u64 {
        let due = nanos(request.deadline);
        let sink: Arc<dyn CompletionSink<PublishReply>> = Arc::clone(self) as Arc<_>;
        let completion = Completion::new(sink, key);
        // A panic drops the completion, which is an answer; it must not end the task that watches all deadlines.
        let sent = catch_unwind(AssertUnwindSafe(|| destination.handle().publish(request, completion)));
        if sent.is_err() {
            tracing::error!(target: "consign", destination = %destination.name(), "an adapter panicked");
        }
        due
    }
}

/// What is due in a slot.
pub(super) enum Due {
    /// Nothing: it has its verdict, or belongs to another publish.
    Nothing,
    /// Nothing before that time.
    At(u64),
    /// Another attempt.
    Attempt(Arc<OpenDestination>, Box<PublishRequest>),
    /// The verdict.
    Verdict,
}

/// Tells when another attempt makes sense: the broker deduplicates by an id that the message has, the attempts stay
/// within its window and before the deadline, no order can suffer, and the profile does not forbid a second sending.
///
/// On an ordered destination a later message of the unit may have been handed over meanwhile, so none is made.
fn next_attempt(entry: &Entry, now: Moment) -> Option<Moment> {
    let destination = &entry.destination;
    let window = destination.capabilities.deduplication_window()?;
    let deduplicates = destination.capabilities.has(Capability::PublishDeduplication);
    let setup = destination.profile.setup();
    let allowed = setup.ordering == OrderingScope::None && setup.delivery == DeliveryGuarantee::AtLeastOnce;
    let attempts = entry.attempts.count() + 1;
    if !deduplicates || !allowed || entry.message.id().is_none() || attempts >= MOST_ATTEMPTS {
        return None;
    }
    let wait = FIRST_WAIT.saturating_mul(1 << entry.attempts.count().min(8));
    let at = now.after(wait);
    (at < entry.deadline && at < entry.started.after(window)).then_some(at)
}
