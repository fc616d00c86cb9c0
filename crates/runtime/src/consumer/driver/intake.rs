//! Takes events from the subscription.

use std::sync::Arc;
use std::time::Duration;

use consign_core_api::settlement::state::Received;
use consign_core_api::spi::{Batch, DeliveryToken, Event, Inbound};
use consign_core_api::time::Clock as _;
use consign_core_api::{DeliveryGuarantee, Failure, FailureCategory};

use super::work::{Ending, Stage, Work};
use super::{Driver, Due};
use crate::codes;
use crate::consumer::delivery::Content;
use crate::consumer::lanes::LaneName;
use crate::consumer::marks::Marks;
use crate::consumer::works::WorkKey;
use crate::observer::Observed;

impl Driver {
    pub(super) fn take_events(&mut self, events: Batch) {
        self.now = self.source.core.clock.now();
        for event in events {
            match event {
                Event::Delivery(inbound) => self.receive(*inbound),
                Event::Assigned(unit, epoch) => self.assigned(unit, epoch),
                Event::Revoking { unit, epoch, drain_by } => self.revoking(unit, epoch, drain_by),
                Event::Lost(unit, epoch) => self.lost(unit, epoch),
                Event::Interrupted(failure) => self.interrupted(&failure),
                // An event of a later version of the seam: deliveries and ownership are all that matters here.
                _ => {}
            }
        }
    }

    fn receive(&mut self, inbound: Inbound) {
        let token = inbound.token;
        let mut content = Content::new(inbound);
        self.source.identify(&mut content);
        let content = Arc::new(content);
        self.active = self.now;
        self.shared.counters.received.one();
        self.tell(&Observed::Received { delivery: self.source.info(&content) });
        if !self.owns(token) {
            // Settling it would be refused, and it comes again to whoever has the unit.
            return self.tell_released(&content);
        }
        let (key, marks) = self.enter(token, &content);
        if self.is_draining(token.unit()) {
            return self.give_back(key);
        }
        if marks.malformed > 0 {
            self.tell_filtered(&content, "malformed header of the library");
        }
        if marks.foreign {
            return self.pass_over(key, &content);
        }
        if self.is_second_of_at_most_once(&content) {
            return self.drop_redelivered(key, &content);
        }
        let wait = marks.wait(self.wall(), self.source.origin.profile().setup().retry.max);
        if !wait.is_zero() {
            self.delay(key, wait);
        }
    }

    fn enter(&mut self, token: DeliveryToken, content: &Arc<Content>) -> (WorkKey, Marks) {
        let rung = self.source.is_rung();
        let headers = content.message.headers();
        let marks = Marks::read(headers, self.source.origin.name(), &self.source.group, rung);
        let known = self.memory.recall(content);
        let failed = marks.failed.max(known.map_or(0, |known| known.failed));
        let first = marks.first_failed.or(known.map(|known| known.first));
        let first_failed = (failed > 0).then(|| first.unwrap_or_else(|| self.wall()));
        let scope = self.source.here.profile().setup().ordering;
        let name = LaneName::of(scope, token.unit(), content.message.key());
        let (lanes, now) = (&mut self.lanes, self.now);
        let key = self.works.insert_with(|key| Work {
            content: Arc::clone(content),
            token,
            lane: lanes.push(name, token.unit(), key),
            received: now,
            failed,
            first_failed,
            stale: false,
            stage: Stage::Waiting(Received::new(token)),
        });
        (key, marks)
    }

    /// A copy for another group: settled unhandled, when it is its turn.
    fn pass_over(&mut self, key: WorkKey, content: &Content) {
        self.tell_filtered(content, "copy of another group");
        let Some(work) = self.works.get_mut(key) else { return };
        match work.take_stage() {
            Stage::Waiting(received) => {
                let failure = Failure::new(
                    FailureCategory::PermanentBusiness,
                    codes::COPY_OF_ANOTHER_GROUP,
                    "the copy is for another group",
                );
                let (sending, permit) = received.fail(failure).discard();
                self.end_work(key, Ending::Settle(sending, permit));
            }
            other => work.stage = other,
        }
    }

    fn is_second_of_at_most_once(&self, content: &Content) -> bool {
        let delivery = self.source.here.profile().setup().delivery;
        delivery == DeliveryGuarantee::AtMostOnce && content.redelivered == Some(true)
    }

    /// AT_MOST_ONCE: an earlier delivery may have been handled, so this one is settled and dropped.
    fn drop_redelivered(&mut self, key: WorkKey, content: &Content) {
        self.tell_filtered(content, "redelivered under AT_MOST_ONCE");
        let Some(work) = self.works.get_mut(key) else { return };
        match work.take_stage() {
            Stage::Waiting(received) => match received.before_handling(DeliveryGuarantee::AtMostOnce) {
                Ok((sending, permit)) => self.end_work(key, Ending::Settle(sending, permit)),
                Err(received) => work.stage = Stage::Waiting(received),
            },
            other => work.stage = other,
        }
    }

    /// Keeps a retry copy until its time has come.
    fn delay(&mut self, key: WorkKey, wait: Duration) {
        let Some(work) = self.works.get_mut(key) else { return };
        match work.take_stage() {
            Stage::Waiting(received) => {
                work.stage = Stage::Delayed(received);
                self.lanes.hold(work.lane, key);
                self.timers.set(self.now.after(wait), Due::Delivery(key));
            }
            other => work.stage = other,
        }
    }
}
