//! How long a message that is retried in place may be held.

use std::num::NonZeroU32;
use std::time::Duration;

use consign_core_api::Attempt;
use consign_core_api::spi::{RetrySetup, RetryStrategy};
use humantime::format_duration;

use super::{Found, Subject};
use crate::retry::backoff;

/// How many delays are added up one by one. Beyond, each counts as long as the longest of them.
const ADDED_UP: u32 = 1000;

/// What the worst hold depends on.
pub(crate) struct Hold<'a> {
    /// The delays.
    pub(crate) retry: &'a RetrySetup,
    /// The first attempt that is held.
    pub(crate) from: u32,
    /// The last attempt; `None` is without end.
    pub(crate) attempts: Option<NonZeroU32>,
    /// How long each attempt may take.
    pub(crate) handler_timeout: Duration,
}

/// Returns the longest time for which a message may be held: every attempt takes as long as it may, and every delay
/// has the random share that makes it longest. Never too short; exact up to 1000 attempts. Saturates, and takes
/// constant time.
pub(crate) fn worst_hold(hold: &Hold<'_>) -> Duration {
    let Some(last) = hold.attempts.map(NonZeroU32::get) else { return Duration::MAX };
    let handled = last.saturating_sub(hold.from.saturating_sub(1));
    let mut held = hold.handler_timeout.saturating_mul(handled);
    for failed in hold.from..last {
        let longest = |failed| backoff(hold.retry, Attempt::new(failed).unwrap_or(Attempt::FIRST), 1.0);
        let delay = longest(failed);
        if delay >= hold.retry.max || failed - hold.from >= ADDED_UP {
            return held.saturating_add(longest(last).saturating_mul(last - failed));
        }
        held = held.saturating_add(delay);
    }
    held
}

/// Rule 13.
pub(super) fn exceeds_deadline(subject: &Subject<'_>) -> Option<Found> {
    let (retry, consumer) = (&subject.fields.retry, &subject.fields.consumer);
    let (handler_timeout, deadline) = (consumer.handler_timeout?, consumer.settlement_deadline?);
    let attempts = retry.max_attempts?;
    let mut delays = RetrySetup::default();
    delays.first = retry.first?;
    delays.max = retry.max?;
    delays.multiplier = retry.multiplier?;
    delays.jitter = retry.jitter?;
    if subject.spec.retry.strategy != RetryStrategy::InPlace || subject.spec.consumer.extend {
        return None;
    }
    let from = subject.role.place.saturating_add(1);
    let held = worst_hold(&Hold { retry: &delays, from, attempts, handler_timeout });
    if held < deadline {
        return None;
    }
    let text = match attempts {
        None => "attempts without end hold a message without end".to_owned(),
        Some(_) => format!("attempts and delays may hold a message for {}", format_duration(held)),
    };
    let help = "use consumer.extend = true, a longer settlement_deadline, or fewer or shorter attempts";
    let attempts = attempts.map_or("unlimited".to_owned(), |limit| limit.to_string());
    Some(
        Found::new(text, help)
            .field("consumer.extend", false)
            .field("consumer.settlement_deadline", format_duration(deadline))
            .field("consumer.handler_timeout", format_duration(handler_timeout))
            .field("retry.max_attempts", attempts)
            .field("retry.first", format_duration(delays.first))
            .field("retry.max", format_duration(delays.max))
            .field("retry.multiplier", delays.multiplier),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(first: u64, max: u64, multiplier: f64, from: u32, attempts: u32) -> Duration {
        let mut retry = RetrySetup::default();
        (retry.first, retry.max) = (Duration::from_millis(first), Duration::from_millis(max));
        (retry.multiplier, retry.jitter) = (multiplier, 0.2);
        let handler_timeout = Duration::from_secs(1);
        worst_hold(&Hold { retry: &retry, from, attempts: NonZeroU32::new(attempts), handler_timeout })
    }

    #[test]
    fn every_attempt_and_every_delay_at_its_longest_counts() {
        assert_eq!(hold(100, 10_000, 2.0, 1, 1), Duration::from_secs(1));
        assert_eq!(hold(100, 10_000, 2.0, 1, 4), Duration::from_millis(4000 + 100 + 200 + 400));
        assert_eq!(hold(100, 300, 2.0, 1, 6), Duration::from_millis(6000 + 100 + 200 + 3 * 300));
    }

    #[test]
    fn a_retry_destination_holds_only_the_attempts_that_are_left() {
        assert_eq!(hold(100, 10_000, 2.0, 3, 4), Duration::from_millis(2000 + 400));
        assert_eq!(hold(100, 10_000, 2.0, 9, 4), Duration::ZERO);
    }

    #[test]
    fn the_largest_counts_end_at_once_and_without_end_is_the_longest_hold() {
        assert_eq!(
            hold(100, 300, 1.0, 1, u32::MAX),
            Duration::from_millis(1100) * (u32::MAX - 1) + Duration::from_secs(1)
        );
        assert!(hold(1, 10_000, 1.000_000_001, 1, u32::MAX) > Duration::from_secs(u32::MAX.into()));
        assert_eq!(hold(100, 300, 2.0, 1, 0), Duration::MAX);
    }
}
