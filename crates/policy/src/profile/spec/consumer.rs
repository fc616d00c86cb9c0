//! The consuming side of a raw profile.

use std::time::Duration;

use consign_core_api::SettlementLevel;
use consign_core_api::spi::{ConsumerSetup, Start};
use serde::Deserialize;

use super::{Limit, humane};

/// What is written of the consuming side.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ConsumerSpec {
    /// How many handlers run at once. Default 8; 1 where the ordering is DESTINATION.
    pub concurrency: Option<u64>,
    /// How many messages of one ordering unit are in flight. Default 1.
    pub max_in_flight_per_ordering_unit: u64,
    /// How long a handler may run. Default 30 s.
    #[serde(deserialize_with = "humane::duration")]
    pub handler_timeout: Duration,
    /// How long a delivery may stay unsettled at the broker. Default 60 s.
    #[serde(deserialize_with = "humane::duration")]
    pub settlement_deadline: Duration,
    /// Whether that deadline is extended while a message waits or is handled. Default yes.
    pub extend: bool,
    /// Where a new group starts. Default with the oldest message.
    pub start: Start,
    /// How many deliveries the broker may count before a message is dead-lettered unhandled. Default 20.
    pub max_deliveries: Limit,
    /// The least settlement level. Default processed.
    pub settlement: SettlementLevel,
}

impl Default for ConsumerSpec {
    fn default() -> Self {
        let setup = ConsumerSetup::default();
        Self {
            concurrency: None,
            max_in_flight_per_ordering_unit: setup.unit_in_flight.get() as u64,
            handler_timeout: setup.handler_timeout,
            settlement_deadline: setup.settlement_deadline,
            extend: setup.extend,
            start: setup.start,
            max_deliveries: setup.max_deliveries.map_or(Limit::Unlimited, |count| count.get().into()),
            settlement: setup.settlement,
        }
    }
}

impl ConsumerSpec {
    /// Sets how many handlers run at once.
    #[must_use]
    pub const fn concurrency(mut self, handlers: u64) -> Self {
        self.concurrency = Some(handlers);
        self
    }

    /// Sets how many messages of one ordering unit are in flight.
    #[must_use]
    pub const fn max_in_flight_per_ordering_unit(mut self, messages: u64) -> Self {
        self.max_in_flight_per_ordering_unit = messages;
        self
    }

    /// Sets how long a handler may run.
    #[must_use]
    pub const fn handler_timeout(mut self, timeout: Duration) -> Self {
        self.handler_timeout = timeout;
        self
    }

    /// Sets how long a delivery may stay unsettled at the broker.
    #[must_use]
    pub const fn settlement_deadline(mut self, deadline: Duration) -> Self {
        self.settlement_deadline = deadline;
        self
    }

    /// Sets whether that deadline is extended while a message waits or is handled.
    #[must_use]
    pub const fn extend(mut self, extend: bool) -> Self {
        self.extend = extend;
        self
    }

    /// Sets where a new group starts.
    #[must_use]
    pub const fn start(mut self, start: Start) -> Self {
        self.start = start;
        self
    }

    /// Sets how many deliveries the broker may count before a message is dead-lettered unhandled.
    #[must_use]
    pub fn max_deliveries(mut self, deliveries: impl Into<Limit>) -> Self {
        self.max_deliveries = deliveries.into();
        self
    }

    /// Sets the least settlement level.
    #[must_use]
    pub const fn settlement(mut self, least: SettlementLevel) -> Self {
        self.settlement = least;
        self
    }
}
