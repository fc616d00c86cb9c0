//! Rules about the delivery guarantee and identity.

use consign_core_api::spi::{Confirm, RetryStrategy};
use consign_core_api::{DeliveryGuarantee, ExternalSideEffectGuarantee};

use super::{Found, Subject, written};
use crate::profile::MessageIdSpec;

fn at_most_once(subject: &Subject<'_>, message: &'static str, help: &'static str) -> Option<Found> {
    let delivery = subject.spec.delivery;
    (delivery == DeliveryGuarantee::AtMostOnce).then(|| Found::new(message, help).field("delivery", delivery))
}

/// Rule 8.
pub(super) fn at_most_once_with_retry(subject: &Subject<'_>) -> Option<Found> {
    let strategy = subject.spec.retry.strategy;
    if strategy == RetryStrategy::None {
        return None;
    }
    let help = "use retry.strategy = NONE, or delivery = AT_LEAST_ONCE";
    let found = at_most_once(subject, "a message that is handled once at most is to be retried", help)?;
    Some(found.field("retry.strategy", written(&strategy)))
}

/// Rule 9.
pub(super) fn at_most_once_with_inbox(subject: &Subject<'_>) -> Option<Found> {
    let effects = subject.spec.side_effects;
    if effects != ExternalSideEffectGuarantee::InboxTransactional {
        return None;
    }
    let help = "use delivery = AT_LEAST_ONCE, or other side_effects";
    let found = at_most_once(subject, "the message is settled before its inbox commits", help)?;
    Some(found.field("side_effects", effects))
}

/// Rule 10.
pub(super) fn at_least_once_without_confirmation(subject: &Subject<'_>) -> Option<Found> {
    let spec = subject.spec;
    let promised = spec.delivery == DeliveryGuarantee::AtLeastOnce;
    (promised && spec.publish.confirmation == Confirm::None).then(|| {
        Found::new(
            "a message is never to be lost and nobody waits for the broker to have it",
            "use publish.confirmation = required, or delivery = AT_MOST_ONCE",
        )
        .field("delivery", spec.delivery)
        .field("publish.confirmation", written(&spec.publish.confirmation))
    })
}

/// Rule 14.
pub(super) fn inbox_without_identity(subject: &Subject<'_>) -> Option<Found> {
    let spec = subject.spec;
    let inbox = spec.side_effects == ExternalSideEffectGuarantee::InboxTransactional;
    (inbox && spec.message_id == MessageIdSpec::None).then(|| {
        Found::new(
            "an inbox knows messages by their id and messages have none",
            "use message_id = generate, native or a header, or other side_effects",
        )
        .field("side_effects", spec.side_effects)
        .field("message_id", "none")
    })
}

/// Rule 15.
pub(super) fn at_most_once_with_dead_letter(subject: &Subject<'_>) -> Option<Found> {
    let dead_letter = subject.spec.dead_letter.as_ref()?;
    if subject.role.origin.is_some() {
        return None;
    }
    let help = "remove dead_letter, or use delivery = AT_LEAST_ONCE";
    let found = at_most_once(subject, "the message is settled before it could be copied", help)?;
    Some(found.field("dead_letter", dead_letter))
}
