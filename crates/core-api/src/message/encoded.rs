//! A message as it travels.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use super::{Headers, MessageId, MessageParts, Payload};

/// Milliseconds since the Unix epoch; negative before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Makes a timestamp from milliseconds since the Unix epoch.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns the milliseconds since the Unix epoch.
    #[must_use]
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// Returns the timestamp `wait` later; at the end of its range it stays there.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl From<SystemTime> for Timestamp {
    /// Rounds down to a millisecond; what lies outside the range becomes its end.
    fn from(time: SystemTime) -> Self {
        let millis = |d: Duration| i64::try_from(d.as_millis()).unwrap_or(i64::MAX);
        Self(match time.duration_since(UNIX_EPOCH) {
            Ok(since) => millis(since),
            Err(before) => -millis(before.duration()),
        })
    }
}

/// A message as an adapter carries it: payload, key, headers, identity. Cloning is cheap.
///
/// It is what a REJECTED publish hands back, and what `publish_encoded` takes.
#[derive(Clone, PartialEq, Eq)]
pub struct EncodedMessage {
    payload: Payload,
    key: Option<Bytes>,
    headers: Headers,
    id: Option<MessageId>,
    timestamp: Option<Timestamp>,
    partition: Option<u32>,
}

impl EncodedMessage {
    /// Joins a payload and the rest of a message.
    #[must_use]
    pub fn new(payload: impl Into<Payload>, parts: MessageParts) -> Self {
        let MessageParts { key, headers, id, timestamp, partition } = parts;
        Self { payload: payload.into(), key, headers, id, timestamp, partition }
    }

    /// Returns the payload.
    #[must_use]
    pub const fn payload(&self) -> &Payload {
        &self.payload
    }

    /// Returns the key; absent is not empty.
    #[must_use]
    pub const fn key(&self) -> Option<&Bytes> {
        self.key.as_ref()
    }

    /// Returns the headers.
    #[must_use]
    pub const fn headers(&self) -> &Headers {
        &self.headers
    }

    /// Gives the headers for a change.
    pub const fn headers_mut(&mut self) -> &mut Headers {
        &mut self.headers
    }

    /// Returns the identity, if the message has one.
    #[must_use]
    pub const fn id(&self) -> Option<&MessageId> {
        self.id.as_ref()
    }

    /// Sets or removes the identity.
    pub fn set_id(&mut self, id: Option<MessageId>) {
        self.id = id;
    }

    /// Sets or removes the key.
    pub fn set_key(&mut self, key: Option<Bytes>) {
        self.key = key;
    }

    /// Sets or removes the explicit partition.
    pub const fn set_partition(&mut self, partition: Option<u32>) {
        self.partition = partition;
    }

    /// Returns when the event happened, if the message says so.
    #[must_use]
    pub const fn timestamp(&self) -> Option<Timestamp> {
        self.timestamp
    }

    /// Sets when the event happened.
    pub const fn set_timestamp(&mut self, timestamp: Option<Timestamp>) {
        self.timestamp = timestamp;
    }

    /// Returns the explicit partition, if one was chosen.
    #[must_use]
    pub const fn partition(&self) -> Option<u32> {
        self.partition
    }

    /// Returns the bytes of payload, key and headers together, which is what limits count. O(headers).
    #[must_use]
    pub fn size(&self) -> usize {
        self.payload.len() + self.key.as_ref().map_or(0, Bytes::len) + self.headers.size()
    }
}

/// Shows sizes and the id, never content.
impl fmt::Debug for EncodedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncodedMessage")
            .field("id", &self.id)
            .field("payload", &self.payload)
            .field("key_bytes", &self.key.as_ref().map(Bytes::len))
            .field("headers", &self.headers)
            .field("partition", &self.partition)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_counts_payload_key_and_headers() {
        let (_, parts) = super::super::Message::<()>::tombstone().key("abc").header("n", "vv").into_parts();
        let message = EncodedMessage::new(Bytes::from_static(b"12345"), parts);
        assert_eq!(message.size(), 5 + 3 + 3);
    }

    #[test]
    fn debug_shows_no_content() {
        let (_, parts) =
            super::super::Message::<()>::tombstone().key("secret-key").header("n", "hush").into_parts();
        let text = format!("{:?}", EncodedMessage::new("hunter2", parts));
        assert!(
            !text.contains("hunter2") && !text.contains("secret-key") && !text.contains("hush"),
            "{text}"
        );
    }

    #[test]
    fn timestamps_of_any_time_do_not_panic() {
        assert_eq!(Timestamp::from(UNIX_EPOCH).millis(), 0);
        assert_eq!(Timestamp::from(UNIX_EPOCH - Duration::from_millis(5)).millis(), -5);
        assert_eq!(Timestamp::from_millis(i64::MAX).after(Duration::MAX).millis(), i64::MAX);
    }
}
