//! Settling: applied under the destination's lock, answered before the call returns.
//!
//! A second settlement of one delivery is SETTLEMENT_UNKNOWN, `DELIVERY_NOT_OUTSTANDING`, and without effect: the
//! broker keeps no memory of who settled what, so it proves nothing to the second.

use std::sync::Arc;
use std::time::Duration;

use consign_core_api::settlement::state::SettlePermit;
use consign_core_api::spi::{Completion, DeliveryToken, SettlementReply, Settler, UnitId};
use consign_core_api::time::LONGEST;
use tokio::time::Instant;

use crate::broker::{ConnectionState, DestinationState, Faults, Inner, MemberId, WakeList};
use crate::outcome::{self, Cut};
use crate::script::SettleFault;

/// The settlement side of one member.
#[derive(Debug)]
pub(crate) struct InMemorySettler {
    pub(crate) connection: Arc<ConnectionState>,
    pub(crate) state: Arc<DestinationState>,
    pub(crate) group: usize,
    pub(crate) member: MemberId,
}

impl InMemorySettler {
    /// Does something to a delivery and answers; where `act` returns `None`, no answer comes.
    fn answer(
        &self,
        done: Completion<SettlementReply>,
        act: impl FnOnce(&mut Inner, Instant, &mut WakeList) -> Option<SettlementReply>,
    ) {
        if !done.hand_over() {
            return;
        }
        let mut wakes = WakeList::default();
        let mut inner = self.state.lock();
        let reply = if inner.switches.down {
            Some(Cut::Down.settlement())
        } else {
            act(&mut inner, Instant::now(), &mut wakes)
        };
        let answer = match reply {
            Some(reply) => Some((done, reply)),
            None => {
                let oldest = inner.withheld.silence_settlement(self.connection.id, done);
                oldest.map(|oldest| (oldest, Cut::ReplyLost.settlement()))
            }
        };
        drop(inner);
        wakes.wake();
        if let Some((done, reply)) = answer {
            done.resolve(reply);
        }
    }
}

impl Settler for InMemorySettler {
    fn settle(&self, permit: SettlePermit, done: Completion<SettlementReply>) {
        let (member, token) = (self.member, permit.token());
        self.answer(done, |inner, now, wakes| {
            let group = &mut inner.model.groups.get_mut(self.group)?.1;
            if matches!(inner.faults, Faults::None) {
                return Some(outcome::settled(group.settle(member, token, now, wakes)));
            }
            if let Err(stale) = group.check(member, token, now, wakes) {
                return Some(outcome::settled(Err(stale)));
            }
            match inner.faults.next_settlement() {
                None => Some(outcome::settled(group.settle(member, token, now, wakes))),
                Some(SettleFault::ReplyLostSettled) => {
                    let _ = group.settle(member, token, now, wakes);
                    Some(Cut::ReplyLost.settlement())
                }
                Some(SettleFault::ReplyLost) => {
                    let _ = group.give_back(member, token, None, now, wakes);
                    Some(Cut::ReplyLost.settlement())
                }
                Some(SettleFault::NoReply) => {
                    let _ = group.give_back(member, token, None, now, wakes);
                    None
                }
            }
        });
    }

    /// The broker has no other word for it.
    fn terminate(&self, permit: SettlePermit, done: Completion<SettlementReply>) {
        self.settle(permit, done);
    }

    fn redeliver(&self, token: DeliveryToken, after: Duration, done: Completion<SettlementReply>) {
        self.answer(done, |inner, now, wakes| {
            let due = (!after.is_zero()).then(|| now + after.min(LONGEST));
            let group = &mut inner.model.groups.get_mut(self.group)?.1;
            Some(outcome::settled(group.give_back(self.member, token, due, now, wakes)))
        });
    }

    /// The broker counts deliveries, not failures, so a release differs from a redelivery only in that it never waits.
    fn release(&self, token: DeliveryToken, done: Completion<SettlementReply>) {
        self.redeliver(token, Duration::ZERO, done);
    }

    /// Nothing: a delivery stays outstanding as long as its member does.
    fn extend(&self, _: &[DeliveryToken]) {}

    fn pause(&self, unit: UnitId) {
        self.set_paused(unit, true);
    }

    fn resume(&self, unit: UnitId) {
        self.set_paused(unit, false);
    }
}

impl InMemorySettler {
    fn set_paused(&self, unit: UnitId, paused: bool) {
        let mut wakes = WakeList::default();
        if let Some((_, group)) = self.state.lock().model.groups.get_mut(self.group) {
            group.set_paused(self.member, unit, paused, &mut wakes);
        }
        wakes.wake();
    }
}
