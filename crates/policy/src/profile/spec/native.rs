//! Settings that only the adapter understands, carried over without loss.

use std::collections::BTreeMap;
use std::fmt;

use consign_core_api::spi::NativeSettings;
use serde::de::{Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};

/// Reads a table of neutral values.
pub(super) fn settings<'de, D: Deserializer<'de>>(deserializer: D) -> Result<NativeSettings, D::Error> {
    let written = BTreeMap::<String, Neutral>::deserialize(deserializer)?;
    Ok(written.into_iter().fold(NativeSettings::default(), |all, (name, value)| all.with(name, value.0)))
}

/// The key under which the `toml` crate hands out a date or a time.
const DATE: &str = "$__toml_private_datetime";

/// A value without a type of the adapter's. What it cannot hold is refused, never turned into something else.
struct Neutral(Value);

impl<'de> Deserialize<'de> for Neutral {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any).map(Self)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a finite number, true, false, a list or a table")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::invalid_value(Unexpected::Float(value), &self))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Neutral(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<Value, A::Error> {
        let mut values = Map::new();
        while let Some((name, Neutral(value))) = table.next_entry::<String, Neutral>()? {
            if name == DATE {
                return Ok(value);
            }
            values.insert(name, value);
        }
        Ok(Value::Object(values))
    }
}
