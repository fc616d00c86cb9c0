//! The publishing side of a raw profile.

use std::time::Duration;

use consign_core_api::spi::{Confirm, PublishSetup};
use serde::Deserialize;

use super::{EvidenceSpec, humane};

/// What is written of the publishing side.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct PublishSpec {
    /// Whether a publish waits for the broker. Default required.
    pub confirmation: Confirm,
    /// The time from the caller's call to the verdict. Default 5 s.
    #[serde(deserialize_with = "humane::duration")]
    pub deadline: Duration,
    /// The largest message in bytes. Default 1 MiB; for a dead letter and a retry destination, that of the largest
    /// destination whose copies it takes plus 4 KiB.
    #[serde(deserialize_with = "humane::some_size")]
    pub max_payload: Option<u64>,
    /// How many publishes may be in flight. Default 1024.
    pub in_flight: u64,
    /// The least evidence. Default none.
    pub evidence: EvidenceSpec,
}

impl Default for PublishSpec {
    fn default() -> Self {
        let setup = PublishSetup::default();
        Self {
            confirmation: setup.confirm,
            deadline: setup.deadline,
            max_payload: None,
            in_flight: setup.in_flight.get() as u64,
            evidence: EvidenceSpec::default(),
        }
    }
}

impl PublishSpec {
    /// Sets whether a publish waits for the broker.
    #[must_use]
    pub const fn confirmation(mut self, confirm: Confirm) -> Self {
        self.confirmation = confirm;
        self
    }

    /// Sets the time from the caller's call to the verdict.
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets the largest message in bytes.
    #[must_use]
    pub const fn max_payload(mut self, bytes: u64) -> Self {
        self.max_payload = Some(bytes);
        self
    }

    /// Sets how many publishes may be in flight.
    #[must_use]
    pub const fn in_flight(mut self, publishes: u64) -> Self {
        self.in_flight = publishes;
        self
    }

    /// Sets the least evidence.
    #[must_use]
    pub const fn evidence(mut self, least: EvidenceSpec) -> Self {
        self.evidence = least;
        self
    }
}
