//! Starts handlers and takes their results.

use std::sync::Arc;

use consign_core_api::settlement::state::{Failed, Received};
use consign_core_api::time::Moment;
use consign_core_api::{Attempt, ExternalSideEffectGuarantee, Failure, FailureCategory};
use consign_policy::retry::check_delivery_count;
use tokio_util::sync::CancellationToken;

use super::Driver;
use super::work::{Ending, Stage};
use crate::codes;
use crate::consumer::context::HandlerContext;
use crate::consumer::pool::Job;
use crate::consumer::works::WorkKey;
use crate::observer::Observed;

impl Driver {
    /// Begins with a delivery whose turn it is.
    pub(super) fn begin(&mut self, key: WorkKey) {
        let Some(work) = self.works.get_mut(key) else { return };
        let received = match work.take_stage() {
            Stage::Waiting(received) => received,
            other => return work.stage = other,
        };
        let content = Arc::clone(&work.content);
        let source = Arc::clone(&self.source);
        let here = source.here.profile().setup();
        let deliveries = self.memory.processed_deliveries(&content);
        if let Some(decision) = check_delivery_count(deliveries, source.policy_origin(), here) {
            let failure = Failure::new(
                FailureCategory::TransientInfrastructure,
                codes::MAX_DELIVERIES_EXCEEDED,
                "the broker delivered the message more often than consumer.max_deliveries allows",
            );
            return self.carry_out(key, received.fail(failure), decision);
        }
        let effects = source.origin.profile().setup().side_effects;
        if effects != ExternalSideEffectGuarantee::None && content.message.id().is_none() {
            let failure = Failure::new(
                FailureCategory::PermanentBusiness,
                codes::MESSAGE_ID_MISSING,
                "the message has no id, and without one a repetition cannot be recognised",
            );
            return self.failed(key, received.fail(failure));
        }
        match received.before_handling(here.delivery) {
            Ok((sending, permit)) => {
                if let Some(work) = self.works.get_mut(key) {
                    work.stage = Stage::SettlingFirst(sending);
                }
                let completion = self.completion(key);
                self.settler.settle(permit, completion);
            }
            Err(received) => self.handle(key, received),
        }
    }

    fn handle(&mut self, key: WorkKey, received: Received) {
        let decoding = received.decode();
        match self.start_handler(key) {
            Ok(cancellation) => {
                if let Some(work) = self.works.get_mut(key) {
                    work.stage = Stage::Handling(decoding.decoded(), cancellation);
                }
            }
            Err(failure) => self.failed(key, decoding.fail(failure)),
        }
    }

    /// AT_MOST_ONCE: the settlement is proven, so the message may be handled, once.
    pub(super) fn handle_settled(&mut self, key: WorkKey) {
        match self.start_handler(key) {
            Ok(cancellation) => {
                if let Some(work) = self.works.get_mut(key) {
                    work.stage = Stage::HandlingSettled(cancellation);
                }
            }
            Err(failure) => self.finish_settled(key, Err(failure)),
        }
    }

    fn start_handler(&mut self, key: WorkKey) -> Result<CancellationToken, Failure> {
        let gone =
            || Failure::new(FailureCategory::TransientInfrastructure, codes::STALE_SETTLEMENT, "it is gone");
        let work = self.works.get(key).ok_or_else(gone)?;
        let timeout = self.source.here.profile().setup().consumer.handler_timeout;
        let deadline: Moment = self.now.after(timeout);
        let attempt = Attempt::new(work.failed.saturating_add(1)).unwrap_or(Attempt::FIRST);
        let cancellation = CancellationToken::new();
        let content = Arc::clone(&work.content);
        let context = HandlerContext::new(
            Arc::clone(&self.source),
            Arc::clone(&content),
            attempt,
            deadline,
            cancellation.clone(),
        );
        self.pool.start(Job { key, content, context, timeout })?;
        Ok(cancellation)
    }

    /// Takes the result of a handler.
    pub(super) fn finish(&mut self, key: WorkKey, result: Result<(), Failure>) {
        let Some(work) = self.works.get_mut(key) else { return };
        match work.take_stage() {
            Stage::Handling(processing, cancellation) => {
                if result.is_err() {
                    // Whatever a handler that was cut off left running is told that the attempt is over.
                    cancellation.cancel();
                }
                match result {
                    Ok(()) => {
                        let (sending, permit) = processing.succeed().settle();
                        self.end_work(key, Ending::Settle(sending, permit));
                    }
                    // A failure after the end of the lease is no failure of the message.
                    Err(_) if work.stale => {
                        let _token = processing.cancel();
                        self.lose(key);
                    }
                    Err(failure) => self.failed(key, processing.fail(failure)),
                }
            }
            Stage::HandlingSettled(cancellation) => {
                if result.is_err() {
                    cancellation.cancel();
                }
                self.finish_settled(key, result);
            }
            other => work.stage = other,
        }
    }

    /// AT_MOST_ONCE: whatever came of it, there is no second time.
    fn finish_settled(&mut self, key: WorkKey, result: Result<(), Failure>) {
        if let Err(failure) = result
            && let Some(content) = self.works.get(key).map(|work| Arc::clone(&work.content))
        {
            self.shared.counters.failed.one();
            self.tell(&Observed::HandlerFailed {
                delivery: self.source.info(&content),
                attempt: Attempt::FIRST,
                failure: &failure,
            });
            self.tell_discarded(&content, &failure);
        }
        self.end_work(key, Ending::Nothing);
    }

    /// Counts a failure, and does what is decided.
    pub(super) fn failed(&mut self, key: WorkKey, failed: Failed) {
        let wall = self.wall();
        let Some(work) = self.works.get_mut(key) else { return };
        work.failed = work.failed.saturating_add(1);
        work.first_failed.get_or_insert(wall);
        let attempt = Attempt::new(work.failed).unwrap_or(Attempt::FIRST);
        let content = Arc::clone(&work.content);
        self.shared.counters.failed.one();
        self.tell(&Observed::HandlerFailed {
            delivery: self.source.info(&content),
            attempt,
            failure: failed.failure(),
        });
        let decision = self.decide(key, attempt, failed.failure().category());
        self.carry_out(key, failed, decision);
    }
}
