//! Deadlines: one task looks at all slots, and only when the earliest of them is due.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::Duration;

use consign_core_api::outcome::Transmission;
use consign_core_api::spi::{PublishReply, Refusal, SlotKey, Withdrawal};
use consign_core_api::time::Moment;
use consign_core_api::{Code, DestinationName, Failure, FailureCategory, MessageId};

use super::word::{Claim, Phase};
use super::{NEVER, PublishSlab, Slot, lock, nanos, word};
use crate::codes;

/// Why the runtime gives a verdict itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    Deadline,
    ShutDown,
}

/// A publish that the runtime had to give up without an answer.
#[derive(Debug, Clone)]
pub(crate) struct Unresolved {
    pub(crate) destination: DestinationName,
    pub(crate) id: Option<MessageId>,
    /// Handed over, hence AMBIGUOUS; else REJECTED.
    pub(crate) ambiguous: bool,
}

/// Runs until `stop` is done.
pub(crate) async fn run_deadlines(slab: Arc<PublishSlab>, stop: tokio_util::sync::CancellationToken) {
    loop {
        // While this says `NEVER`, every insertion notifies, so that none is missed between looking and sleeping.
        slab.next_wake.store(NEVER, Ordering::SeqCst);
        let earliest = slab.expire(slab.now());
        slab.next_wake.store(earliest, Ordering::SeqCst);
        let due = async {
            if earliest == NEVER {
                std::future::pending::<()>().await;
            } else {
                let moment = Moment::from_start(Duration::from_nanos(earliest));
                tokio::time::sleep_until(slab.clock().instant(moment)).await;
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = slab.wake.notified() => {}
            () = due => {}
        }
    }
}

impl PublishSlab {
    /// Gives the verdict on everything that is due and returns the earliest deadline left. O(slots ever used at once).
    fn expire(self: &Arc<Self>, now: Moment) -> u64 {
        let mut earliest = NEVER;
        self.each(|slot, key| {
            let due = slot.due.load(Ordering::SeqCst);
            if due > nanos(now) {
                earliest = earliest.min(due);
            } else if slot.due.compare_exchange(due, NEVER, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                match self.send_again(slot, key, now) {
                    Some(next) => earliest = earliest.min(next),
                    None => drop(self.give_up(slot, key, Reason::Deadline)),
                }
            }
        });
        earliest
    }

    /// Gives up everything that has no verdict yet, and lists it.
    pub(crate) fn give_up_all(&self, reason: Reason) -> Vec<Unresolved> {
        let mut all = Vec::new();
        self.each(|slot, key| all.extend(self.give_up(slot, key, reason)));
        all
    }

    fn each(&self, mut look: impl FnMut(&Slot, SlotKey)) {
        let used = lock(&self.free).fresh;
        for index in 0..used {
            let Some(slot) = self.slot(index) else { continue };
            let (generation, phase) = slot.word.load();
            if matches!(phase, Phase::Queued | Phase::HandedOver) {
                look(slot, word::key(generation, index));
            }
        }
    }

    fn give_up(&self, slot: &Slot, key: SlotKey, reason: Reason) -> Option<Unresolved> {
        let (generation, _) = word::parts(key)?;
        let entry = {
            let cell = lock(&slot.cell);
            let entry = cell.entry.as_ref()?;
            (Arc::clone(&entry.destination), entry.message.id().cloned(), entry.attempts.is_unknown())
        };
        let (destination, id, before) = entry;
        let unresolved = |ambiguous| Unresolved { destination: destination.name().clone(), id, ambiguous };
        if let Claim::Won(_) = slot.word.claim(generation, Some(Phase::Queued)) {
            // If the adapter still holds the completion, it drops it when `hand_over` tells it `false`.
            wake(self.conclude(slot, key, true, None, || not_sent(reason)));
            return Some(unresolved(before));
        }
        let withdrawn = destination.handle().withdraw(key) == Withdrawal::Withdrawn;
        match slot.word.claim(generation, Some(Phase::HandedOver)) {
            Claim::Won(_) if withdrawn => {
                let reply =
                    PublishReply::Refused(Refusal::new(Transmission::NotTransmitted, not_sent(reason)));
                wake(self.conclude(slot, key, false, Some(reply), || not_sent(reason)));
                Some(unresolved(before))
            }
            Claim::Won(_) => {
                let reply = PublishReply::Unknown(no_answer(reason));
                wake(self.conclude(slot, key, true, Some(reply), || not_sent(reason)));
                Some(unresolved(true))
            }
            Claim::Late | Claim::Stale => None,
        }
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

fn transient(code: Code, message: &'static str) -> Failure {
    Failure::new(FailureCategory::TransientInfrastructure, code, message)
}

fn not_sent(reason: Reason) -> Failure {
    match reason {
        Reason::Deadline => {
            transient(codes::DEADLINE_BEFORE_TRANSMISSION, "the deadline passed before the message was sent")
        }
        Reason::ShutDown => transient(
            codes::SHUT_DOWN_BEFORE_TRANSMISSION,
            "the library shut down before the message was sent",
        ),
    }
}

fn no_answer(reason: Reason) -> Failure {
    match reason {
        Reason::Deadline => {
            transient(codes::CONFIRMATION_TIMED_OUT, "the broker did not answer by the deadline")
        }
        Reason::ShutDown => transient(codes::SHUT_DOWN, "the library shut down before the broker answered"),
    }
}
