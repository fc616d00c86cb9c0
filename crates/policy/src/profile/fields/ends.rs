//! What becomes of a message that failed for good, and who says so.

use consign_core_api::DeliveryGuarantee;

use super::{Checks, Role};
use crate::profile::{OnExhausted, ProfileSpec};

/// A retry destination takes over its origin's messages, and with them the promise: only AT_LEAST_ONCE retries.
pub(super) fn delivery(spec: &ProfileSpec, role: Role<'_>, checks: &mut Checks<'_>) {
    if role.origin.is_some() && spec.delivery == DeliveryGuarantee::AtMostOnce {
        let range = "AT_LEAST_ONCE: a retry destination keeps the promise that its origin made";
        checks.refuse("delivery", spec.delivery, range);
    }
}

/// Decides what becomes of a message that failed for good.
pub(super) fn on_exhausted(
    spec: &ProfileSpec,
    role: Role<'_>,
    checks: &mut Checks<'_>,
) -> Option<OnExhausted> {
    if role.origin.is_some() {
        return of_a_retry_destination(spec, checks);
    }
    let (end, range) = match (spec.delivery, &spec.dead_letter) {
        (DeliveryGuarantee::AtMostOnce, _) => {
            (OnExhausted::Discard, "discard: AT_MOST_ONCE has settled the message before")
        }
        (_, Some(_)) => (OnExhausted::DeadLetter, "dead_letter, because one is named"),
        (_, None) if spec.on_exhausted == Some(OnExhausted::Discard) => (OnExhausted::Discard, ""),
        (_, None) => (OnExhausted::Halt, "discard or halt, because no dead letter is named"),
    };
    match spec.on_exhausted {
        Some(written) if written != end => checks.take("on_exhausted", written, Err(range)),
        _ => Some(end),
    }
}

/// The origin's dead letter and rule are filled in once the origin is checked.
fn of_a_retry_destination(spec: &ProfileSpec, checks: &mut Checks<'_>) -> Option<OnExhausted> {
    let range = "none: the origin's governs its retry destinations";
    if let Some(written) = &spec.dead_letter {
        checks.refuse("dead_letter", format_args!("{written:?}"), range);
    }
    if let Some(written) = spec.on_exhausted {
        checks.refuse("on_exhausted", written, range);
    }
    Some(OnExhausted::Halt)
}
