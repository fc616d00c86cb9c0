//! The limits that all destinations share.

use std::num::NonZeroUsize;

use consign_core_api::Problem;
use humantime::format_duration;

use crate::admission::AdmissionLimits;
use crate::profile::{AdmissionSpec, Checks, Size};

/// Checks each limit by itself, then all together. `None` where one was refused.
pub(super) fn check(spec: &AdmissionSpec, problems: &mut Vec<Problem>) -> Option<AdmissionLimits> {
    let mut checks = Checks::shared(problems);
    let usual = AdmissionLimits::default();
    let in_flight = at_least_one(spec.in_flight).and_then(|count| {
        range(AdmissionLimits::new(count, usual.bytes(), usual.wait(), 0.0)).map(|_| count)
    });
    let bytes = at_least_one(spec.bytes).and_then(|bytes| {
        range(AdmissionLimits::new(usual.in_flight(), bytes, usual.wait(), 0.0)).map(|_| bytes)
    });
    let wait = range(AdmissionLimits::new(usual.in_flight(), usual.bytes(), spec.wait, 0.0));
    let share =
        range(AdmissionLimits::new(usual.in_flight(), usual.bytes(), usual.wait(), spec.internal_share));

    let in_flight = checks.take("admission.in_flight", spec.in_flight, in_flight);
    let bytes = checks.take("admission.bytes", Size(spec.bytes), bytes);
    let wait = checks.take("admission.wait", format_duration(spec.wait), wait);
    let share = checks.take("admission.internal_share", spec.internal_share, share);
    let (in_flight, bytes, _, _) = (in_flight?, bytes?, wait?, share?);
    let together = range(AdmissionLimits::new(in_flight, bytes, spec.wait, spec.internal_share));
    checks.take("admission.internal_share", spec.internal_share, together)
}

fn at_least_one(written: u64) -> Result<NonZeroUsize, &'static str> {
    usize::try_from(written)
        .ok()
        .and_then(NonZeroUsize::new)
        .ok_or("at least 1, and no more than fits the machine")
}

fn range<T>(checked: Result<T, consign_core_api::limit::OutOfRange>) -> Result<T, &'static str> {
    checked.map_err(|refused| refused.range())
}
