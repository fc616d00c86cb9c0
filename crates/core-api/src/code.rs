//! Stable codes: the part of every error that is API.

use std::fmt;

/// A stable, upper-case code that names one cause, such as `MESSAGE_TOO_LARGE`.
///
/// A code is API: it never changes its meaning and may be matched, counted and searched for. The text beside
/// it is not. The codes of each crate stand in its `codes` module with cause and fix.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(&'static str);

impl Code {
    /// Names a code. Applications use it for their own handler failures.
    #[must_use]
    pub const fn new(code: &'static str) -> Self {
        Self(code)
    }

    /// Returns the code's text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl From<&'static str> for Code {
    fn from(code: &'static str) -> Self {
        Self::new(code)
    }
}

impl PartialEq<str> for Code {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for Code {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

/// One row of a crate's table of codes.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct CodeEntry {
    /// The code.
    pub code: Code,
    /// What leads to it.
    pub cause: &'static str,
    /// What to change.
    pub fix: &'static str,
}

impl CodeEntry {
    /// Makes a row.
    #[must_use]
    pub const fn new(code: Code, cause: &'static str, fix: &'static str) -> Self {
        Self { code, cause, fix }
    }
}

/// Defines the codes of a crate: one constant per code, and `TABLE` with cause and fix of each.
///
/// ```
/// consign_core_api::codes! {
///     DOOR_CLOSED: "the door was closed", "open it";
/// }
/// assert_eq!(DOOR_CLOSED, "DOOR_CLOSED");
/// assert_eq!(TABLE.len(), 1);
/// ```
#[macro_export]
macro_rules! codes {
    ($($name:ident: $cause:literal, $fix:literal;)+) => {
        $(
            #[doc = concat!($cause, ".\n\nFix: ", $fix, ".")]
            pub const $name: $crate::code::Code = $crate::code::Code::new(stringify!($name));
        )+
        /// Every code of this crate, with its cause and its fix.
        pub const TABLE: &[$crate::code::CodeEntry] =
            &[$($crate::code::CodeEntry::new($name, $cause, $fix)),+];
    };
}
