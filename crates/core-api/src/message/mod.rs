//! Messages: what an application hands over ([`Message`]) and what travels ([`EncodedMessage`]).

mod encoded;
mod headers;
mod id;
mod payload;
pub mod reserved;

pub use encoded::{EncodedMessage, Timestamp};
pub use headers::{Header, Headers};
pub use id::{InvalidMessageId, MessageId};
pub use payload::Payload;

use bytes::Bytes;

/// A value on its way to a destination, with key, headers and identity.
///
/// `Message::new(&order)` borrows the value; the publisher encodes it. A [`tombstone`](Self::tombstone) has no
/// value, which is not the same as an empty payload, as an absent key is not an empty one.
///
/// ```
/// use consign_core_api::Message;
/// let message = Message::new("hello").key("c-7").header("traceparent", "00-…");
/// assert_eq!(message.parts().headers.len(), 1);
/// ```
#[derive(Debug, Clone)]
#[must_use = "a message does nothing until it is published"]
pub struct Message<V> {
    value: Option<V>,
    parts: MessageParts,
}

/// Everything of a message but its value.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct MessageParts {
    /// The key; absent is not empty.
    pub key: Option<Bytes>,
    /// The headers, in order.
    pub headers: Headers,
    /// The identity; absent means that the destination's profile decides.
    pub id: Option<MessageId>,
    /// When the event happened; absent means the time of publishing.
    pub timestamp: Option<Timestamp>,
    /// The partition; absent means that the key decides.
    pub partition: Option<u32>,
}

impl<V> Message<V> {
    /// Makes a message that carries `value`.
    pub fn new(value: V) -> Self {
        Self { value: Some(value), parts: MessageParts::default() }
    }

    /// Makes a message without a value: on a compacted log it deletes the key.
    pub fn tombstone() -> Self {
        Self { value: None, parts: MessageParts::default() }
    }

    /// Sets the key, which decides the partition and, with key ordering, the sequence.
    pub fn key(mut self, key: impl AsRef<[u8]>) -> Self {
        self.parts.key = Some(Bytes::copy_from_slice(key.as_ref()));
        self
    }

    /// Appends a header. Names may repeat; order is kept; names that begin with `consign-` are refused at publish.
    pub fn header(mut self, name: impl Into<Box<str>>, value: impl AsRef<[u8]>) -> Self {
        self.parts.headers.push(name, Bytes::copy_from_slice(value.as_ref()));
        self
    }

    /// Sets the identity; a second publish under the same id is the same message to a broker that deduplicates.
    pub fn id(mut self, id: MessageId) -> Self {
        self.parts.id = Some(id);
        self
    }

    /// Sets when the event happened.
    pub fn timestamp(mut self, timestamp: Timestamp) -> Self {
        self.parts.timestamp = Some(timestamp);
        self
    }

    /// Sends the message to this partition, whatever its key says.
    pub fn partition(mut self, partition: u32) -> Self {
        self.parts.partition = Some(partition);
        self
    }

    /// Returns the value; `None` for a tombstone.
    #[must_use]
    pub const fn value(&self) -> Option<&V> {
        self.value.as_ref()
    }

    /// Returns everything but the value.
    #[must_use]
    pub const fn parts(&self) -> &MessageParts {
        &self.parts
    }

    /// Takes the message apart.
    #[must_use]
    pub fn into_parts(self) -> (Option<V>, MessageParts) {
        (self.value, self.parts)
    }
}
