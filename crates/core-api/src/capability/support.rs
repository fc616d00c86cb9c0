//! The twelve capabilities, and how one is had.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Something that a broker can do or cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Capability {
    /// A confirmed message survives a restart of the broker.
    DurableStorage,
    /// A publish is answered by an acceptance that names it.
    PublishConfirmation,
    /// A publish can be answered by a refusal that names it.
    ExplicitRefusal,
    /// One delivery can be settled without those before it.
    IndividualSettlement,
    /// There is a unit within which deliveries keep publish order.
    OrderedStream,
    /// That unit can be the key.
    KeyedOrdering,
    /// An unsettled delivery comes again.
    Redelivery,
    /// It can come again after a stated delay.
    DelayedRedelivery,
    /// Several publishes and settlements can be one transaction.
    BrokerTransaction,
    /// A second publish under the same id is stored once.
    PublishDeduplication,
    /// The broker itself moves what failed too often.
    NativeDeadLetter,
    /// A consumer bounds what it is sent.
    ConsumerFlowControl,
}

impl Capability {
    /// All twelve, in the order in which they are shown.
    pub const ALL: [Self; 12] = [
        Self::DurableStorage,
        Self::PublishConfirmation,
        Self::ExplicitRefusal,
        Self::IndividualSettlement,
        Self::OrderedStream,
        Self::KeyedOrdering,
        Self::Redelivery,
        Self::DelayedRedelivery,
        Self::BrokerTransaction,
        Self::PublishDeduplication,
        Self::NativeDeadLetter,
        Self::ConsumerFlowControl,
    ];

    /// Returns the name in words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DurableStorage => "durable storage",
            Self::PublishConfirmation => "publish confirmation",
            Self::ExplicitRefusal => "explicit refusal",
            Self::IndividualSettlement => "individual settlement",
            Self::OrderedStream => "ordered stream",
            Self::KeyedOrdering => "keyed ordering",
            Self::Redelivery => "redelivery",
            Self::DelayedRedelivery => "delayed redelivery",
            Self::BrokerTransaction => "broker transaction",
            Self::PublishDeduplication => "publish deduplication",
            Self::NativeDeadLetter => "native dead letter",
            Self::ConsumerFlowControl => "consumer flow control",
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a capability is had, with a note for people.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Support {
    /// By the broker itself.
    Native(Cow<'static, str>),
    /// By the adapter, from what the broker does.
    Emulated(Cow<'static, str>),
    /// Not at all; asking for it is refused with [`CapabilityUnavailable`](crate::CapabilityUnavailable).
    Unsupported(Cow<'static, str>),
}

impl Support {
    /// Tells whether the capability is there, one way or another.
    #[must_use]
    pub const fn is_available(&self) -> bool {
        !matches!(self, Self::Unsupported(_))
    }

    /// Returns the note.
    #[must_use]
    pub fn note(&self) -> &str {
        match self {
            Self::Native(note) | Self::Emulated(note) | Self::Unsupported(note) => note,
        }
    }

    /// Returns `native`, `emulated` or `unsupported`.
    #[must_use]
    pub const fn how(&self) -> &'static str {
        match self {
            Self::Native(_) => "native",
            Self::Emulated(_) => "emulated",
            Self::Unsupported(_) => "unsupported",
        }
    }
}

impl fmt::Display for Support {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.how())?;
        if self.note().is_empty() { Ok(()) } else { write!(f, " ({})", self.note()) }
    }
}
