//! The identity of a message.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use uuid::Uuid;

/// Why a message id was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("message id is not legal: {reason}")]
pub struct InvalidMessageId {
    reason: &'static str,
}

/// The identity of a message: 1 to 200 visible ASCII characters.
///
/// A generated id is a UUID version 7. Two ids are equal when their texts are.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(Repr);

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Repr {
    /// Only ever made from the lower-case hyphenated form, so that equal texts have equal representations.
    Uuid(Uuid),
    Text(Arc<str>),
}

impl MessageId {
    /// The longest id, in bytes.
    pub const LONGEST: usize = 200;

    /// Generates an id: a UUID version 7, which sorts by the time of its making. Does not allocate.
    #[must_use]
    pub fn generate() -> Self {
        Self(Repr::Uuid(Uuid::now_v7()))
    }

    /// Checks an id.
    ///
    /// # Errors
    /// [`InvalidMessageId`] when it is empty, longer than 200 bytes, or has a character outside `!` to `~`.
    pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidMessageId> {
        let text = text.as_ref();
        if text.is_empty() {
            return Err(InvalidMessageId { reason: "it is empty" });
        }
        if text.len() > Self::LONGEST {
            return Err(InvalidMessageId { reason: "it is longer than 200 bytes" });
        }
        if !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(InvalidMessageId { reason: "only visible ASCII characters are allowed" });
        }
        let uuid = Uuid::try_parse(text).ok().filter(|uuid| {
            let mut buffer = Uuid::encode_buffer();
            uuid.hyphenated().encode_lower(&mut buffer) == text
        });
        Ok(Self(uuid.map_or_else(|| Repr::Text(Arc::from(text)), Repr::Uuid)))
    }

    /// Calls `with` with the id's text, without allocating.
    pub fn with_str<R>(&self, with: impl FnOnce(&str) -> R) -> R {
        match &self.0 {
            Repr::Uuid(uuid) => {
                let mut buffer = Uuid::encode_buffer();
                with(uuid.hyphenated().encode_lower(&mut buffer))
            }
            Repr::Text(text) => with(text),
        }
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_str(|text| f.write_str(text))
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_str(|text| fmt::Debug::fmt(text, f))
    }
}

impl FromStr for MessageId {
    type Err = InvalidMessageId;
    fn from_str(text: &str) -> Result<Self, InvalidMessageId> {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn generated_ids_differ_and_read_back() {
        let (one, two) = (MessageId::generate(), MessageId::generate());
        assert_ne!(one, two);
        assert_eq!(MessageId::new(one.to_string()).unwrap(), one);
    }

    #[test]
    fn ids_that_differ_only_in_case_or_form_stay_different() {
        let lower = "0193e4a0-0000-7000-8000-00000000abcd";
        let upper = lower.to_uppercase();
        assert_ne!(MessageId::new(lower).unwrap(), MessageId::new(&upper).unwrap());
        assert_eq!(MessageId::new(&upper).unwrap().to_string(), upper);
        let bare = lower.replace('-', "");
        assert_eq!(MessageId::new(&bare).unwrap().to_string(), bare);
    }

    #[test]
    fn odd_ids_are_refused() {
        for odd in ["", "a b", "a\r\nb", "ü", &"x".repeat(201)] {
            assert!(MessageId::new(odd).is_err(), "{odd:?}");
        }
    }

    proptest! {
        #[test]
        fn every_accepted_id_keeps_its_text(text in "\\PC{0,40}") {
            if let Ok(id) = MessageId::new(&text) {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }
}
