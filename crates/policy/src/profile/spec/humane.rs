//! Durations and sizes as people write them.

use std::fmt;
use std::time::Duration;

use bytesize::ByteSize;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

/// Reads a duration such as `"5s"`, `"100ms"` or `"1h 30m"`.
pub(super) fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    humantime::parse_duration(&text).map_err(|_| {
        D::Error::invalid_value(Unexpected::Str(&text), &"a duration such as \"5s\" or \"100ms\"")
    })
}

/// Reads a size in bytes: a number, or a text such as `"1MiB"`.
pub(super) fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    deserializer.deserialize_any(Bytes)
}

/// Reads a size where it is written.
pub(super) fn some_size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    size(deserializer).map(Some)
}

/// Shows a size as people write it, and no number of bytes as another.
pub(crate) struct Size(pub(crate) u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, name) in [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
            if self.0 >= unit && self.0.is_multiple_of(unit) {
                return write!(f, "{}{name}", self.0 / unit);
            }
        }
        write!(f, "{} B", self.0)
    }
}

struct Bytes;

impl Visitor<'_> for Bytes {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size such as \"1MiB\", or a number of bytes")
    }

    fn visit_u64<E: Error>(self, bytes: u64) -> Result<u64, E> {
        Ok(bytes)
    }

    fn visit_i64<E: Error>(self, bytes: i64) -> Result<u64, E> {
        u64::try_from(bytes).map_err(|_| E::invalid_value(Unexpected::Signed(bytes), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        text.parse::<ByteSize>()
            .map(|size| size.as_u64())
            .map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, StrDeserializer};

    use super::*;

    fn text(text: &str) -> StrDeserializer<'_, Error> {
        text.into_deserializer()
    }

    #[test]
    fn durations_are_written_with_their_unit_and_nothing_else_is_read() {
        assert_eq!(duration(text("5s")), Ok(Duration::from_secs(5)));
        assert_eq!(duration(text("100ms")), Ok(Duration::from_millis(100)));
        assert_eq!(duration(text("1h 30m")), Ok(Duration::from_secs(5400)));
        for odd in ["", "5", "-5s", "5 parsecs", "s", "NaN", "99999999999999999999y", "5s;"] {
            assert!(duration(text(odd)).is_err(), "{odd:?}");
        }
    }

    #[test]
    fn sizes_are_written_with_a_unit_or_as_bytes() {
        assert_eq!(size(text("1MiB")), Ok(1 << 20));
        assert_eq!(size(text("256KiB")), Ok(256 << 10));
        assert_eq!(size(text("512")), Ok(512));
        for odd in ["", "MiB", "-1MiB", "1 heap", "NaN", "0x10"] {
            assert!(size(text(odd)).is_err(), "{odd:?}");
        }
    }

    #[test]
    fn a_size_is_shown_without_rounding() {
        assert_eq!(Size(1 << 20).to_string(), "1MiB");
        assert_eq!(Size((1 << 20) + 1).to_string(), "1048577 B");
        assert_eq!(Size(0).to_string(), "0 B");
    }
}
