//! Durations in a checked range, and the clock that time-dependent logic is given.

use std::fmt;
use std::time::{Duration, SystemTime};

use crate::limit::OutOfRange;

/// The longest duration that any setting takes: 30 days.
pub const LONGEST: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A bound on a wait: 1 ms to 30 days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timeout(Duration);

impl Timeout {
    /// The shortest bound, 1 ms: timers do not resolve less.
    pub const SHORTEST: Duration = Duration::from_millis(1);

    /// Checks a bound.
    ///
    /// # Errors
    /// [`OutOfRange`] below 1 ms and above 30 days.
    pub fn new(bound: Duration) -> Result<Self, OutOfRange> {
        if bound < Self::SHORTEST || bound > LONGEST {
            return Err(OutOfRange::new("timeout", format!("{bound:?}"), "1 ms to 30 days"));
        }
        Ok(Self(bound))
    }

    /// Returns the bound.
    #[must_use]
    pub const fn get(self) -> Duration {
        self.0
    }
}

/// A delay: zero to 30 days. Whether zero makes sense is for the rule that uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Delay(Duration);

impl Delay {
    /// No delay.
    pub const ZERO: Self = Self(Duration::ZERO);

    /// Checks a delay.
    ///
    /// # Errors
    /// [`OutOfRange`] above 30 days.
    pub fn new(delay: Duration) -> Result<Self, OutOfRange> {
        if delay > LONGEST {
            return Err(OutOfRange::new("delay", format!("{delay:?}"), "0 to 30 days"));
        }
        Ok(Self(delay))
    }

    /// Returns the delay.
    #[must_use]
    pub const fn get(self) -> Duration {
        self.0
    }
}

/// A point on a monotonic clock, as the time since that clock's start.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Moment(Duration);

impl Moment {
    /// The clock's start.
    pub const START: Self = Self(Duration::ZERO);
    /// Later than every other moment.
    pub const NEVER: Self = Self(Duration::MAX);

    /// Makes a moment from the time since the clock's start.
    #[must_use]
    pub const fn from_start(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    /// Returns the time since the clock's start.
    #[must_use]
    pub const fn since_start(self) -> Duration {
        self.0
    }

    /// Returns the moment `wait` later; at the end of time it stays there.
    #[must_use]
    pub const fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(wait))
    }

    /// Returns how long it is from `earlier` to this moment; zero where `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "+{:?}", self.0)
    }
}

/// A source of time, so that tests decide what time it is.
pub trait Clock: Send + Sync + 'static {
    /// Returns the current point on the monotonic clock. It never goes back.
    fn now(&self) -> Moment;

    /// Returns the current wall-clock time. It may jump.
    fn wall(&self) -> SystemTime;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extreme_durations_are_refused_and_never_panic() {
        assert!(Timeout::new(Duration::ZERO).is_err());
        assert!(Timeout::new(Duration::from_nanos(1)).is_err());
        assert!(Timeout::new(Duration::MAX).is_err());
        assert!(Timeout::new(LONGEST).is_ok());
        assert!(Delay::new(Duration::ZERO).is_ok());
        assert!(Delay::new(Duration::MAX).is_err());
    }

    #[test]
    fn moments_saturate() {
        assert_eq!(Moment::START.after(Duration::MAX).after(Duration::MAX), Moment::NEVER);
        assert_eq!(Moment::START.since(Moment::NEVER), Duration::ZERO);
    }
}
