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
    /// Whatever makes the payload impossible to decode. It must not panic on any bytes.
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
        Ok(serde_json::from_slice(payload)?)
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
