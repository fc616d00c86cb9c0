//! What became of a settlement.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::outcome::Basis;

/// How firm a settlement is. Ordered from weak to strong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SettlementLevel {
    /// A reply that the broker ordered after the settlement; a crash of the broker may still undo it.
    Processed,
    /// It survives a crash of the broker process.
    Committed,
}

impl fmt::Display for SettlementLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Processed => "processed",
            Self::Committed => "committed",
        })
    }
}

/// What the broker said of a settlement.
///
/// Only an adapter states it, and vouches for it: it is worth what the adapter's tests against the broker are worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SettlementEvidence {
    level: SettlementLevel,
    basis: Basis,
}

impl SettlementEvidence {
    /// Evidence of a level that the adapter proved for this broker.
    #[must_use]
    pub const fn observed(level: SettlementLevel) -> Self {
        Self { level, basis: Basis::Observed }
    }

    /// Evidence of a level that the configuration declares.
    #[must_use]
    pub const fn declared(level: SettlementLevel) -> Self {
        Self { level, basis: Basis::Declared }
    }

    /// Returns how firm the settlement is.
    #[must_use]
    pub const fn level(&self) -> SettlementLevel {
        self.level
    }

    /// Returns where the knowledge of the level comes from.
    #[must_use]
    pub const fn basis(&self) -> Basis {
        self.basis
    }
}

/// Why a delivery was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SettledBecause {
    /// Its handler succeeded.
    Handled,
    /// A CONFIRMED copy stands in a retry or dead-letter destination.
    Copied,
    /// The profile discards it, explicitly.
    Discarded,
    /// AT_MOST_ONCE: it is settled before it is handled.
    BeforeHandling,
}

/// What became of a settlement.
#[derive(Debug, Clone)]
#[must_use = "a settlement of unknown end is not a success"]
#[expect(clippy::exhaustive_enums, reason = "there is no third end; matches are meant to be total")]
pub enum SettlementOutcome {
    /// The broker settled it; it does not come again, as firmly as the evidence says.
    Settled(SettlementEvidence),
    /// It is not known; the message may be delivered again. This is not a success.
    Unknown(SettlementUnknown),
}

impl SettlementOutcome {
    /// Tells whether the broker settled it.
    #[must_use]
    pub const fn is_settled(&self) -> bool {
        matches!(self, Self::Settled(_))
    }
}

impl fmt::Display for SettlementOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settled(evidence) => write!(f, "SETTLED ({})", evidence.level),
            Self::Unknown(unknown) => write!(f, "SETTLEMENT_UNKNOWN: {}", unknown.failure),
        }
    }
}

/// A settlement of unknown end. A redelivery is always possible.
#[derive(Debug, Clone)]
pub struct SettlementUnknown {
    failure: Failure,
}

impl SettlementUnknown {
    pub(super) const fn new(failure: Failure) -> Self {
        Self { failure }
    }

    /// Returns why it is not known.
    #[must_use]
    pub const fn failure(&self) -> &Failure {
        &self.failure
    }
}
