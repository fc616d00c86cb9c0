//! The retry of a raw profile.

use std::time::Duration;

use consign_core_api::spi::{OrderImpact, RetrySetup, RetryStrategy};
use serde::Deserialize;

use super::{Limit, humane};

/// What is written of the retry.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RetrySpec {
    /// The strategy. Default none.
    pub strategy: RetryStrategy,
    /// Whether later messages may overtake. Default they may not.
    pub impact: OrderImpact,
    /// The total number of attempts, the first included. Default 5, and 1 without a strategy.
    pub max_attempts: Option<Limit>,
    /// The delay before the second attempt. Default 100 ms.
    #[serde(deserialize_with = "humane::duration")]
    pub first: Duration,
    /// The longest delay. Default 10 s.
    #[serde(deserialize_with = "humane::duration")]
    pub max: Duration,
    /// What each delay is multiplied by. Default 2.
    pub multiplier: f64,
    /// The share of each delay that is random, 0 to 1. Default 0.2.
    pub jitter: f64,
    /// The destination of the copies, with RETRY_DESTINATION.
    pub destination: Option<String>,
}

/// The attempts of a strategy that states no limit.
pub(crate) const ATTEMPTS: u32 = 5;

impl Default for RetrySpec {
    fn default() -> Self {
        let setup = RetrySetup::default();
        Self {
            strategy: setup.strategy,
            impact: setup.impact,
            max_attempts: None,
            first: setup.first,
            max: setup.max,
            multiplier: setup.multiplier,
            jitter: setup.jitter,
            destination: None,
        }
    }
}

impl RetrySpec {
    /// Writes a retry by a strategy.
    #[must_use]
    pub fn new(strategy: RetryStrategy) -> Self {
        Self { strategy, ..Self::default() }
    }

    /// Writes a retry by copies to another destination. Copies reorder, so the impact is ALLOW_REORDER.
    #[must_use]
    pub fn to(destination: impl Into<String>) -> Self {
        Self::new(RetryStrategy::RetryDestination).impact(OrderImpact::AllowReorder).destination(destination)
    }

    /// Sets whether later messages may overtake.
    #[must_use]
    pub const fn impact(mut self, impact: OrderImpact) -> Self {
        self.impact = impact;
        self
    }

    /// Sets the total number of attempts, the first included.
    #[must_use]
    pub fn max_attempts(mut self, attempts: impl Into<Limit>) -> Self {
        self.max_attempts = Some(attempts.into());
        self
    }

    /// Sets the delay before the second attempt.
    #[must_use]
    pub const fn first(mut self, delay: Duration) -> Self {
        self.first = delay;
        self
    }

    /// Sets the longest delay.
    #[must_use]
    pub const fn max(mut self, delay: Duration) -> Self {
        self.max = delay;
        self
    }

    /// Sets what each delay is multiplied by.
    #[must_use]
    pub const fn multiplier(mut self, factor: f64) -> Self {
        self.multiplier = factor;
        self
    }

    /// Sets the share of each delay that is random, 0 to 1.
    #[must_use]
    pub const fn jitter(mut self, share: f64) -> Self {
        self.jitter = share;
        self
    }

    /// Names the destination of the copies.
    #[must_use]
    pub fn destination(mut self, destination: impl Into<String>) -> Self {
        self.destination = Some(destination.into());
        self
    }
}
