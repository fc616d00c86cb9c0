//! How far a confirmed message went.

use std::fmt;
use std::num::NonZeroU16;

use serde::{Deserialize, Serialize};

/// How many copies existed when the broker answered. Ordered from weak to strong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Copies {
    /// One node has it.
    Leader,
    /// At least `min` nodes have it.
    Quorum {
        /// The smallest number of copies that the answer stands for.
        min: NonZeroU16,
    },
}

/// What each of those copies survives. Ordered from weak to strong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Persistence {
    /// It lives in the process and dies with it.
    Memory,
    /// It was handed to the operating system: it survives the process, not a loss of power.
    PageCache,
    /// It was flushed to the disk before the answer.
    Flushed,
}

/// Where the knowledge comes from. Ordered from weak to strong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Basis {
    /// The configuration says so; no client can read it from the broker.
    Declared,
    /// The broker said so.
    Observed,
}

/// A fact and where the knowledge of it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Evidenced<T> {
    /// The fact.
    pub value: T,
    /// Where it comes from.
    pub basis: Basis,
}

impl<T> Evidenced<T> {
    /// A fact that the broker told.
    pub const fn observed(value: T) -> Self {
        Self { value, basis: Basis::Observed }
    }

    /// A fact that the configuration states.
    pub const fn declared(value: T) -> Self {
        Self { value, basis: Basis::Declared }
    }
}

/// How far a confirmed message went, on two independent axes. There is no order across the axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ConfirmationEvidence {
    /// How many copies existed.
    pub copies: Evidenced<Copies>,
    /// What each copy survives.
    pub persistence: Evidenced<Persistence>,
}

impl ConfirmationEvidence {
    /// Joins the two axes.
    #[must_use]
    pub const fn new(copies: Evidenced<Copies>, persistence: Evidenced<Persistence>) -> Self {
        Self { copies, persistence }
    }

    /// Tells whether each axis reaches what is demanded of it.
    #[must_use]
    pub fn satisfies(&self, demand: &EvidenceDemand) -> bool {
        demand.copies.is_none_or(|least| self.copies.value >= least)
            && demand.persistence.is_none_or(|least| self.persistence.value >= least)
            && demand.basis.is_none_or(|least| self.copies.basis >= least && self.persistence.basis >= least)
    }
}

/// The least evidence that a profile demands, axis by axis; `None` demands nothing of that axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct EvidenceDemand {
    /// The least copies.
    pub copies: Option<Copies>,
    /// The least persistence.
    pub persistence: Option<Persistence>,
    /// The least basis, of both axes.
    pub basis: Option<Basis>,
}

impl EvidenceDemand {
    /// Joins the demands of all axes.
    #[must_use]
    pub const fn new(copies: Option<Copies>, persistence: Option<Persistence>, basis: Option<Basis>) -> Self {
        Self { copies, persistence, basis }
    }
}

impl fmt::Display for Copies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leader => f.write_str("one copy"),
            Self::Quorum { min } => write!(f, "a quorum of {min}"),
        }
    }
}

impl fmt::Display for Persistence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory",
            Self::PageCache => "page cache",
            Self::Flushed => "flushed",
        })
    }
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Declared => "declared",
            Self::Observed => "observed",
        })
    }
}

impl<T: fmt::Display> fmt::Display for Evidenced<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.value, self.basis)
    }
}

impl fmt::Display for ConfirmationEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.copies, self.persistence)
    }
}

impl fmt::Display for EvidenceDemand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.copies.map(|least| least.to_string()));
        parts.extend(self.persistence.map(|least| least.to_string()));
        parts.extend(self.basis.map(|least| least.to_string()));
        f.write_str(&if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE: Copies = Copies::Quorum { min: NonZeroU16::new(3).unwrap() };
    const TWO: Copies = Copies::Quorum { min: NonZeroU16::new(2).unwrap() };

    #[test]
    fn a_strong_axis_does_not_make_up_for_a_weak_one() {
        let wide = ConfirmationEvidence::new(
            Evidenced::observed(THREE),
            Evidenced::declared(Persistence::PageCache),
        );
        assert!(wide.satisfies(&EvidenceDemand::default()));
        assert!(wide.satisfies(&EvidenceDemand::new(Some(TWO), Some(Persistence::PageCache), None)));
        assert!(!wide.satisfies(&EvidenceDemand::new(Some(TWO), Some(Persistence::Flushed), None)));
        assert!(!wide.satisfies(&EvidenceDemand::new(None, None, Some(Basis::Observed))));
        let one = ConfirmationEvidence::new(
            Evidenced::observed(Copies::Leader),
            Evidenced::observed(Persistence::Flushed),
        );
        assert!(!one.satisfies(&EvidenceDemand::new(Some(TWO), None, None)));
    }

    #[test]
    fn evidence_reads_as_a_sentence() {
        let evidence =
            ConfirmationEvidence::new(Evidenced::observed(TWO), Evidenced::declared(Persistence::PageCache));
        assert_eq!(evidence.to_string(), "a quorum of 2 (observed), page cache (declared)");
    }
}
