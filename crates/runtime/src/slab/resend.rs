//! Another attempt at a publish of unknown end, where the broker stores a repeated id once.

use std::sync::Arc;
use std::time::Duration;

use consign_core_api::spi::{Completion, CompletionSink, PublishReply, PublishRequest, Reply, SlotKey};
use consign_core_api::time::Moment;
use consign_core_api::{Capability, DeliveryGuarantee, OrderingScope};

use super::cell::Entry;
use super::{PublishSlab, Slot, lock, nanos};

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
        cell.held = false;
        drop(cell);
        self.schedule(slot, nanos(at));
        true
    }

    /// Makes another attempt if one is due, and returns when to look again; `None` if it is the deadline that is due.
    pub(super) fn send_again(self: &Arc<Self>, slot: &Slot, key: SlotKey, now: Moment) -> Option<u64> {
        let (destination, request) = {
            let mut cell = lock(&slot.cell);
            if cell.held {
                return None;
            }
            let entry = cell.entry.as_ref().filter(|entry| entry.deadline > now)?;
            let request = PublishRequest::again(entry.message.clone(), entry.deadline);
            let destination = Arc::clone(&entry.destination);
            cell.held = true;
            (destination, request)
        };
        let due = nanos(request.deadline);
        self.schedule(slot, due);
        let sink: Arc<dyn CompletionSink<PublishReply>> = Arc::clone(self) as Arc<_>;
        destination.handle().publish(request, Completion::new(sink, key));
        Some(due)
    }
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
