//! Rules about retries.

use std::num::NonZeroU32;

use consign_core_api::spi::{OrderImpact, RetryStrategy};
use humantime::format_duration;

use super::{Found, Subject, written};

/// Rule 3.
pub(super) fn preserve_by_republishing(subject: &Subject<'_>) -> Option<Found> {
    let retry = &subject.spec.retry;
    let republishes =
        matches!(retry.strategy, RetryStrategy::RetryDestination | RetryStrategy::BrokerDelayed);
    (republishes && retry.impact == OrderImpact::Preserve).then(|| {
        Found::new(
            "the order is to be preserved and the message is published again behind others",
            "IN_PLACE keeps the order; or accept reordering with impact = ALLOW_REORDER and ordering = NONE",
        )
        .field("retry.impact", written(&retry.impact))
        .field("retry.strategy", written(&retry.strategy))
    })
}

/// Rule 4.
pub(super) fn destination_missing(subject: &Subject<'_>) -> Option<Found> {
    let retry = &subject.spec.retry;
    (retry.strategy == RetryStrategy::RetryDestination && retry.destination.is_none()).then(|| {
        Found::new(
            "copies are to be retried and go nowhere",
            "set retry.destination, or choose another strategy",
        )
        .field("retry.strategy", written(&retry.strategy))
        .field("retry.destination", "none")
    })
}

/// Rule 5.
pub(super) fn destination_unused(subject: &Subject<'_>) -> Option<Found> {
    let retry = &subject.spec.retry;
    let destination =
        retry.destination.as_ref().filter(|_| retry.strategy != RetryStrategy::RetryDestination)?;
    let help = "remove retry.destination, or use strategy = RETRY_DESTINATION";
    let found = Found::new("the strategy never uses the retry destination", help);
    Some(found.field("retry.strategy", written(&retry.strategy)).field("retry.destination", destination))
}

/// Rule 6. The attempts of a retry destination are its origin's, so that they contradict nothing there.
pub(super) fn attempts(subject: &Subject<'_>) -> Option<Found> {
    let attempts = subject.fields.retry.max_attempts?;
    if subject.role.origin.is_some() {
        return None;
    }
    let strategy = subject.spec.retry.strategy;
    let one = attempts.map(NonZeroU32::get) == Some(1);
    let (message, help) = match (strategy, one) {
        (RetryStrategy::None, false) => {
            ("there is no strategy for a second attempt", "name a strategy, or use max_attempts = 1")
        }
        (RetryStrategy::None, true) | (_, false) => return None,
        (_, true) => (
            "the first attempt is the only one, so that the strategy is never used",
            "raise max_attempts, which counts the first attempt too, or use strategy = NONE",
        ),
    };
    let attempts = attempts.map_or("unlimited".to_owned(), |limit| limit.to_string());
    let found = Found::new(message, help).field("retry.strategy", written(&strategy));
    Some(found.field("retry.max_attempts", attempts))
}

/// Rule 7.
pub(super) fn backoff(subject: &Subject<'_>) -> Option<Found> {
    let fields = &subject.fields.retry;
    let (first, max, multiplier) = (fields.first?, fields.max?, fields.multiplier?);
    let mut wrong = Vec::new();
    if first > max {
        wrong.push("the first delay is above the longest");
    }
    if first.is_zero() {
        wrong.push("without a delay a failing handler would spin");
    }
    if multiplier < 1.0 {
        wrong.push("the delays would shrink");
    }
    (subject.spec.retry.strategy != RetryStrategy::None && !wrong.is_empty()).then(|| {
        Found::new(wrong.join("; "), "use 0 < retry.first <= retry.max and retry.multiplier >= 1")
            .field("retry.first", format_duration(first))
            .field("retry.max", format_duration(max))
            .field("retry.multiplier", multiplier)
    })
}
