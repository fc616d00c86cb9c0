//! The adapters' end of a slot: completions.

use std::task::Waker;

use consign_core_api::outcome::EvidenceDemand;
use consign_core_api::spi::{Acceptance, CompletionSink, Confirm, PublishReply, Reply, SlotKey};
use consign_core_api::{Failure, FailureCategory};

use super::cell::{Entry, Residue};
use super::word::{self, Claim, Phase};
use super::{PublishSlab, Slot, lock};
use crate::codes;
use crate::core::OpenDestination;
use crate::observer::Observed;

impl CompletionSink<PublishReply> for PublishSlab {
    fn hand_over(&self, key: SlotKey) -> bool {
        self.find(key).is_some_and(|(slot, generation)| slot.word.hand_over(generation))
    }

    fn resolve(&self, batch: &mut Vec<(SlotKey, PublishReply)>) {
        let mut woken: Option<Waker> = None;
        for (key, reply) in batch.drain(..) {
            let Some(waker) = self.answer(key, Some(reply)) else { continue };
            // One task that waits for many outcomes registers one waker; it is woken once per batch.
            match &woken {
                Some(last) if last.will_wake(&waker) => {}
                _ => {
                    if let Some(last) = woken.replace(waker) {
                        last.wake();
                    }
                }
            }
        }
        if let Some(last) = woken {
            last.wake();
        }
    }

    fn resolve_one(&self, key: SlotKey, reply: PublishReply) {
        if let Some(waker) = self.answer(key, Some(reply)) {
            waker.wake();
        }
    }

    fn released(&self, key: SlotKey) {
        let Some((slot, generation)) = self.find(key) else { return };
        let residue = {
            let mut cell = lock(&slot.cell);
            if slot.word.phase(generation).is_none() {
                return;
            }
            if !cell.concluded {
                // An answer is still owed; if none comes, the permit goes with the verdict.
                cell.released = true;
                return;
            }
            cell.held = false;
            let kept = cell.residue.take();
            (kept, self.free_if_done(slot, key, &mut cell))
        };
        drop(residue);
    }

    fn dropped(&self, key: SlotKey) {
        if let Some(waker) = self.answer(key, None) {
            waker.wake();
        }
    }
}

impl PublishSlab {
    /// Takes an adapter's answer; `None` is a completion dropped without one. Returns whom to wake.
    fn answer(&self, key: SlotKey, reply: Option<PublishReply>) -> Option<Waker> {
        let (slot, generation) = self.find(key)?;
        if !matches!(reply, Some(PublishReply::Accepted(_) | PublishReply::Refused(_)))
            && self.try_again_later(slot, generation, reply.as_ref())
        {
            return None;
        }
        match slot.word.claim(generation, None) {
            Claim::Won(before) => {
                let reply = reply.unwrap_or_else(|| PublishReply::dropped(before == Phase::HandedOver));
                self.conclude(slot, key, false, Some(reply), never_sent)?.waker
            }
            Claim::Late => {
                self.late(slot, key, reply.as_ref());
                None
            }
            Claim::Stale => {
                if let Some(reply) = &reply {
                    self.observers.tell(&Observed::LateResolution { destination: None, id: None, reply });
                }
                None
            }
        }
    }

    /// Gives the verdict. Only the winner of the claim calls it, once. `held`: the adapter still owes an answer.
    pub(super) fn conclude(
        &self,
        slot: &Slot,
        key: SlotKey,
        held: bool,
        reply: Option<PublishReply>,
        never_sent: impl FnOnce() -> Failure,
    ) -> Option<Concluded> {
        let mut entry = lock(&slot.cell).entry.take()?;
        if let Some(reply) = reply {
            entry.attempts.push(checked(reply, &entry.destination));
        }
        let elapsed = self.now().since(entry.started);
        let id = entry.message.id().cloned();
        entry.permit.verdict();
        drop(entry.turn);
        let outcome = entry.attempts.verdict(elapsed, Some(entry.message), never_sent);
        self.observers.tell(&Observed::Outcome {
            destination: entry.destination.name(),
            id: id.as_ref(),
            outcome: &outcome,
        });
        let ambiguous = outcome.is_ambiguous();
        let Entry { destination, permit, .. } = entry;
        let (unwanted, freed, waker) = {
            let mut cell = lock(&slot.cell);
            cell.concluded = true;
            // An answer or a release that came before this has ended the hold already.
            cell.held &= held && !cell.released;
            let mut unwanted = (None, None);
            if cell.wanted {
                cell.outcome = Some(outcome);
            } else {
                unwanted.0 = Some(outcome);
            }
            if cell.held {
                cell.residue = Some(Residue { destination: destination.name().clone(), id, _permit: permit });
            } else {
                unwanted.1 = Some(permit);
            }
            let waker = cell.waker.take();
            (unwanted, self.free_if_done(slot, key, &mut cell), waker)
        };
        drop((unwanted, freed));
        Some(Concluded { waker, ambiguous })
    }

    /// Takes note that no answer will come any more after the verdict, which stands, and frees what was held for it.
    pub(super) fn late(&self, slot: &Slot, key: SlotKey, reply: Option<&PublishReply>) {
        let (residue, freed) = {
            let mut cell = lock(&slot.cell);
            // A slot changes hands only under this lock; it may have done so since the verdict was seen.
            if word::parts(key).is_some_and(|(generation, _)| slot.word.phase(generation).is_some()) {
                cell.held = false;
                (cell.residue.take(), self.free_if_done(slot, key, &mut cell))
            } else {
                (None, None)
            }
        };
        if let Some(reply) = reply {
            let (destination, id) = residue
                .as_ref()
                .map_or((None, None), |residue| (Some(&residue.destination), residue.id.as_ref()));
            self.observers.tell(&Observed::LateResolution { destination, id, reply });
        }
        drop((residue, freed));
    }
}

/// What came of giving a verdict.
pub(super) struct Concluded {
    /// Who waits for it.
    pub(super) waker: Option<Waker>,
    pub(super) ambiguous: bool,
}

fn never_sent() -> Failure {
    Failure::new(FailureCategory::TransientInfrastructure, codes::SHUT_DOWN_BEFORE_TRANSMISSION, "never sent")
}

/// Takes back what an acceptance would claim beyond the profile: a confirmation nobody asked for, or weaker evidence
/// than demanded.
fn checked(reply: PublishReply, destination: &OpenDestination) -> PublishReply {
    let PublishReply::Accepted(acceptance) = reply else { return reply };
    let publish = &destination.profile().setup().publish;
    if publish.confirm == Confirm::None {
        return PublishReply::Unknown(Failure::new(
            FailureCategory::TransientInfrastructure,
            codes::CONFIRMATION_NOT_REQUESTED,
            "the profile asks for no confirmation",
        ));
    }
    if publish.evidence == EvidenceDemand::default() {
        return PublishReply::Accepted(acceptance);
    }
    weigh(acceptance, &publish.evidence)
}

fn weigh(acceptance: Acceptance, demand: &EvidenceDemand) -> PublishReply {
    if acceptance.evidence().satisfies(demand) {
        return PublishReply::Accepted(acceptance);
    }
    PublishReply::Unknown(Failure::new(
        FailureCategory::TransientInfrastructure,
        codes::EVIDENCE_BELOW_DEMAND,
        format!("accepted with {}, but the profile demands {demand}", acceptance.evidence()),
    ))
}
