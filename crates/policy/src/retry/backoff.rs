//! How long to wait before the next attempt.

use std::time::Duration;

use consign_core_api::Attempt;
use consign_core_api::spi::RetrySetup;

/// Returns the delay after a failed attempt: `first` times `multiplier` to the power of the retries before it, at most
/// `max`, of which the share `jitter` is random.
///
/// Jitter only shortens, so that the result is never above `max`. `random` is from 0 to 1; anything else counts as 1.
/// A set-up out of its range never panics: a multiplier below 1 or not finite counts as 1, a jitter that is no share
/// as none.
#[must_use]
pub fn backoff(retry: &RetrySetup, attempt: Attempt, random: f64) -> Duration {
    let grown = grow(retry, attempt);
    let jitter = if retry.jitter.is_nan() { 0.0 } else { retry.jitter.clamp(0.0, 1.0) };
    let random = if (0.0..=1.0).contains(&random) { random } else { 1.0 };
    let kept = 1.0 - jitter * (1.0 - random);
    if kept >= 1.0 { grown } else { scale(grown, kept).min(grown) }
}

fn grow(retry: &RetrySetup, attempt: Attempt) -> Duration {
    let multiplier = if retry.multiplier.is_finite() { retry.multiplier.max(1.0) } else { 1.0 };
    let factor = multiplier.powf(f64::from(attempt.get() - 1));
    // The first delay as written, to the nanosecond; and zero times infinity is not asked for.
    let grown = if factor == 1.0 || retry.first.is_zero() { retry.first } else { scale(retry.first, factor) };
    grown.min(retry.max)
}

/// Multiplies, and ends at the longest duration.
fn scale(duration: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(duration.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn retry(first: Duration, max: Duration, multiplier: f64, jitter: f64) -> RetrySetup {
        let mut retry = RetrySetup::default();
        (retry.first, retry.max, retry.multiplier, retry.jitter) = (first, max, multiplier, jitter);
        retry
    }

    fn attempt(number: u32) -> Attempt {
        Attempt::new(number).unwrap()
    }

    #[test]
    fn delays_grow_from_the_first_and_end_at_the_longest() {
        let retry = retry(ms(100), ms(1000), 2.0, 0.0);
        let delays: Vec<_> = (1..=6).map(|n| backoff(&retry, attempt(n), 0.5)).collect();
        assert_eq!(delays, [ms(100), ms(200), ms(400), ms(800), ms(1000), ms(1000)]);
        assert_eq!(backoff(&retry, attempt(u32::MAX), 0.5), ms(1000));
    }

    #[test]
    fn the_share_of_jitter_is_random_and_only_shortens() {
        let retry = retry(ms(1000), ms(10_000), 2.0, 0.2);
        assert_eq!(backoff(&retry, attempt(1), 1.0), ms(1000));
        assert_eq!(backoff(&retry, attempt(1), 0.0), ms(800));
        assert_eq!(backoff(&retry, attempt(1), 0.5), ms(900));
    }

    #[test]
    fn values_out_of_range_neither_panic_nor_pass_the_longest_delay() {
        let wild = [0.0, -1.0, 0.5, 1e308, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        for first in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
            for max in [Duration::ZERO, ms(1), Duration::MAX] {
                for multiplier in wild {
                    for jitter in wild {
                        for random in wild {
                            for n in [1, 2, 1000, u32::MAX] {
                                let retry = retry(first, max, multiplier, jitter);
                                assert!(backoff(&retry, attempt(n), random) <= max);
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_first_delay_is_exact_however_long() {
        let long = Duration::new(1 << 60, 123_456_789);
        assert_eq!(backoff(&retry(long, Duration::MAX, 2.0, 0.0), attempt(1), 0.0), long);
    }
}
