//! Carries out what is decided of a failure.

use std::sync::Arc;
use std::time::Duration;

use consign_core_api::outcome::Duplicate;
use consign_core_api::settlement::state::Failed;
use consign_core_api::{
    Attempt, Capability, Confirmation, DestinationName, Failure, FailureCategory, MessagePosition,
    PublishOutcome,
};
use consign_policy::admission::Class;
use consign_policy::retry::{RetryDecision, Situation, backoff, decide};

use super::work::{CopyKind, Copying, Ending, Stage};
use super::{Driver, Due};
use crate::codes;
use crate::consumer::copy::{CopyFacts, copy, is_before};
use crate::consumer::works::WorkKey;
use crate::observer::Observed;

/// How often a copy is sent before its unit halts.
const COPY_TRIES: u32 = 5;

impl Driver {
    pub(super) fn decide(
        &mut self,
        key: WorkKey,
        attempt: Attempt,
        category: FailureCategory,
    ) -> RetryDecision {
        let (source, random) = (Arc::clone(&self.source), self.dice.roll());
        let work = self.works.get(key);
        decide(&Situation {
            category,
            attempt,
            delivery_count: work.and_then(|work| self.memory.processed_deliveries(&work.content)),
            elapsed: work.map_or(Duration::ZERO, |work| self.now.since(work.received)),
            origin: source.policy_origin(),
            here: source.here.profile().setup(),
            capabilities: &source.here.capabilities,
            random,
        })
    }

    pub(super) fn carry_out(&mut self, key: WorkKey, failed: Failed, decision: RetryDecision) {
        match decision {
            RetryDecision::RetryInPlace(after) => {
                self.tell_retried(key, after, "in place");
                self.hold(key, Stage::BackingOff(failed), after);
            }
            RetryDecision::Redeliver(after) => {
                self.tell_retried(key, after, "redelivery");
                let delays = self.source.here.capabilities.has(Capability::DelayedRedelivery);
                if after.is_zero() || delays {
                    self.redeliver(key, after);
                } else {
                    self.hold(key, Stage::HeldForRedelivery(failed), after);
                }
            }
            RetryDecision::Republish(to, after) => {
                self.start_copy(key, failed, &to, CopyKind::Retry { after })
            }
            RetryDecision::DeadLetter(to, _) => self.start_copy(key, failed, &to, CopyKind::DeadLetter),
            RetryDecision::Discard(_) => self.discard(key, failed),
            RetryDecision::Halt(_) => self.halt(key, failed.failure()),
        }
    }

    fn tell_retried(&self, key: WorkKey, after: Duration, how: &'static str) {
        let Some(work) = self.works.get(key) else { return };
        self.shared.counters.retried.one();
        let attempt = Attempt::new(work.failed.saturating_add(1)).unwrap_or(Attempt::FIRST);
        let delivery = self.source.info(&work.content);
        self.tell(&Observed::Retried { delivery, attempt, after, how });
    }

    /// Keeps a delivery in its place, without a concurrency slot, for a while.
    fn hold(&mut self, key: WorkKey, stage: Stage, after: Duration) {
        let Some(work) = self.works.get_mut(key) else { return };
        work.stage = stage;
        self.lanes.hold(work.lane, key);
        self.timers.set(self.now.after(after), Due::Delivery(key));
        self.after_rest(key);
    }

    /// Gives a failed delivery back. On an ordered destination those that wait behind it go back too, after it: they
    /// would overtake it otherwise.
    fn redeliver(&mut self, key: WorkKey, after: Duration) {
        let Some(work) = self.works.get(key) else { return };
        if let Some(failures) = work.failures() {
            self.memory.remember(&Arc::clone(&work.content), failures);
        }
        let behind = if self.source.here.profile().setup().ordering.is_ordered() {
            self.lanes.waiting_behind(work.lane, key)
        } else {
            Vec::new()
        };
        self.end_work(key, Ending::Redeliver(after));
        for other in behind {
            self.give_back(other);
        }
    }

    fn discard(&mut self, key: WorkKey, failed: Failed) {
        if let Some(content) = self.works.get(key).map(|work| Arc::clone(&work.content)) {
            self.tell_discarded(&content, failed.failure());
        }
        let (sending, permit) = failed.discard();
        self.end_work(key, Ending::Settle(sending, permit));
    }

    /// Leaves a delivery unsettled and its lane standing. Its settlement deadline goes on being extended: given back, it
    /// would only fail again. A stop or a revocation gives it back.
    fn halt(&mut self, key: WorkKey, failure: &Failure) {
        let Some(work) = self.works.get_mut(key) else { return };
        work.stage = Stage::Halted;
        self.lanes.hold(work.lane, key);
        self.recount = true;
        let content = Arc::clone(&work.content);
        // Whoever is told that it stands still and looks finds it so.
        self.tell_activity();
        self.tell(&Observed::Halted { delivery: self.source.info(&content), failure });
        self.after_rest(key);
    }

