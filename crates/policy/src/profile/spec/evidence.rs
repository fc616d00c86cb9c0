//! The evidence that a raw profile demands.

use std::fmt;

use consign_core_api::outcome::{Basis, Persistence};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

/// The least evidence, axis by axis. What is not written is not demanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct EvidenceSpec {
    /// The least copies.
    pub copies: Option<CopiesSpec>,
    /// The least persistence.
    pub persistence: Option<Persistence>,
    /// The least basis, of both axes.
    pub basis: Option<Basis>,
}

impl EvidenceSpec {
    /// Demands copies.
    #[must_use]
    pub const fn copies(mut self, least: CopiesSpec) -> Self {
        self.copies = Some(least);
        self
    }

    /// Demands persistence.
    #[must_use]
    pub const fn persistence(mut self, least: Persistence) -> Self {
        self.persistence = Some(least);
        self
    }

    /// Demands a basis.
    #[must_use]
    pub const fn basis(mut self, least: Basis) -> Self {
        self.basis = Some(least);
        self
    }
}

/// The least copies, as written: `"leader"`, `"quorum"` (at least two) or `{ quorum = 3 }`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CopiesSpec {
    /// One node has it.
    Leader,
    /// At least so many nodes have it.
    Quorum(u64),
}

impl CopiesSpec {
    /// What `"quorum"` stands for: one copy is no quorum.
    pub const QUORUM: Self = Self::Quorum(2);
}

impl fmt::Display for CopiesSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leader => f.write_str("leader"),
            Self::Quorum(least) => write!(f, "{{ quorum = {least} }}"),
        }
    }
}

impl<'de> Deserialize<'de> for CopiesSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Written)
    }
}

struct Written;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Quorum {
    quorum: u64,
}

impl<'de> Visitor<'de> for Written {
    type Value = CopiesSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"leader\", \"quorum\" or { quorum = 3 }")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<CopiesSpec, E> {
        match text {
            "leader" => Ok(CopiesSpec::Leader),
            "quorum" => Ok(CopiesSpec::QUORUM),
            _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CopiesSpec, A::Error> {
        Quorum::deserialize(MapAccessDeserializer::new(map)).map(|written| CopiesSpec::Quorum(written.quorum))
    }
}
