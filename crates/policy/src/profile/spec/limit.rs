//! A count that may be unlimited.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

/// A count, or `"unlimited"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "there is a limit or there is none")]
pub enum Limit {
    /// At most so many.
    At(u64),
    /// As many as it takes.
    Unlimited,
}

impl From<u32> for Limit {
    fn from(count: u32) -> Self {
        Self::At(count.into())
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(count) => fmt::Display::fmt(count, f),
            Self::Unlimited => f.write_str("unlimited"),
        }
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Written)
    }
}

struct Written;

impl Visitor<'_> for Written {
    type Value = Limit;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a count or \"unlimited\"")
    }

    fn visit_u64<E: Error>(self, count: u64) -> Result<Limit, E> {
        Ok(Limit::At(count))
    }

    fn visit_i64<E: Error>(self, count: i64) -> Result<Limit, E> {
        u64::try_from(count)
            .map(Limit::At)
            .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(count), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Limit, E> {
        if text == "unlimited" {
            Ok(Limit::Unlimited)
        } else {
            Err(E::invalid_value(serde::de::Unexpected::Str(text), &self))
        }
    }
}
