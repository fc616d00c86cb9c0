//! Rules about order.

use consign_core_api::OrderingScope;
use consign_core_api::spi::{OrderImpact, RetryStrategy};

use super::{Found, Subject, written};

/// Rule 1.
pub(super) fn key_without_resolver(subject: &Subject<'_>) -> Option<Found> {
    let spec = subject.spec;
    (spec.ordering == OrderingScope::Key && spec.key.is_none()).then(|| {
        Found::new(
            "each key is to be an order and no key is resolved",
            "set key, such as { from = \"message\" }",
        )
        .field("ordering", spec.ordering)
        .field("key", "none")
    })
}

/// Rule 2.
pub(super) fn reordering_retry(subject: &Subject<'_>) -> Option<Found> {
    let spec = subject.spec;
    let reorders =
        spec.retry.strategy != RetryStrategy::None && spec.retry.impact == OrderImpact::AllowReorder;
    (spec.ordering.is_ordered() && reorders).then(|| {
        Found::new(
            "an order is asked for and the retry may break it",
            "use impact = PRESERVE, or ordering = NONE",
        )
        .field("ordering", spec.ordering)
        .field("retry.impact", written(&spec.retry.impact))
    })
}

/// Rule 11.
pub(super) fn destination_with_concurrency(subject: &Subject<'_>) -> Option<Found> {
    let concurrency = subject.fields.consumer.concurrency?.get();
    let ordering = subject.spec.ordering;
    (ordering == OrderingScope::Destination && concurrency > 1).then(|| {
        Found::new(
            "the whole destination is one order and several handlers run at once",
            "use consumer.concurrency = 1, or ordering = PARTITION or KEY",
        )
        .field("ordering", ordering)
        .field("consumer.concurrency", concurrency)
    })
}

/// Rule 12.
pub(super) fn unit_concurrency(subject: &Subject<'_>) -> Option<Found> {
    let in_flight = subject.fields.consumer.unit_in_flight?.get();
    let ordering = subject.spec.ordering;
    (ordering.is_ordered() && in_flight > 1).then(|| {
        Found::new(
            "an order is asked for and several messages of one ordering unit are in flight",
            "use consumer.max_in_flight_per_ordering_unit = 1, or ordering = NONE",
        )
        .field("ordering", ordering)
        .field("consumer.max_in_flight_per_ordering_unit", in_flight)
    })
}
