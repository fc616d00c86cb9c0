//! The limits that all destinations share, as written.

use std::time::Duration;

use serde::Deserialize;

use super::humane;

/// What is written of the limits that all destinations share.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct AdmissionSpec {
    /// How many publishes may be in flight. Default 4096.
    pub in_flight: u64,
    /// How many bytes they may hold. Default 256 MiB.
    #[serde(deserialize_with = "humane::size")]
    pub bytes: u64,
    /// How long a publish waits for room. Default 1 s.
    #[serde(deserialize_with = "humane::duration")]
    pub wait: Duration,
    /// The share of both that is kept for retry and dead-letter copies. Default 0.1.
    pub internal_share: f64,
}

impl Default for AdmissionSpec {
    fn default() -> Self {
        Self { in_flight: 4096, bytes: 256 << 20, wait: Duration::from_secs(1), internal_share: 0.1 }
    }
}

impl AdmissionSpec {
    /// Sets how many publishes may be in flight.
    #[must_use]
    pub const fn in_flight(mut self, publishes: u64) -> Self {
        self.in_flight = publishes;
        self
    }

    /// Sets how many bytes they may hold.
    #[must_use]
    pub const fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = bytes;
        self
    }

    /// Sets how long a publish waits for room.
    #[must_use]
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Sets the share of both that is kept for retry and dead-letter copies.
    #[must_use]
    pub const fn internal_share(mut self, share: f64) -> Self {
        self.internal_share = share;
        self
    }
}
