//! Counts and sizes that exist only inside their range.

use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};

use serde::{Deserialize, Serialize};

/// Why a number was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} of {given} is out of range: {range}")]
pub struct OutOfRange {
    what: &'static str,
    given: String,
    range: &'static str,
}

impl OutOfRange {
    /// Describes a refused value. Adapters use it for their own bounds.
    #[must_use]
    pub fn new(what: &'static str, given: impl Into<String>, range: &'static str) -> Self {
        Self { what, given: given.into(), range }
    }

    /// Returns the legal range, in words.
    #[must_use]
    pub const fn range(&self) -> &'static str {
        self.range
    }
}

/// The largest message a destination takes, in bytes; payload, key and headers count. At least 1 byte, at most
/// 1 GiB; the default is 1 MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MaxPayload(NonZeroUsize);

impl MaxPayload {
    /// 1 GiB.
    pub const LARGEST: usize = 1 << 30;

    /// Checks a size in bytes.
    ///
    /// # Errors
    /// [`OutOfRange`] for zero and above 1 GiB.
    pub fn new(bytes: usize) -> Result<Self, OutOfRange> {
        NonZeroUsize::new(bytes)
            .filter(|n| n.get() <= Self::LARGEST)
            .map(Self)
            .ok_or_else(|| OutOfRange::new("payload limit", bytes.to_string(), "1 byte to 1 GiB"))
    }

    /// Returns the size in bytes.
    #[must_use]
    pub const fn get(self) -> usize {
        self.0.get()
    }
}

impl Default for MaxPayload {
    fn default() -> Self {
        Self(NonZeroUsize::MIN.saturating_add((1 << 20) - 1))
    }
}

/// The number of an attempt, counted from 1: the first try is attempt 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Attempt(NonZeroU32);

impl Attempt {
    /// The first attempt.
    pub const FIRST: Self = Self(NonZeroU32::MIN);

    /// Checks a number.
    #[must_use]
    pub const fn new(number: u32) -> Option<Self> {
        match NonZeroU32::new(number) {
            Some(n) => Some(Self(n)),
            None => None,
        }
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0.get()
    }

    /// Returns the attempt after this one; the last number repeats itself rather than wrap.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_limit_is_one_byte_to_one_gibibyte() {
        assert!(MaxPayload::new(0).is_err());
        assert!(MaxPayload::new(usize::MAX).is_err());
        assert_eq!(MaxPayload::new(1).unwrap().get(), 1);
        assert_eq!(MaxPayload::new(MaxPayload::LARGEST).unwrap().get(), MaxPayload::LARGEST);
        assert_eq!(MaxPayload::default().get(), 1 << 20);
    }

    #[test]
    fn attempts_count_from_one_and_never_wrap() {
        assert!(Attempt::new(0).is_none());
        assert_eq!(Attempt::FIRST.next().get(), 2);
        assert_eq!(Attempt::new(u32::MAX).unwrap().next().get(), u32::MAX);
        assert!(serde_json::from_str::<Attempt>("0").is_err());
    }
}
