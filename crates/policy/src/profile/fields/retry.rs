//! The values of the retry.

use std::num::NonZeroU32;
use std::time::Duration;

use consign_core_api::spi::RetryStrategy;

use super::{Checks, Role};
use crate::profile::{RetrySpec, spec::ATTEMPTS};

#[derive(Debug)]
pub(crate) struct RetryFields {
    /// The inner `None` is no limit. A retry destination has its origin's.
    pub(crate) max_attempts: Option<Option<NonZeroU32>>,
    pub(crate) first: Option<Duration>,
    pub(crate) max: Option<Duration>,
    pub(crate) multiplier: Option<f64>,
    pub(crate) jitter: Option<f64>,
}

impl RetryFields {
    pub(super) fn check(spec: &RetrySpec, role: Role<'_>, checks: &mut Checks<'_>) -> Self {
        let max_attempts = match spec.max_attempts {
            Some(written) if role.origin.is_some() => {
                checks.refuse(
                    "retry.max_attempts",
                    written,
                    "none: the origin's limit governs its retry destinations",
                );
                None
            }
            Some(written) => checks.limit("retry.max_attempts", written),
            None if spec.strategy == RetryStrategy::None => Some(NonZeroU32::new(1)),
            None => Some(NonZeroU32::new(ATTEMPTS)),
        };
        let finite = spec.multiplier.is_finite().then_some(spec.multiplier).ok_or("a finite number");
        let share = (0.0..=1.0).contains(&spec.jitter).then_some(spec.jitter).ok_or("0 to 1");
        Self {
            max_attempts,
            first: checks.delay("retry.first", spec.first),
            max: checks.delay("retry.max", spec.max),
            multiplier: checks.take("retry.multiplier", spec.multiplier, finite),
            jitter: checks.take("retry.jitter", spec.jitter, share),
        }
    }
}
