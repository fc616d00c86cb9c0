//! The values of the consuming side.

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use consign_core_api::OrderingScope;
use consign_core_api::spi::ConsumerSetup;

use super::Checks;
use crate::profile::ConsumerSpec;

#[derive(Debug)]
pub(crate) struct ConsumerFields {
    pub(crate) concurrency: Option<NonZeroUsize>,
    pub(crate) unit_in_flight: Option<NonZeroUsize>,
    pub(crate) handler_timeout: Option<Duration>,
    pub(crate) settlement_deadline: Option<Duration>,
    /// The inner `None` is no limit.
    pub(crate) max_deliveries: Option<Option<NonZeroU32>>,
}

impl ConsumerFields {
    pub(super) fn check(spec: &ConsumerSpec, ordering: OrderingScope, checks: &mut Checks<'_>) -> Self {
        let concurrency = match spec.concurrency {
            Some(handlers) => checks.count("consumer.concurrency", handlers),
            None if ordering == OrderingScope::Destination => Some(NonZeroUsize::MIN),
            None => Some(ConsumerSetup::default().concurrency),
        };
        let unit = "consumer.max_in_flight_per_ordering_unit";
        Self {
            concurrency,
            unit_in_flight: checks.count(unit, spec.max_in_flight_per_ordering_unit),
            handler_timeout: checks.timeout("consumer.handler_timeout", spec.handler_timeout),
            settlement_deadline: checks.timeout("consumer.settlement_deadline", spec.settlement_deadline),
            max_deliveries: checks.limit("consumer.max_deliveries", spec.max_deliveries),
        }
    }
}
