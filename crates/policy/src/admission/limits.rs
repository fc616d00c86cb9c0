//! The process-wide limits, checked.

use std::num::NonZeroUsize;
use std::time::Duration;

use consign_core_api::limit::OutOfRange;
use consign_core_api::time::LONGEST;

use super::class::Class;
use super::units::{LARGEST_BYTES, LARGEST_COUNT, Units};

/// The process-wide limits of admission.
///
/// The reserved share is a pool of its own that only [`Class::Internal`] takes from; what is left is common to all
/// three. Both count and bytes are split alike, so that retry and dead-letter copies find room however much the
/// application publishes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdmissionLimits {
    in_flight: NonZeroUsize,
    bytes: NonZeroUsize,
    wait: Duration,
    internal_share: f64,
}

impl AdmissionLimits {
    /// Checks limits: how many messages and bytes may be in flight in the whole process (at most 1,048,576 and
    /// 512 GiB), how long a publish waits for room at most (zero to 30 days; zero is not at all), and which share is
    /// reserved (0 to 0.9; 0 reserves nothing).
    ///
    /// # Errors
    /// [`OutOfRange`] for a value out of its range, and where the share leaves nothing to the other classes.
    pub fn new(
        in_flight: NonZeroUsize,
        bytes: NonZeroUsize,
        wait: Duration,
        internal_share: f64,
    ) -> Result<Self, OutOfRange> {
        if in_flight.get() as u64 > LARGEST_COUNT {
            let range = "1 to 1048576 messages";
            return Err(OutOfRange::new("admission in-flight limit", in_flight.to_string(), range));
        }
        if bytes.get() as u64 > LARGEST_BYTES {
            return Err(OutOfRange::new("admission byte limit", bytes.to_string(), "1 byte to 512 GiB"));
        }
        if wait > LONGEST {
            return Err(OutOfRange::new("admission wait", format!("{wait:?}"), "0 to 30 days"));
        }
        if !(0.0..=0.9).contains(&internal_share) {
            return Err(OutOfRange::new("admission internal share", internal_share.to_string(), "0 to 0.9"));
        }
        let limits = Self { in_flight, bytes, wait, internal_share };
        if limits.common().count() == 0 || limits.common().bytes() == 0 {
            let given = format!("{in_flight} messages and {bytes} bytes");
            let range = "at least 2 of each where a share is reserved";
            return Err(OutOfRange::new("admission limits", given, range));
        }
        Ok(limits)
    }

    /// Returns how many messages may be in flight in the whole process.
    #[must_use]
    pub const fn in_flight(&self) -> NonZeroUsize {
        self.in_flight
    }

    /// Returns how many bytes may be in flight in the whole process.
    #[must_use]
    pub const fn bytes(&self) -> NonZeroUsize {
        self.bytes
    }

    /// Returns how long a publish waits for room at most.
    #[must_use]
    pub const fn wait(&self) -> Duration {
        self.wait
    }

    /// Returns the share that is reserved for [`Class::Internal`].
    #[must_use]
    pub const fn internal_share(&self) -> f64 {
        self.internal_share
    }

    /// Returns the size of the largest message that a class can ever be admitted with; a destination whose
    /// `max_payload` is above it should be refused at start.
    #[must_use]
    pub fn largest_message(&self, class: Class) -> usize {
        let bytes = match class {
            Class::External | Class::Handler => self.common().bytes(),
            Class::Internal => self.common().bytes().max(self.reserve().bytes()),
        };
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// What all classes share.
    pub(super) fn common(&self) -> Units {
        let reserve = self.reserve();
        Units::new(self.in_flight.get() as u64 - reserve.count(), self.bytes.get() as u64 - reserve.bytes())
    }

    /// What only [`Class::Internal`] takes from.
    pub(super) fn reserve(&self) -> Units {
        Units::new(self.share_of(self.in_flight), self.share_of(self.bytes))
    }

    /// The share of a limit, rounded, and at least one where anything is reserved.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "limits are below 2^40, which a float holds exactly, and the share is 0 to 0.9"
    )]
    fn share_of(&self, limit: NonZeroUsize) -> u64 {
        if self.internal_share == 0.0 {
            return 0;
        }
        ((limit.get() as f64 * self.internal_share).round() as u64).clamp(1, limit.get() as u64)
    }
}

impl Default for AdmissionLimits {
    /// 4096 messages, 256 MiB, a wait of 1 s, and a share of 0.1.
    fn default() -> Self {
        Self {
            in_flight: NonZeroUsize::MIN.saturating_add(4095),
            bytes: NonZeroUsize::MIN.saturating_add((256 << 20) - 1),
            wait: Duration::from_secs(1),
            internal_share: 0.1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n(value: usize) -> NonZeroUsize {
        NonZeroUsize::new(value).unwrap()
    }

    #[test]
    fn values_out_of_range_are_refused_and_never_panic() {
        let (wait, share) = (Duration::ZERO, 0.0);
        assert!(AdmissionLimits::new(n(1), n(1), wait, share).is_ok());
        assert!(AdmissionLimits::new(n(1 << 20), n(1 << 39), LONGEST, 0.9).is_ok());
        assert!(AdmissionLimits::new(n(usize::MAX), n(1), wait, share).is_err());
        assert!(AdmissionLimits::new(n(1), n(usize::MAX), wait, share).is_err());
        assert!(AdmissionLimits::new(n(9), n(9), Duration::MAX, share).is_err());
        for share in [-0.1, 0.91, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(AdmissionLimits::new(n(9), n(9), wait, share).is_err(), "{share}");
        }
    }

    #[test]
    fn a_share_that_leaves_nothing_to_the_others_is_refused() {
        assert!(AdmissionLimits::new(n(1), n(100), Duration::ZERO, 0.1).is_err());
        assert!(AdmissionLimits::new(n(100), n(1), Duration::ZERO, 0.1).is_err());
        let least = AdmissionLimits::new(n(2), n(2), Duration::ZERO, 0.1).unwrap();
        assert_eq!((least.common().count(), least.reserve().count()), (1, 1));
    }

    #[test]
    fn both_pools_together_are_the_limit() {
        let limits = AdmissionLimits::default();
        assert_eq!((limits.common().count(), limits.reserve().count()), (3686, 410));
        assert_eq!(limits.common().bytes() + limits.reserve().bytes(), 256 << 20);
        assert!(limits.largest_message(Class::External) < 256 << 20);
        let checked = AdmissionLimits::new(n(4096), n(256 << 20), Duration::from_secs(1), 0.1).unwrap();
        assert_eq!(checked, limits);
    }
}
