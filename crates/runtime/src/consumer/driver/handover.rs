//! Hands endings over in the order of their lanes, and takes the broker's replies.

use std::sync::Arc;
use std::task::Context;

use consign_core_api::settlement::SettlementOutcome;
use consign_core_api::settlement::state::SettlementSending;
use consign_core_api::spi::SettlementReply;
use consign_core_api::{Failure, FailureCategory};

use super::Driver;
use super::work::{Ending, Stage, Work};
use crate::codes;
use crate::consumer::delivery::Content;
use crate::consumer::question::weigh;
use crate::consumer::shared::{Left, LeftBecause};
use crate::consumer::works::WorkKey;
use crate::observer::Observed;

impl Driver {
    /// Ends a delivery. What is handed over, and when, is for its lane to say.
    pub(super) fn end_work(&mut self, key: WorkKey, ending: Ending) {
        let Some(work) = self.works.get_mut(key) else { return };
        work.stage = Stage::Ready(ending);
        let mut turns = Vec::new();
        self.lanes.done(work.lane, key, &mut turns);
        self.hand_over_all(turns);
    }

    fn hand_over_all(&mut self, turns: Vec<WorkKey>) {
        for key in turns {
            self.hand_over(key);
        }
    }

    fn hand_over(&mut self, key: WorkKey) {
        // A handler may have ended after the last handle of the library was dropped, in the turn that did not see it yet.
        let late = self.is_late(key) || self.source.core.stop.is_cancelled();
        let Some(work) = self.works.get_mut(key) else { return };
        let ending = match work.take_stage() {
            Stage::Ready(ending) => ending,
            other => return work.stage = other,
        };
        let (token, too_late) = (work.token, late || work.stale);
        match ending {
            Ending::Nothing => drop(self.works.remove(key)),
            Ending::Settle(sending, _) | Ending::Terminate(sending, _) if too_late => {
                self.conclude(key, sending, SettlementReply::Unknown(stale()));
            }
            Ending::Redeliver(_) if too_late => {
                // It comes again as it is.
                if let Some(work) = self.works.remove(key) {
                    self.tell_released(&work.content);
                }
            }
            Ending::Settle(sending, permit) => {
                work.stage = Stage::Settling(sending);
                let completion = self.completion(key);
                self.settler.settle(permit, completion);
            }
            Ending::Terminate(sending, permit) => {
                work.stage = Stage::Settling(sending);
                let completion = self.completion(key);
                self.settler.terminate(permit, completion);
            }
            Ending::Redeliver(after) => {
                work.stage = Stage::GivingBack;
                let completion = self.completion(key);
                self.settler.redeliver(token, after, completion);
            }
        }
    }

    /// Without an extension, the broker has taken the delivery back when its deadline is over: a settlement would count
    /// for somebody else's delivery.
    fn is_late(&self, key: WorkKey) -> bool {
        let consumer = &self.source.here.profile().setup().consumer;
        let received = self.works.get(key).map(|work| work.received);
        !consumer.extend
            && received.is_some_and(|received| self.now.since(received) >= consumer.settlement_deadline)
    }

    /// Gives an unprocessed delivery back. It counts no attempt.
    pub(super) fn give_back(&mut self, key: WorkKey) {
        let Some(work) = self.works.get_mut(key) else { return };
        work.stage = Stage::GivingBack;
        self.recount = true;
        let (token, lane, content) = (work.token, work.lane, Arc::clone(&work.content));
        if let Some(failures) = work.failures() {
            self.memory.remember(&content, failures);
        }
        self.memory.remember_release(&content);
        self.tell_released(&content);
        let completion = self.completion(key);
        self.settler.release(token, completion);
        let mut turns = Vec::new();
        self.lanes.forget(lane, key, &mut turns);
        self.hand_over_all(turns);
    }

    /// Forgets a delivery that the broker has taken back.
    pub(super) fn lose(&mut self, key: WorkKey) {
        let Some(work) = self.works.remove(key) else { return };
        self.recount = true;
        if let Some(failures) = work.failures() {
            self.memory.remember(&work.content, failures);
        }
        // The broker counts this delivery, and nobody has seen it.
        if matches!(work.stage, Stage::Waiting(_) | Stage::Delayed(_)) {
            self.memory.remember_release(&work.content);
        }
        self.tell_released(&work.content);
        let mut turns = Vec::new();
        self.lanes.forget(work.lane, key, &mut turns);
        self.hand_over_all(turns);
    }

