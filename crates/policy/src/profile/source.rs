//! Where a message's key and its id come from, once checked.

use std::fmt;
use std::sync::Arc;

use consign_core_api::message::reserved;

/// The name of a header that a user may write: not empty, without the library's prefix.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct HeaderName(Arc<str>);

impl HeaderName {
    /// Checks a name.
    ///
    /// # Errors
    /// The legal range in words, for an empty name and for one with the prefix `consign-`.
    pub fn new(name: &str) -> Result<Self, &'static str> {
        if name.is_empty() || reserved::is_reserved(name) {
            return Err("a header's name, not empty, without the prefix `consign-`");
        }
        Ok(Self(Arc::from(name)))
    }

    /// Returns the name's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A place in a JSON document, such as `/customer/id`; the empty pointer is the whole document.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct JsonPointer(Arc<str>);

impl JsonPointer {
    /// Checks a pointer: empty, or `/` before each step, with `~` only as `~0` or `~1`.
    ///
    /// # Errors
    /// The legal range in words.
    pub fn new(pointer: &str) -> Result<Self, &'static str> {
        let rooted = pointer.is_empty() || pointer.starts_with('/');
        let escaped = pointer.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
        if !(rooted && escaped) {
            return Err("a JSON pointer, such as `/customer/id`, with `~` written as `~0`");
        }
        Ok(Self(Arc::from(pointer)))
    }

    /// Returns the pointer's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Where the key on the wire comes from. It is resolved on publish only.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum KeySource {
    /// From nowhere: a message has the key that it was given, if any, and no order depends on it.
    #[default]
    None,
    /// From the message, which is given one.
    Message,
    /// From the first header of this name.
    Header(HeaderName),
    /// From this place in the JSON payload.
    JsonPointer(JsonPointer),
    /// From the resolver registered under this name.
    Custom(String),
}

/// Where the message id comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MessageIdSource {
    /// A new one is made for a message without one; the default.
    #[default]
    Generate,
    /// From the broker's own field.
    Native,
    /// From the first header of this name.
    Header(HeaderName),
    /// From nowhere: messages have none.
    None,
}

macro_rules! shown_as_text {
    ($($ty:ident),+) => {$(
        impl fmt::Display for $ty {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $ty {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    )+};
}

shown_as_text!(HeaderName, JsonPointer);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_of_the_librarys_own_is_no_source() {
        for odd in ["", "consign-", "Consign-Id", "consign-key"] {
            assert!(HeaderName::new(odd).is_err(), "{odd:?}");
        }
        assert_eq!(HeaderName::new("tenant").unwrap().as_str(), "tenant");
    }

    #[test]
    fn a_pointer_is_rooted_and_escaped() {
        for odd in ["id", "#/id", "/a~", "/a~2b", "~0"] {
            assert!(JsonPointer::new(odd).is_err(), "{odd:?}");
        }
        for fine in ["", "/", "/id", "/a~1b/c~0d", "/a//b"] {
            assert_eq!(JsonPointer::new(fine).unwrap().as_str(), fine);
        }
    }
}
