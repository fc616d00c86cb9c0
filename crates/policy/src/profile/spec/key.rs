//! Where key and message id come from, as written.

use serde::Deserialize;

/// Where the key comes from, as written: `{ from = "message" }`, `{ header = "x" }`, `{ json_pointer = "/id" }` or
/// `{ custom = "name" }`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KeySpec {
    /// From what publishes.
    From(KeyFrom),
    /// From the first header of this name.
    Header(String),
    /// From this place in the JSON payload.
    JsonPointer(String),
    /// From the resolver registered under this name.
    Custom(String),
}

/// What publishes gives the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KeyFrom {
    /// The message is given one.
    Message,
}

impl KeySpec {
    /// The message is given one.
    #[must_use]
    pub const fn message() -> Self {
        Self::From(KeyFrom::Message)
    }

    /// From the first header of this name.
    #[must_use]
    pub fn header(name: impl Into<String>) -> Self {
        Self::Header(name.into())
    }

    /// From this place in the JSON payload.
    #[must_use]
    pub fn json_pointer(pointer: impl Into<String>) -> Self {
        Self::JsonPointer(pointer.into())
    }

    /// From the resolver registered under this name.
    #[must_use]
    pub fn custom(name: impl Into<String>) -> Self {
        Self::Custom(name.into())
    }
}

/// Where the message id comes from, as written: `"generate"`, `"native"`, `{ header = "x" }` or `"none"`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MessageIdSpec {
    /// A new one is made for a message without one; the default.
    #[default]
    Generate,
    /// From the broker's own field.
    Native,
    /// From the first header of this name.
    Header(String),
    /// From nowhere: messages have none.
    None,
}
