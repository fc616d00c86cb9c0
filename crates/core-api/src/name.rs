//! Names that exist only when they are legal.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Why a name was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} name {text:?} is not legal: {reason}")]
pub struct InvalidName {
    kind: &'static str,
    text: String,
    reason: &'static str,
}

impl InvalidName {
    /// Returns the rule that the name broke.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        self.reason
    }
}

/// How much of a refused name an error repeats.
const SHOWN: usize = 64;

fn refuse(kind: &'static str, text: &str, reason: &'static str) -> InvalidName {
    let text = text.chars().take(SHOWN).collect();
    InvalidName { kind, text, reason }
}

fn check(kind: &'static str, text: &str, longest: usize, dots: bool) -> Result<(), InvalidName> {
    if text.is_empty() {
        return Err(refuse(kind, text, "it is empty"));
    }
    if text.len() > longest {
        return Err(refuse(kind, text, "it is too long"));
    }
    let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-' || (dots && b == b'.');
    if !text.bytes().all(legal) {
        let letters = "only ASCII letters, digits, `_`, `-` (and, in a destination, `.`) are allowed";
        return Err(refuse(kind, text, letters));
    }
    if text.starts_with('.') || text.ends_with('.') || text.contains("..") {
        return Err(refuse(kind, text, "a dot may not stand first, last or beside another dot"));
    }
    Ok(())
}

macro_rules! name {
    ($(#[$doc:meta])* $ty:ident, $kind:literal, $longest:literal, $dots:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $ty(Arc<str>);

        impl $ty {
            /// Checks a name.
            ///
            /// # Errors
            /// [`InvalidName`] when it is empty, too long, or has a character that is not allowed.
            pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidName> {
                let text = text.as_ref();
                check($kind, text, $longest, $dots)?;
                Ok(Self(Arc::from(text)))
            }

            /// Returns the name's text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

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

        impl TryFrom<String> for $ty {
            type Error = InvalidName;
            fn try_from(text: String) -> Result<Self, InvalidName> {
                Self::new(text)
            }
        }

        impl TryFrom<&str> for $ty {
            type Error = InvalidName;
            fn try_from(text: &str) -> Result<Self, InvalidName> {
                Self::new(text)
            }
        }

        impl From<$ty> for String {
            fn from(name: $ty) -> Self {
                name.0.as_ref().to_owned()
            }
        }

        impl AsRef<str> for $ty {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}

name! {
    /// The logical name of a destination: `[A-Za-z0-9._-]{1,200}` without a leading, trailing or double dot.
    ///
    /// Adapters may narrow it further, and never rewrite it.
    DestinationName, "destination", 200, true
}
name! {
    /// The name of a consumer group: `[A-Za-z0-9_-]{1,100}`.
    GroupName, "group", 100, false
}
name! {
    /// The name under which a transport is bound: `[A-Za-z0-9_-]{1,100}`.
    TransportName, "transport", 100, false
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn odd_destination_names_are_refused_with_their_reason() {
        for odd in
            ["", ".", "a.", ".a", "a..b", "a b", "*", ">", "a/b", "naïve", "📦", "a\nb", &"x".repeat(201)]
        {
            assert!(DestinationName::new(odd).is_err(), "{odd:?}");
        }
        for fine in ["a", "orders.retry-1", "A_b-9", &"x".repeat(200)] {
            assert_eq!(DestinationName::new(fine).unwrap().as_str(), fine);
        }
    }

    #[test]
    fn groups_have_no_dots() {
        assert!(GroupName::new("a.b").is_err());
        assert!(GroupName::new("x".repeat(101)).is_err());
        assert!(GroupName::new("x".repeat(100)).is_ok());
    }

    #[test]
    fn names_from_outside_are_checked() {
        assert!(serde_json::from_str::<DestinationName>("\"a..b\"").is_err());
        assert!(serde_json::from_str::<GroupName>("\"\"").is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_check_panic(text in ".*") {
            if let Ok(name) = DestinationName::new(&text) {
                prop_assert_eq!(name.as_str(), text);
            }
        }
    }
}
