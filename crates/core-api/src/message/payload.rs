//! A payload is bytes or a tombstone.

use std::fmt;

use bytes::Bytes;

/// What a message carries: bytes, possibly none of them, or a tombstone, which is distinct from empty bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "there is no third kind of payload; matches are meant to be total"
)]
pub enum Payload {
    /// Bytes, possibly zero of them.
    Bytes(Bytes),
    /// The absence of a value.
    Tombstone,
}

impl Payload {
    /// Returns the bytes; `None` for a tombstone.
    #[must_use]
    pub const fn as_bytes(&self) -> Option<&Bytes> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Tombstone => None,
        }
    }

    /// Returns the number of bytes; zero for a tombstone.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Tombstone => 0,
        }
    }

    /// Tells whether no byte is carried, which is true of empty bytes and of a tombstone.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Tells whether this is a tombstone.
    #[must_use]
    pub const fn is_tombstone(&self) -> bool {
        matches!(self, Self::Tombstone)
    }
}

impl<B: Into<Bytes>> From<B> for Payload {
    fn from(bytes: B) -> Self {
        Self::Bytes(bytes.into())
    }
}

/// Shows the size and never the content: payloads do not belong in logs.
impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Tombstone => f.write_str("tombstone"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tombstone_is_not_empty_bytes() {
        let empty = Payload::from(Vec::new());
        assert_ne!(empty, Payload::Tombstone);
        assert!(empty.is_empty() && Payload::Tombstone.is_empty());
        assert_eq!(empty.as_bytes(), Some(&Bytes::new()));
        assert_eq!(Payload::Tombstone.as_bytes(), None);
    }

    #[test]
    fn debug_never_shows_the_content() {
        assert_eq!(format!("{:?}", Payload::from("hunter2")), "7 bytes");
    }
}
