//! A profile that was validated.

use consign_core_api::spi::DestinationSetup;
use consign_core_api::{DestinationName, TransportName};

use super::{KeySource, MessageIdSource, OnExhausted};

/// What is promised of one destination. It exists only where every value is in its range, and a [`Plan`](crate::Plan)
/// holds it only where no two contradict each other.
#[derive(Debug, Clone, PartialEq)]
pub struct DestinationProfile {
    pub(crate) transport: TransportName,
    pub(crate) setup: DestinationSetup,
    pub(crate) key: KeySource,
    pub(crate) message_id: MessageIdSource,
    pub(crate) dead_letter: Option<DestinationName>,
    pub(crate) on_exhausted: OnExhausted,
}

impl DestinationProfile {
    /// Returns the logical name.
    #[must_use]
    pub const fn name(&self) -> &DestinationName {
        &self.setup.name
    }

    /// Returns the name of the transport that carries it.
    #[must_use]
    pub const fn transport(&self) -> &TransportName {
        &self.transport
    }

    /// Returns what the adapter is told.
    #[must_use]
    pub const fn setup(&self) -> &DestinationSetup {
        &self.setup
    }

    /// Returns where the key on the wire comes from.
    #[must_use]
    pub const fn key(&self) -> &KeySource {
        &self.key
    }

    /// Returns where the message id comes from.
    #[must_use]
    pub const fn message_id(&self) -> &MessageIdSource {
        &self.message_id
    }

    /// Returns where messages go that failed for good. A retry destination answers with its origin's.
    #[must_use]
    pub const fn dead_letter(&self) -> Option<&DestinationName> {
        self.dead_letter.as_ref()
    }

    /// Returns what becomes of a message that failed for good. A retry destination answers with its origin's.
    #[must_use]
    pub const fn on_exhausted(&self) -> OnExhausted {
        self.on_exhausted
    }
}
