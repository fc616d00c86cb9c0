//! How everything is.

use std::fmt;

use consign_core_api::spi::ConnectionHealth;
use consign_core_api::{DestinationName, GroupName, TransportName};
use consign_policy::admission::Class;

use crate::core::Core;

/// How everything is: alive, ready, and each transport and consumer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Health {
    /// Nothing is stuck for good: restarting the process would not help.
    pub live: bool,
    /// Work is taken and done: every transport is up, no consumer stands still, nothing is shut down.
    pub ready: bool,
    /// Each transport.
    pub transports: Vec<(TransportName, ConnectionHealth)>,
    /// Each destination, in the order of their names.
    pub destinations: Vec<DestinationHealth>,
    /// Each consumer.
    pub consumers: Vec<ConsumerHealth>,
    /// How many publishes are in flight.
    pub publishes_in_flight: u64,
    /// How many bytes are charged for publishes.
    pub bytes_in_flight: u64,
}

/// How a destination is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DestinationHealth {
    /// Its name.
    pub destination: DestinationName,
    /// The transport that carries it.
    pub transport: TransportName,
    /// Its transport is up, it takes publishes, and none of its consumers stands still.
    pub ready: bool,
    /// How many publishes are in flight, of at most `in_flight_limit`.
    pub publishes_in_flight: usize,
    /// The profile's `publish.in_flight`.
    pub in_flight_limit: usize,
}

/// How a consumer is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ConsumerHealth {
    /// What it consumes.
    pub destination: DestinationName,
    /// Its group.
    pub group: GroupName,
    /// It runs.
    pub running: bool,
    /// How many ordering units stand still, unsettled, until somebody looks. A subscription whose task died counts as
    /// one, until the consumer is stopped.
    pub halted_units: usize,
}

impl ConsumerHealth {
    pub(crate) const fn new(
        destination: DestinationName,
        group: GroupName,
        running: bool,
        halted_units: usize,
    ) -> Self {
        Self { destination, group, running, halted_units }
    }
}

impl Health {
    pub(crate) async fn of(core: &Core) -> Self {
        let mut transports = Vec::with_capacity(core.connections.len());
        for (name, connection) in &core.connections {
            transports.push((name.clone(), connection.health().await));
        }
        let consumers = core.consumers.health();
        let stopped = core.stop.is_cancelled();
        let closing = core.admission.is_closed(Class::External);
        let standing = consumers.iter().any(|consumer| consumer.halted_units > 0);
        let usage = core.admission.usage();
        let open = !stopped && !closing;
        let destinations = destinations(core, &transports, &consumers, open);
        Self {
            live: !stopped,
            ready: open && !standing && transports.iter().all(|(_, health)| health.is_up()),
            transports,
            destinations,
            consumers,
            publishes_in_flight: usage.in_flight(),
            bytes_in_flight: usage.bytes(),
        }
    }
}

fn destinations(
    core: &Core,
    transports: &[(TransportName, ConnectionHealth)],
    consumers: &[ConsumerHealth],
    open: bool,
) -> Vec<DestinationHealth> {
    let one = |(name, destination): (&DestinationName, &std::sync::Arc<crate::core::OpenDestination>)| {
        let transport = destination.profile().transport();
        let up = transports.iter().any(|(known, health)| known == transport && health.is_up());
        let stands =
            consumers.iter().any(|consumer| consumer.destination == *name && consumer.halted_units > 0);
        DestinationHealth {
            destination: name.clone(),
            transport: transport.clone(),
            ready: open && up && !stands,
            publishes_in_flight: destination.gate.in_flight(),
            in_flight_limit: destination.gate.limit().get(),
        }
    };
    core.destinations.iter().map(one).collect()
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "live: {}, ready: {}", self.live, self.ready)
    }
}
