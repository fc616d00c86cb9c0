//! What the suite needs to know of a broker.

use std::sync::Arc;

use async_trait::async_trait;
use consign_core_api::spi::Transport;
use consign_core_api::{EncodedMessage, MessagePosition};

use crate::profile::Profile;

/// A running broker, as the suite sees it.
#[async_trait]
pub trait Harness: Send + Sync + 'static {
    /// Returns the adapter's word, such as `in-memory`.
    fn adapter(&self) -> &'static str;

    /// Returns the broker's version, for the report.
    async fn version(&self) -> String;

    /// Returns a new transport to the broker. It is called once for each `Messaging` that a case builds, with the same
    /// broker behind it every time.
    fn transport(&self) -> Arc<dyn Transport>;

    /// Reads everything that a destination holds, oldest first, not through the adapter under test.
    ///
    /// # Errors
    /// A text for people.
    async fn read_back(&self, profile: &Profile, destination: &str) -> Result<Vec<Stored>, String>;

    /// Does something to the broker. Faults that the harness does not offer are listed in the report.
    ///
    /// # Errors
    /// [`NotOffered`], which is the default.
    async fn inflict(&self, fault: BrokerFault<'_>) -> Result<(), NotOffered> {
        Err(NotOffered(fault.kind()))
    }

    /// Tells which faults [`inflict`](Self::inflict) offers.
    fn offers(&self) -> &'static [FaultKind] {
        &[]
    }
}

/// Something that can be done to a broker.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum BrokerFault<'a> {
    /// Ends the broker without warning and starts it again on the same data.
    Restart,
    /// Stops it from answering until it is thawed.
    Freeze,
    /// Lets a frozen broker go on.
    Thaw,
    /// Breaks the delivery streams of a group, as a lost connection or a deleted consumer would.
    Interrupt {
        /// The destination.
        destination: &'a str,
        /// The group.
        group: &'a str,
    },
    /// Takes units from the group's members and assigns them anew.
    Revoke {
        /// The destination.
        destination: &'a str,
        /// The group.
        group: &'a str,
    },
}

/// The kinds of [`BrokerFault`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// See [`BrokerFault::Restart`].
    Restart,
    /// See [`BrokerFault::Freeze`] and [`BrokerFault::Thaw`].
    Freeze,
    /// See [`BrokerFault::Interrupt`].
    Interrupt,
    /// See [`BrokerFault::Revoke`].
    Revoke,
}

impl BrokerFault<'_> {
    /// Returns the kind.
    #[must_use]
    pub const fn kind(&self) -> FaultKind {
        match self {
            Self::Restart => FaultKind::Restart,
            Self::Freeze | Self::Thaw => FaultKind::Freeze,
            Self::Interrupt { .. } => FaultKind::Interrupt,
            Self::Revoke { .. } => FaultKind::Revoke,
        }
    }
}

/// A harness does not offer a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it names the fault and nothing else")]
pub struct NotOffered(pub FaultKind);

impl std::fmt::Display for NotOffered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the harness does not offer {:?}", self.0)
    }
}

impl std::error::Error for NotOffered {}

/// A message as a destination holds it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Stored {
    /// The message, its id, key and tombstone already read from wherever the adapter writes them.
    pub message: EncodedMessage,
    /// Where it stands.
    pub position: Option<MessagePosition>,
}

impl Stored {
    /// Makes an entry.
    #[must_use]
    pub const fn new(message: EncodedMessage, position: Option<MessagePosition>) -> Self {
        Self { message, position }
    }
}
