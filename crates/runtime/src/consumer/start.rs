//! Starts a consumer.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use consign_core_api::spi::{ConsumerSetup, Subscription, SubscriptionSpec, TransportError};
use consign_core_api::time::Clock as _;
use consign_core_api::{
    Code, ConfigurationError, Error, ErrorKind, ExternalSideEffectGuarantee, Failure, FailureCategory,
    GroupName,
};

use super::driver::{Driver, Parts};
use super::handle::Consumer;
use super::handling::{Handling, Protection};
use super::shared::Shared;
use super::source::Source;
use crate::codes;
use crate::core::{Core, OpenDestination};

/// How long a broker may take to answer a subscription.
const SUBSCRIBE_WITHIN: Duration = Duration::from_secs(10);

/// Subscribes the group to a destination and to all its retry destinations, and starts to handle.
///
/// Dropping the future before it is ready starts nothing.
pub(crate) async fn start(
    core: &Arc<Core>,
    origin: &Arc<OpenDestination>,
    group: GroupName,
    handling: Handling,
) -> Result<Consumer, Error> {
    check(core, origin, handling.protection)?;
    let mut read = vec![Arc::clone(origin)];
    for rung in core.plan.rungs(origin.name()) {
        read.push(Arc::clone(core.destination(rung.as_str())?));
    }
    let mut subscriptions = Vec::with_capacity(read.len());
    for here in &read {
        let spec = SubscriptionSpec::new(group.clone(), outstanding(&here.profile().setup().consumer));
        match subscribe(here, spec).await {
            Ok(subscription) => subscriptions.push(subscription),
            Err(error) => {
                for mut subscription in subscriptions {
                    drop(tokio::time::timeout(SUBSCRIBE_WITHIN, subscription.close()).await);
                }
                return Err(error);
            }
        }
    }
    let shared = Arc::new(Shared::new(read.len(), core.clock.now()));
    for (seat, (here, subscription)) in read.into_iter().zip(subscriptions).enumerate() {
        let parts = Parts {
            outstanding: outstanding(&here.profile().setup().consumer),
            source: Arc::new(Source {
                core: Arc::clone(core),
                here,
                origin: Arc::clone(origin),
                group: group.clone(),
            }),
            shared: Arc::clone(&shared),
            seat,
            pool: (handling.pools)(),
            settler: subscription.settler(),
        };
        tokio::spawn(Driver::new(parts).run(subscription));
    }
    let consumer = Consumer::new(origin.name().clone(), group, shared, Arc::clone(&core.clock));
    core.consumers.add(consumer.running());
    Ok(consumer)
}

fn check(core: &Core, origin: &OpenDestination, protection: Protection) -> Result<(), Error> {
    let name = origin.name();
    let owner = core.plan.origin(name);
    if core.stop.is_cancelled() {
        let failure = Failure::new(
            FailureCategory::TransientInfrastructure,
            codes::SHUT_DOWN,
            "the library is shut down",
        );
        return Err(Error::new(ErrorKind::Closed, failure));
    }
    if owner != name {
        let text = format!("{name} is a retry destination of {owner}");
        return Err(usage(codes::RUNG_NOT_CONSUMABLE, text));
    }
    match (origin.profile().setup().side_effects, protection) {
        (ExternalSideEffectGuarantee::InboxTransactional, Protection::None | Protection::Idempotent) => {
            Err(usage(codes::INBOX_NOT_CONFIGURED, format!("{name} is INBOX_TRANSACTIONAL and has no inbox")))
        }
        (ExternalSideEffectGuarantee::IdempotencyRequired, Protection::None) => {
            let text = format!("{name} is IDEMPOTENCY_REQUIRED and its handler is not declared idempotent");
            Err(usage(codes::HANDLER_NOT_IDEMPOTENT, text))
        }
        _ => Ok(()),
    }
}

/// How many deliveries may be outstanding: 16 for each that is in flight, at least 64 and at most 4096, but never less
/// than what is in flight. What waits keeps its settlement deadline only where that is extended; without `extend`,
/// nothing waits here, and it is exactly what is in flight.
pub(crate) fn outstanding(consumer: &ConsumerSetup) -> NonZeroUsize {
    let in_flight = consumer.concurrency.saturating_mul(consumer.unit_in_flight).get().min(MOST_IN_FLIGHT);
    let outstanding =
        if consumer.extend { in_flight.saturating_mul(16).clamp(64, 4096).max(in_flight) } else { in_flight };
    NonZeroUsize::new(outstanding).unwrap_or(NonZeroUsize::MIN)
}

const MOST_IN_FLIGHT: usize = 1 << 16;

/// Subscribes within a bound.
pub(crate) async fn subscribe(
    here: &OpenDestination,
    spec: SubscriptionSpec,
) -> Result<Box<dyn Subscription>, Error> {
    match tokio::time::timeout(SUBSCRIBE_WITHIN, here.handle().subscribe(spec)).await {
        Ok(Ok(subscription)) => Ok(subscription),
        Ok(Err(TransportError::Failed(failure))) => Err(Error::new(ErrorKind::Transport, failure)),
        Ok(Err(TransportError::Refused(problems))) => match ConfigurationError::check(problems) {
            Err(report) => Err(report.into()),
            Ok(()) => Err(transport("the broker refused the subscription without a reason".to_owned())),
        },
        Ok(Err(TransportError::Unavailable(refusal))) => Err(refusal.into()),
        Ok(Err(error)) => Err(transport(error.to_string())),
        Err(_) => Err(Error::new(
            ErrorKind::TimedOut,
            Failure::new(
                FailureCategory::TransientInfrastructure,
                codes::SUBSCRIPTION_FAILED,
                format!("the broker did not answer the subscription of {} in time", here.name()),
            ),
        )),
    }
}

fn transport(text: String) -> Error {
    let failure = Failure::new(FailureCategory::TransientInfrastructure, codes::SUBSCRIPTION_FAILED, text);
    Error::new(ErrorKind::Transport, failure)
}

fn usage(code: Code, text: String) -> Error {
    Error::new(ErrorKind::Usage, Failure::new(FailureCategory::Configuration, code, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n(value: usize) -> NonZeroUsize {
        NonZeroUsize::new(value).unwrap()
    }

    #[test]
    fn what_may_be_outstanding_is_bounded_and_never_below_what_is_in_flight() {
        let mut consumer = ConsumerSetup::default();
        for (concurrency, unit, extend, expected) in [
            (1, 1, true, 64),
            (8, 1, true, 128),
            (1000, 1, true, 4096),
            (5000, 2, true, 10_000),
            (usize::MAX, usize::MAX, true, 65_536),
            (8, 2, false, 16),
        ] {
            (consumer.concurrency, consumer.unit_in_flight, consumer.extend) =
                (n(concurrency), n(unit), extend);
            assert_eq!(outstanding(&consumer).get(), expected);
        }
    }
}
