//! Values to bytes and back.

use std::error::Error as StdError;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What a codec answers when it fails.
pub type CodecError = Box<dyn StdError + Send + Sync + 'static>;

/// Turns values into payload bytes and back. It never sees a tombstone.
///
/// A failure to encode is REJECTED `ENCODE_FAILED`, before anything is sent; a failure to decode is the
/// permanent `DECODE_FAILED`, which is not retried.
pub trait Codec<T>: Send + Sync + 'static {
    /// Encodes a value.
    ///
    /// # Errors
    /// Whatever makes the value impossible to encode.
    fn encode(&self, value: &T) -> Result<Bytes, CodecError>;

    /// Decodes a payload.
    ///
    /// # Errors
    /// Whatever makes the payload impossible to decode. It must not panic on any bytes. The error's text is logged and
    /// written into the header of a dead letter, so that it must not repeat what the payload says.
    fn decode(&self, payload: &Bytes) -> Result<T, CodecError>;
}

/// JSON by serde; the default.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct JsonCodec;

impl JsonCodec {
    /// Makes the codec.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl<T: Serialize + DeserializeOwned> Codec<T> for JsonCodec {
    fn encode(&self, value: &T) -> Result<Bytes, CodecError> {
        Ok(serde_json::to_vec(value)?.into())
    }

    fn decode(&self, payload: &Bytes) -> Result<T, CodecError> {
        serde_json::from_slice(payload).map_err(|error| Box::new(InvalidJson::from(&error)) as CodecError)
    }
}

/// A payload that is not the JSON that was expected. It tells the place, and nothing of what stands there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} at line {line}, column {column}")]
pub struct InvalidJson {
    what: &'static str,
    line: usize,
    column: usize,
}

impl From<&serde_json::Error> for InvalidJson {
    fn from(error: &serde_json::Error) -> Self {
        use serde_json::error::Category;
        let what = match error.classify() {
            Category::Io => "unreadable bytes",
            Category::Syntax => "no JSON",
            Category::Data => "JSON of another type than expected",
            Category::Eof => "JSON that ends too early",
        };
        Self { what, line: error.line(), column: error.column() }
    }
}

/// Bytes as they are, not copied.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct BytesCodec;

impl BytesCodec {
    /// Makes the codec.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl Codec<Bytes> for BytesCodec {
    fn encode(&self, value: &Bytes) -> Result<Bytes, CodecError> {
        Ok(value.clone())
    }

    fn decode(&self, payload: &Bytes) -> Result<Bytes, CodecError> {
        Ok(payload.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_json_error_tells_the_place_and_nothing_of_the_payload() {
        let decode = |text: &'static str| {
            Codec::<u32>::decode(&JsonCodec::new(), &Bytes::from_static(text.as_bytes()))
                .unwrap_err()
                .to_string()
        };
        assert_eq!(decode("\"hunter2\""), "JSON of another type than expected at line 1, column 9");
        assert_eq!(decode("{\"card\": 4"), "JSON of another type than expected at line 1, column 0");
        assert!(decode("hunter2").starts_with("no JSON"));
        assert!(decode("").starts_with("JSON that ends too early"));
    }
}