    pub(super) fn poll_replies(&mut self, cx: &mut Context<'_>) -> bool {
        let mut replies = std::mem::take(&mut self.replies);
        let came = self.mailbox.poll_replies(cx, &mut replies).is_ready();
        for (key, reply) in replies.drain(..) {
            self.reply(key, reply);
        }
        self.replies = replies;
        came
    }

    fn reply(&mut self, key: WorkKey, reply: SettlementReply) {
        let Some(work) = self.works.get_mut(key) else { return };
        match work.take_stage() {
            Stage::Settling(sending) => self.conclude(key, sending, reply),
            Stage::SettlingFirst(sending) => self.settled_first(key, sending, reply),
            Stage::GivingBack => self.given_back(key, &reply),
            other => work.stage = other,
        }
    }

    /// The time for an answer is over: the end is unknown.
    pub(super) fn reply_due(&mut self, key: WorkKey) {
        if self.works.get(key).is_some_and(Work::awaits_reply) {
            self.mailbox.close(key);
            self.reply(key, SettlementReply::Unknown(no_answer()));
        }
    }

    fn given_back(&mut self, key: WorkKey, reply: &SettlementReply) {
        let Some(work) = self.works.remove(key) else { return };
        let because = match reply {
            SettlementReply::Evidence(_) => LeftBecause::Released,
            SettlementReply::Unknown(_) => LeftBecause::Abandoned,
        };
        self.note_left(&work.content, because);
    }

    /// Ends the life of a delivery: its outcome is told and counted, once.
    pub(super) fn conclude(&mut self, key: WorkKey, sending: SettlementSending, reply: SettlementReply) {
        let Some(work) = self.works.remove(key) else { return };
        let outcome = sending.resolve(self.weigh(reply));
        self.tell_settled(&work.content, &outcome);
        if outcome.is_settled() {
            self.memory.forget(&work.content);
        } else {
            if let Some(failures) = work.failures() {
                self.memory.remember(&work.content, failures);
            }
            self.note_left(&work.content, LeftBecause::Unknown);
        }
    }

    /// AT_MOST_ONCE: handled only if the settlement is proven.
    fn settled_first(&mut self, key: WorkKey, sending: SettlementSending, reply: SettlementReply) {
        let outcome = sending.resolve(self.weigh(reply));
        let Some(content) = self.works.get(key).map(|work| Arc::clone(&work.content)) else { return };
        self.tell_settled(&content, &outcome);
        if outcome.is_settled() {
            self.handle_settled(key);
        } else {
            self.note_left(&content, LeftBecause::Unknown);
            self.end_work(key, Ending::Nothing);
        }
    }

    fn tell_settled(&self, content: &Content, outcome: &SettlementOutcome) {
        let counters = &self.shared.counters;
        if outcome.is_settled() {
            counters.settled.one()
        } else {
            counters.unknown.one()
        }
        self.tell(&Observed::Settled { delivery: self.source.info(content), outcome });
    }

    fn weigh(&self, reply: SettlementReply) -> SettlementReply {
        weigh(reply, self.source.here.profile().setup().consumer.settlement)
    }

    /// Takes note of a delivery that a stop leaves unsettled.
    pub(super) fn note_left(&mut self, content: &Content, because: LeftBecause) {
        if self.stopping.is_some() {
            self.left.push(Left {
                destination: self.source.here.name().clone(),
                id: content.message.id().cloned(),
                position: content.position.clone(),
                because,
            });
        }
    }
}

fn stale() -> Failure {
    Failure::new(
        FailureCategory::TransientInfrastructure,
        codes::STALE_SETTLEMENT,
        "the broker has taken the delivery back before it was settled",
    )
}

pub(super) fn no_answer() -> Failure {
    Failure::new(
        FailureCategory::TransientInfrastructure,
        codes::SETTLEMENT_TIMED_OUT,
        "the broker did not answer in time",
    )
}
