//! Deadlines: one task looks at all slots, and only when the earliest of them is due.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::Duration;

use consign_core_api::outcome::Transmission;
use consign_core_api::spi::{PublishReply, Refusal, SlotKey, Withdrawal};
use consign_core_api::time::Moment;
use consign_core_api::{Code, DestinationName, Failure, FailureCategory, MessageId};
use consign_policy::admission::Admission;
use tokio_util::sync::CancellationToken;

use super::resend::Due;
use super::word::{Claim, Phase};
use super::{NEVER, PublishSlab, Slot, lock, nanos, word};
use crate::codes;
use crate::core::OpenDestination;
use crate::shutdown::abandon;

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
///
/// However else it ends, with its runtime or by a panic, nobody would tell deadlines any more. So nothing new is taken
/// then, and what has no verdict gets one at once.
pub(crate) fn run_deadlines(
    slab: Arc<PublishSlab>,
    admission: Admission,
    stop: CancellationToken,
) -> impl Future<Output = ()> + Send {
    // Made here, not in the future: a runtime may drop it before its first poll.
    let watch = Watch { slab, admission, stop };
    async move { watch.run().await }
}

struct Watch {
    slab: Arc<PublishSlab>,
    admission: Admission,
    stop: CancellationToken,
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Who cancels it gives everything up himself, and may want the list.
        if !self.stop.is_cancelled() {
            abandon(&self.slab, &self.admission, &self.stop);
        }
    }
}

impl Watch {
    async fn run(&self) {
        let Self { slab, stop, .. } = self;
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
}

impl PublishSlab {
    /// Does what is due and returns the earliest time at which something is due next. O(slots ever used at once).
    fn expire(self: &Arc<Self>, now: Moment) -> u64 {
        let mut earliest = NEVER;
        self.each(|slot, key| {
            // Only a hint, since the slot may change hands meanwhile; whoever takes it reminds this task.
            let hint = slot.due.load(Ordering::SeqCst);
            let next = if hint > nanos(now) { hint } else { self.act(slot, key, now) };
            earliest = earliest.min(next);
        });
        earliest
    }

    fn act(self: &Arc<Self>, slot: &Slot, key: SlotKey, now: Moment) -> u64 {
        match self.due(slot, key, now) {
            Due::Nothing => NEVER,
            Due::At(due) => due,
            Due::Attempt(destination, request) => self.send_again(key, &destination, *request),
            Due::Verdict => {
                drop(self.give_up(slot, key, Reason::Deadline));
                NEVER
            }
        }
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
        let (destination, id) = {
            let cell = lock(&slot.cell);
            slot.word.phase(generation)?;
            let entry = cell.entry.as_ref()?;
            (Arc::clone(&entry.destination), entry.message.id().cloned())
        };
        let concluded = loop {
            match slot.word.phase(generation)? {
                Phase::Free | Phase::Resolved => return None,
                Phase::Queued => {
                    if let Claim::Won(_) = slot.word.claim(generation, Some(Phase::Queued)) {
                        // If the adapter still holds the completion, it drops it when `hand_over` tells it `false`.
                        break self.conclude(slot, key, true, None, || not_sent(reason));
                    }
                }
                Phase::HandedOver => {
                    let withdrawn = withdraw(&destination, key);
                    if let Claim::Won(_) = slot.word.claim(generation, Some(Phase::HandedOver)) {
                        let reply = if withdrawn {
                            PublishReply::Refused(Refusal::new(
                                Transmission::NotTransmitted,
                                not_sent(reason),
                            ))
                        } else {
                            PublishReply::Unknown(no_answer(reason))
                        };
                        break self.conclude(slot, key, !withdrawn, Some(reply), || not_sent(reason));
                    }
                    if withdrawn {
                        // Somebody else gave it up meanwhile, and waits for an answer that does not come any more.
                        self.late(slot, key, None);
                        return None;
                    }
                    // An answer of unknown end came meanwhile, and it waits for another attempt: look again.
                }
            }
        };
        let concluded = concluded?;
        wake(concluded.waker);
        Some(Unresolved { destination: destination.name().clone(), id, ambiguous: concluded.ambiguous })
    }
}

/// Asks the adapter for a publish back. A panic is no proof of anything, and must not end the task that watches all
/// deadlines.
fn withdraw(destination: &OpenDestination, key: SlotKey) -> bool {
    let answer = catch_unwind(AssertUnwindSafe(|| destination.handle().withdraw(key)));
    if answer.is_err() {
        tracing::error!(target: "consign", destination = %destination.name(), "an adapter panicked");
    }
    matches!(answer, Ok(Withdrawal::Withdrawn))
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
