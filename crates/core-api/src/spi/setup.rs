//! What an adapter is told of one destination.

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::guarantee::{DeliveryGuarantee, ExternalSideEffectGuarantee, OrderingScope};
use crate::limit::MaxPayload;
use crate::name::DestinationName;
use crate::outcome::EvidenceDemand;
use crate::settlement::SettlementLevel;

/// What the library may do to the broker's topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TopologyMode {
    /// Create what is missing; never alter what is there.
    Declare,
    /// Create nothing, and refuse what differs; the default.
    #[default]
    Verify,
    /// Neither create nor look.
    Trust,
}

/// Whether a publish waits for the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Confirm {
    /// It does; the default.
    #[default]
    Required,
    /// It does not; the outcome is at best AMBIGUOUS `CONFIRMATION_NOT_REQUESTED`.
    None,
}

/// Where a group starts that did not exist before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Start {
    /// With the oldest message that is kept; the default.
    #[default]
    Earliest,
    /// With the first message published after its creation.
    Latest,
}

/// How a failed message is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum RetryStrategy {
    /// Not at all; the default.
    #[default]
    None,
    /// In memory, the unit waiting for it.
    InPlace,
    /// Given back to the broker, which delivers it again.
    Redelivery,
    /// Given to a delay queue of the broker's.
    BrokerDelayed,
    /// Copied to another destination.
    RetryDestination,
}

/// Whether a retry may let later messages overtake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum OrderImpact {
    /// It may not; the default.
    #[default]
    Preserve,
    /// It may.
    AllowReorder,
}

/// The publishing side of a destination.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PublishSetup {
    /// Whether a publish waits for the broker.
    pub confirm: Confirm,
    /// The time from the caller's call to the verdict. Default 5 s.
    pub deadline: Duration,
    /// The largest message. Default 1 MiB.
    pub max_payload: MaxPayload,
    /// How many publishes may be in flight. Default 1024.
    pub in_flight: NonZeroUsize,
    /// The least evidence. Default none.
    pub evidence: EvidenceDemand,
}

/// The consuming side of a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConsumerSetup {
    /// How many handlers run at once. Default 8; 1 where the destination is one sequence.
    pub concurrency: NonZeroUsize,
    /// How many messages of one ordering unit are in flight. Default 1.
    pub unit_in_flight: NonZeroUsize,
    /// How long a handler may run. Default 30 s.
    pub handler_timeout: Duration,
    /// How long a delivery may stay unsettled at the broker. Default 60 s.
    pub settlement_deadline: Duration,
    /// Whether that deadline is extended while a message waits or is handled. Default yes.
    pub extend: bool,
    /// Where a new group starts.
    pub start: Start,
    /// How many deliveries the broker may count before the message is dead-lettered unhandled; `None` is unlimited.
    /// Default 20.
    pub max_deliveries: Option<NonZeroU32>,
    /// The least settlement level. Default `Processed`.
    pub settlement: SettlementLevel,
}

/// How failed messages are tried again.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RetrySetup {
    /// The strategy.
    pub strategy: RetryStrategy,
    /// Whether later messages may overtake.
    pub impact: OrderImpact,
    /// The total number of attempts, the first included; `None` is unlimited.
    pub max_attempts: Option<NonZeroU32>,
    /// The delay before the second attempt. Default 100 ms.
    pub first: Duration,
    /// The longest delay. Default 10 s.
    pub max: Duration,
    /// What each delay is multiplied by. Default 2.
    pub multiplier: f64,
    /// The share of each delay that is random, 0 to 1. Default 0.2.
    pub jitter: f64,
    /// The destination of the copies, with [`RetryStrategy::RetryDestination`].
    pub destination: Option<DestinationName>,
}

/// What an adapter is told of one destination. Each value is in its range, and contradictions across values were
/// refused before.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DestinationSetup {
    /// The logical name.
    pub name: DestinationName,
    /// What the library may do to the topology.
    pub topology: TopologyMode,
    /// How often a message may reach a handler.
    pub delivery: DeliveryGuarantee,
    /// Within which set handlers start in order.
    pub ordering: OrderingScope,
    /// What protects external effects.
    pub side_effects: ExternalSideEffectGuarantee,
    /// The publishing side.
    pub publish: PublishSetup,
    /// The consuming side.
    pub consumer: ConsumerSetup,
    /// How failed messages are tried again.
    pub retry: RetrySetup,
    /// What only the adapter understands.
    pub native: NativeSettings,
}

impl DestinationSetup {
    /// Makes a set-up with the default of everything that has one.
    #[must_use]
    pub fn new(name: DestinationName, delivery: DeliveryGuarantee, ordering: OrderingScope) -> Self {
        Self {
            name,
            topology: TopologyMode::default(),
            delivery,
            ordering,
            side_effects: ExternalSideEffectGuarantee::None,
            publish: PublishSetup::default(),
            consumer: ConsumerSetup {
                concurrency: if ordering == OrderingScope::Destination { NonZeroUsize::MIN } else { EIGHT },
                ..ConsumerSetup::default()
            },
            retry: RetrySetup::default(),
            native: NativeSettings::default(),
        }
    }
}

const EIGHT: NonZeroUsize = NonZeroUsize::MIN.saturating_add(7);

impl Default for PublishSetup {
    fn default() -> Self {
        Self {
            confirm: Confirm::default(),
            deadline: Duration::from_secs(5),
            max_payload: MaxPayload::default(),
            in_flight: NonZeroUsize::MIN.saturating_add(1023),
            evidence: EvidenceDemand::default(),
        }
    }
}

impl Default for ConsumerSetup {
    fn default() -> Self {
        Self {
            concurrency: EIGHT,
            unit_in_flight: NonZeroUsize::MIN,
            handler_timeout: Duration::from_secs(30),
            settlement_deadline: Duration::from_secs(60),
            extend: true,
            start: Start::default(),
            max_deliveries: NonZeroU32::new(20),
            settlement: SettlementLevel::Processed,
        }
    }
}

impl Default for RetrySetup {
    fn default() -> Self {
        Self {
            strategy: RetryStrategy::default(),
            impact: OrderImpact::default(),
            max_attempts: NonZeroU32::new(1),
            first: Duration::from_millis(100),
            max: Duration::from_secs(10),
            multiplier: 2.0,
            jitter: 0.2,
            destination: None,
        }
    }
}

/// Settings that only the adapter understands: opaque to everything else, refused by the adapter where unknown.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NativeSettings(serde_json::Map<String, serde_json::Value>);

impl NativeSettings {
    /// Sets a value. For set-ups that are built in code.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<serde_json::Value>) -> Self {
        self.0.insert(name.into(), value.into());
        self
    }

    /// Tells whether nothing is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the settings into the adapter's own type, which should refuse unknown fields.
    ///
    /// # Errors
    /// A text for people that names the field at fault.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, String> {
        serde_json::from_value(serde_json::Value::Object(self.0.clone())).map_err(|error| error.to_string())
    }
}
