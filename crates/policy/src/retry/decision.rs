//! The six decisions, and why the last three are made.

use std::fmt;
use std::time::Duration;

use consign_core_api::{Attempt, Code, DestinationName, FailureCategory};

use crate::codes;

/// What is to be done with a message that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "each decision must be carried out, so that each is matched")]
#[must_use]
pub enum RetryDecision {
    /// Handle it again after this time, in memory, its ordering unit waiting for it.
    RetryInPlace(Duration),
    /// Give it back to the broker, to come again not earlier than after this time. Where the broker cannot delay,
    /// it is given back when the time has passed.
    Redeliver(Duration),
    /// Publish a copy to this destination, whose reader handles it not earlier than after this time.
    Republish(DestinationName, Duration),
    /// Publish a copy to this dead letter.
    DeadLetter(DestinationName, Reason),
    /// Settle it, and count it as lost on purpose.
    Discard(Reason),
    /// Leave it unsettled, and stop its ordering unit.
    Halt(Reason),
}

impl RetryDecision {
    /// Returns how long until the next attempt; `None` where there is none.
    #[must_use]
    pub const fn delay(&self) -> Option<Duration> {
        match self {
            Self::RetryInPlace(after) | Self::Redeliver(after) | Self::Republish(_, after) => Some(*after),
            Self::DeadLetter(..) | Self::Discard(_) | Self::Halt(_) => None,
        }
    }

    /// Returns why there is no further attempt; `None` where there is one.
    #[must_use]
    pub const fn reason(&self) -> Option<Reason> {
        match self {
            Self::DeadLetter(_, reason) | Self::Discard(reason) | Self::Halt(reason) => Some(*reason),
            Self::RetryInPlace(_) | Self::Redeliver(_) | Self::Republish(..) => None,
        }
    }
}

/// Why there is no further attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The last attempt that the origin allows has failed.
    AttemptsExhausted(Attempt),
    /// A failure of this category fails the same way again.
    NotRetryable(FailureCategory),
    /// The profile, or the rung where the message stands, retries nothing.
    NoRetry,
    /// The broker delivered it more often than the consumer allows; the count is the broker's.
    DeliveriesExhausted(u32),
    /// It may not be given back without breaking its order, nor be held until another attempt has ended.
    HoldExhausted,
}

impl Reason {
    /// Returns the stable code.
    #[must_use]
    pub const fn code(self) -> Code {
        match self {
            Self::AttemptsExhausted(_) => codes::ATTEMPTS_EXHAUSTED,
            Self::NotRetryable(_) | Self::NoRetry => codes::NOT_RETRIED,
            Self::DeliveriesExhausted(_) => codes::DELIVERIES_EXHAUSTED,
            Self::HoldExhausted => codes::HOLD_EXHAUSTED,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AttemptsExhausted(attempt) => write!(f, "attempt {attempt} failed and was the last"),
            Self::NotRetryable(category) => write!(f, "a failure of category {category} is not retried"),
            Self::NoRetry => f.write_str("nothing is retried here"),
            Self::DeliveriesExhausted(count) => write!(f, "the broker counts {count} deliveries"),
            Self::HoldExhausted => f.write_str("it cannot be held for another attempt"),
        }
    }
}
