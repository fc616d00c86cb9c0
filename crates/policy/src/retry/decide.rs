//! The decision.

use std::time::Duration;

use consign_core_api::spi::{DestinationSetup, RetryStrategy};
use consign_core_api::{Capability, DeliveryGuarantee};

use super::backoff::backoff;
use super::decision::{Reason, RetryDecision};
use super::situation::{Origin, Situation};
use crate::profile::OnExhausted;

/// Decides what is done with a message that failed.
///
/// - Under AT_MOST_ONCE it is discarded: it was settled before.
/// - Configuration, permanent and security failures are final, and so is the last attempt that the origin allows.
/// - Otherwise the strategy of where the message stands is followed. A rung with a retry destination names the next
///   rung; one that retries nothing ends the message.
/// - Where the destination is ordered, only what keeps the order is chosen: in place, or a redelivery that the
///   transport declares to keep it.
/// - A message that cannot be held until another attempt has ended, because its settlement deadline is not extended,
///   is given back if its order allows, and is final otherwise.
///
/// A final failure goes where the origin's rule sends it: to its dead letter, away, or the unit halts. Cancellation,
/// shutdown and revocation are no failures and do not come here.
///
/// Total: every combination has an answer, also one that validation refuses. Constant time.
pub fn decide(situation: &Situation<'_>) -> RetryDecision {
    next_attempt(situation).unwrap_or_else(|reason| finish(situation.origin, reason))
}

/// Ends a message that the broker delivered more often than the consumer where it stands allows. To be asked before
/// it is handled, so that a message that kills the process ends. `None` is the normal case: handle it.
#[must_use]
pub fn check_delivery_count(
    delivery_count: Option<u32>,
    origin: Origin<'_>,
    here: &DestinationSetup,
) -> Option<RetryDecision> {
    let (count, most) = (delivery_count?, here.consumer.max_deliveries?);
    (count > most.get()).then(|| finish(origin, Reason::DeliveriesExhausted(count)))
}

fn next_attempt(situation: &Situation<'_>) -> Result<RetryDecision, Reason> {
    let Situation { category, attempt, origin, here, .. } = *situation;
    if !category.is_transient() {
        return Err(Reason::NotRetryable(category));
    }
    if origin.setup.retry.max_attempts.is_some_and(|most| attempt.get() >= most.get()) {
        return Err(Reason::AttemptsExhausted(attempt));
    }
    if origin.setup.delivery == DeliveryGuarantee::AtMostOnce || here.retry.strategy == RetryStrategy::None {
        return Err(Reason::NoRetry);
    }
    let after = backoff(&here.retry, attempt, situation.random);
    match (here.retry.strategy, &here.retry.destination) {
        (RetryStrategy::RetryDestination, Some(next)) if !is_ordered(situation) => {
            Ok(RetryDecision::Republish(next.clone(), after))
        }
        (RetryStrategy::Redelivery | RetryStrategy::BrokerDelayed, _) if may_give_back(situation) => {
            give_back(situation, after)
        }
        _ if may_hold(situation, after) => Ok(RetryDecision::RetryInPlace(after)),
        _ if may_give_back(situation) => give_back(situation, after),
        _ => Err(Reason::HoldExhausted),
    }
}

/// The order of the origin is that of its rungs.
const fn is_ordered(situation: &Situation<'_>) -> bool {
    situation.origin.setup.ordering.is_ordered() || situation.here.ordering.is_ordered()
}

/// Tells whether the broker can deliver it again without breaking an order.
fn may_give_back(situation: &Situation<'_>) -> bool {
    let capabilities = situation.capabilities;
    // A delay queue lets others pass, whatever an ordinary redelivery does.
    let delayed = situation.here.retry.strategy == RetryStrategy::BrokerDelayed;
    let keeps = !is_ordered(situation) || (capabilities.redelivery_keeps_order() && !delayed);
    keeps && capabilities.has(Capability::Redelivery)
}

/// Gives it back, unless it would come again only to be ended unhandled.
fn give_back(situation: &Situation<'_>, after: Duration) -> Result<RetryDecision, Reason> {
    match (situation.delivery_count, situation.here.consumer.max_deliveries) {
        (Some(count), Some(most)) if count >= most.get() => Err(Reason::DeliveriesExhausted(count)),
        _ => Ok(RetryDecision::Redeliver(after)),
    }
}

/// Tells whether another attempt ends before the broker takes the delivery back.
const fn may_hold(situation: &Situation<'_>, after: Duration) -> bool {
    let consumer = &situation.here.consumer;
    let hold = situation.elapsed.saturating_add(after).saturating_add(consumer.handler_timeout);
    consumer.extend || hold.as_nanos() < consumer.settlement_deadline.as_nanos()
}

/// The origin's rule for a final failure.
fn finish(origin: Origin<'_>, reason: Reason) -> RetryDecision {
    if origin.setup.delivery == DeliveryGuarantee::AtMostOnce {
        return RetryDecision::Discard(reason);
    }
    match (origin.on_exhausted, origin.dead_letter) {
        (OnExhausted::DeadLetter, Some(dead_letter)) => {
            RetryDecision::DeadLetter(dead_letter.clone(), reason)
        }
        (OnExhausted::Discard, _) => RetryDecision::Discard(reason),
        // Without a place to go it stays where it is: nothing is lost that nobody gave up.
        _ => RetryDecision::Halt(reason),
    }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