    fn start_copy(&mut self, key: WorkKey, failed: Failed, to: &DestinationName, kind: CopyKind) {
        let now = self.wall();
        let Ok(to) = self.source.core.destination(to.as_str()).map(Arc::clone) else {
            // Validation saw to it that every edge leads somewhere.
            return self.halt(key, failed.failure());
        };
        let Some(work) = self.works.get_mut(key) else { return };
        let not_before = match kind {
            CopyKind::Retry { after } => Some(now.after(after)),
            CopyKind::DeadLetter => None,
        };
        let facts = CopyFacts {
            origin: self.source.origin.name(),
            group: &self.source.group,
            position: work.content.position.as_ref(),
            failed: work.failed,
            failure: failed.failure(),
            first_failed: work.first_failed.unwrap_or(now),
            now,
            not_before,
        };
        let limit = to.profile().setup().publish.max_payload.get();
        let message = copy(&work.content.message, &facts, limit);
        let copying = Copying { failed, to, message, kind, tries: 0, unproven: false, in_flight: false };
        work.stage = Stage::Copying(Box::new(copying));
        self.lanes.hold(work.lane, key);
        self.send_copy(key);
    }

    fn send_copy(&mut self, key: WorkKey) {
        let Some(Stage::Copying(copying)) = self.works.get_mut(key).map(|work| &mut work.stage) else {
            return;
        };
        copying.in_flight = true;
        let (core, to) = (Arc::clone(&self.source.core), Arc::clone(&copying.to));
        let message = copying.message.clone();
        self.copies.push(Box::pin(async move { (key, core.publish(&to, message, Class::Internal).await) }));
    }

    /// Takes the outcome of a copy. Only CONFIRMED ends its source.
    pub(super) fn copied(&mut self, key: WorkKey, outcome: PublishOutcome) {
        let Some(work) = self.works.get_mut(key) else { return };
        let mut copying = match work.take_stage() {
            Stage::Copying(copying) => copying,
            other => return work.stage = other,
        };
        copying.in_flight = false;
        let source = work.content.position.as_ref();
        match outcome.into_result() {
            Ok(confirmation) if is_proof(&confirmation, source, copying.unproven) => {
                self.copy_stands(key, *copying, &confirmation);
            }
            Ok(_) => {
                // The broker knows the id from an earlier publish that was not this copy (the original in the same
                // stream, or an earlier life of the message). Once it has forgotten the id, the copy is stored.
                let window = copying.to.capabilities.deduplication_window().unwrap_or_default();
                let failure = Failure::new(
                    FailureCategory::TransientInfrastructure,
                    codes::COPY_NOT_CONFIRMED,
                    "the broker takes the copy for a message that it has stored before",
                );
                self.copy_failed(key, copying, failure, window);
            }
            Err(not_confirmed) => {
                copying.unproven |= matches!(not_confirmed, consign_core_api::NotConfirmed::Ambiguous(_));
                let failure = Failure::new(
                    not_confirmed.failure().category(),
                    codes::COPY_NOT_CONFIRMED,
                    format!("the copy is not confirmed: {not_confirmed}"),
                );
                self.copy_failed(key, copying, failure.with_source(not_confirmed), Duration::ZERO);
            }
        }
    }

    fn copy_stands(&mut self, key: WorkKey, copying: Copying, confirmation: &Confirmation) {
        let Copying { failed, to, kind, .. } = copying;
        match kind {
            CopyKind::Retry { after } => self.tell_retried(key, after, "copy"),
            CopyKind::DeadLetter => {
                self.shared.counters.dead_lettered.one();
                if let Some(work) = self.works.get(key) {
                    self.tell(&Observed::DeadLettered {
                        delivery: self.source.info(&work.content),
                        dead_letter: to.name(),
                        failure: failed.failure(),
                    });
                }
            }
        }
        let (sending, permit) = failed.copied(confirmation);
        self.end_work(key, Ending::Terminate(sending, permit));
    }

    /// Tries a copy again later, at least after `least`; in the end its lane halts.
    fn copy_failed(&mut self, key: WorkKey, mut copying: Box<Copying>, failure: Failure, least: Duration) {
        copying.tries += 1;
        if copying.tries >= COPY_TRIES {
            return self.halt(key, &failure);
        }
        let tries = Attempt::new(copying.tries).unwrap_or(Attempt::FIRST);
        let retry = &self.source.origin.profile().setup().retry;
        let after = backoff(retry, tries, self.dice.roll()).max(SHORTEST_PAUSE).max(least);
        self.hold(key, Stage::Copying(copying), after);
    }

    /// A delivery's time has come, if it still waits for it.
    pub(super) fn delivery_due(&mut self, key: WorkKey) {
        let Some(work) = self.works.get_mut(key) else { return };
        match work.take_stage() {
            Stage::Delayed(received) => {
                work.stage = Stage::Waiting(received);
                self.lanes.retry(work.lane, key);
            }
            Stage::BackingOff(failed) => {
                work.stage = Stage::Waiting(failed.retry());
                self.lanes.retry(work.lane, key);
            }
            Stage::HeldForRedelivery(failed) => {
                work.stage = Stage::HeldForRedelivery(failed);
                self.redeliver(key, Duration::ZERO);
            }
            Stage::Copying(copying) if !copying.in_flight => {
                work.stage = Stage::Copying(copying);
                self.send_copy(key);
            }
            other => work.stage = other,
        }
    }
}

/// A copy that could not be published is not tried again at once, whatever the profile's back-off says.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);

/// An acceptance by deduplication proves that the copy stands only where what the broker remembers can be this copy:
/// where an earlier sending of it had no answer, and it does not stand where the source or something older stands.
fn is_proof(confirmation: &Confirmation, source: Option<&MessagePosition>, unproven: bool) -> bool {
    confirmation.duplicate() != Duplicate::Deduplicated
        || ((unproven || confirmation.attempts().get() > 1) && !is_before(confirmation.position(), source))
}
