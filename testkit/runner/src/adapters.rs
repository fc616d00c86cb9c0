//! Which adapters this runner was built with.

use std::fmt;
use std::str::FromStr;

use crate::{Error, Result};

/// An adapter of this workspace. Its name is its folder, its crate's suffix and the runner's feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Adapter {
    /// The embedded broker.
    InMemory,
    /// NATS JetStream.
    Nats,
}

impl Adapter {
    /// Every adapter of this workspace.
    pub const ALL: &'static [Self] = &[Self::InMemory, Self::Nats];

    /// Returns the name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InMemory => "in-memory",
            Self::Nats => "nats",
        }
    }

    /// Tells whether this runner was built with the adapter.
    #[must_use]
    pub const fn is_built_in(self) -> bool {
        match self {
            Self::InMemory => cfg!(feature = "in-memory"),
            Self::Nats => cfg!(feature = "nats"),
        }
    }

    /// Refuses an adapter that is not built in, with the command that builds it in.
    ///
    /// # Errors
    /// If it is not built in.
    pub fn require(self) -> Result<()> {
        if self.is_built_in() { Ok(()) } else { Err(not_built_in(self.name())) }
    }
}

impl fmt::Display for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Adapter {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.iter().copied().find(|adapter| adapter.name() == name).ok_or_else(|| {
            let known = Self::ALL.iter().map(|adapter| adapter.name()).collect::<Vec<_>>().join(", ");
            Error::Adapter(format!("there is no adapter \"{name}\" here; known: {known}"))
        })
    }
}

/// The refusal for a known adapter that this runner was built without.
fn not_built_in(name: &str) -> Error {
    Error::Adapter(format!(
        "the adapter \"{name}\" is not built into this runner; run\n  \
         cargo run --quiet --package consign-testkit-runner --features {name} -- <command>"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_parses_back() {
        for adapter in Adapter::ALL {
            assert_eq!(adapter.name().parse::<Adapter>().unwrap(), *adapter);
        }
    }

    #[test]
    fn an_unknown_adapter_is_refused_with_the_known_ones() {
        let error = "carrier-pigeon".parse::<Adapter>().unwrap_err().to_string();
        assert!(error.contains("carrier-pigeon") && error.contains("in-memory, nats"), "{error}");
    }

    #[test]
    fn require_answers_what_the_build_says_and_names_the_command() {
        for adapter in Adapter::ALL {
            match adapter.require() {
                Ok(()) => assert!(adapter.is_built_in()),
                Err(error) => {
                    assert!(!adapter.is_built_in());
                    assert!(error.to_string().contains(&format!("--features {adapter}")), "{error}");
                }
            }
        }
        let refusal = not_built_in("nats").to_string();
        assert!(refusal.contains("cargo run") && refusal.contains("--features nats"), "{refusal}");
    }
}
