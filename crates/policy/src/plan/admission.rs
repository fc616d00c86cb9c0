//! The limits that all destinations share, once checked.

use std::num::NonZeroUsize;
use std::time::Duration;

/// The limits that all destinations share. Each value is in its range.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct AdmissionSetup {
    /// How many publishes may be in flight. Default 4096.
    pub in_flight: NonZeroUsize,
    /// How many bytes they may hold. Default 256 MiB.
    pub bytes: NonZeroUsize,
    /// How long a publish waits for room; zero refuses at once. Default 1 s.
    pub wait: Duration,
    /// The share of both that is kept for retry and dead-letter copies, from 0 to below 1. Default 0.1.
    pub internal_share: f64,
}

impl Default for AdmissionSetup {
    fn default() -> Self {
        Self {
            in_flight: NonZeroUsize::MIN.saturating_add(4095),
            bytes: NonZeroUsize::MIN.saturating_add((256 << 20) - 1),
            wait: Duration::from_secs(1),
            internal_share: 0.1,
        }
    }
}
