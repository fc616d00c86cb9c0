//! What a handler is given: a message, and nothing to settle it with.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use consign_core_api::message::{Headers, Timestamp};
use consign_core_api::spi::{Inbound, UnitId};
use consign_core_api::{EncodedMessage, Failure, FailureCategory, MessageId, MessagePosition, Payload};

use super::HandlerFailure;

/// Everything of a delivery but its value. It is shared by all attempts.
pub(crate) struct Content {
    pub(crate) message: EncodedMessage,
    pub(crate) position: Option<MessagePosition>,
    pub(crate) unit: UnitId,
    pub(crate) delivery_count: Option<u32>,
    pub(crate) redelivered: Option<bool>,
}

/// Shows identity and sizes, never content.
impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Content")
            .field("message", &self.message)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

impl Content {
    pub(crate) fn new(inbound: Inbound) -> Self {
        let Inbound { token, message, position, delivery_count, redelivered, .. } = inbound;
        Self { message, position, unit: token.unit(), delivery_count, redelivered }
    }
}

/// A message that was delivered. Owned, so that a handler may keep it or move it to a task.
///
/// It has no method to settle, to refuse or to give back: the message is settled after its handler succeeded, never
/// by the handler.
///
/// ```compile_fail
/// # use consign_runtime::consumer::Delivery;
/// fn settle(delivery: Delivery<String>) { delivery.ack(); }
/// ```
pub struct Delivery<T> {
    content: Arc<Content>,
    value: Option<T>,
}

impl<T> Delivery<T> {
    pub(crate) const fn new(content: Arc<Content>, value: Option<T>) -> Self {
        Self { content, value }
    }

    /// Returns the value; `None` for a tombstone.
    #[must_use]
    pub const fn value(&self) -> Option<&T> {
        self.value.as_ref()
    }

    /// Returns the value of a message that must have one.
    ///
    /// # Errors
    /// The permanent `TOMBSTONE_UNEXPECTED` for a tombstone.
    pub fn require(&self) -> Result<&T, HandlerFailure> {
        self.value.as_ref().ok_or_else(tombstone)
    }

    /// Takes the value out; `None` for a tombstone.
    #[must_use]
    pub fn into_value(self) -> Option<T> {
        self.value
    }

    /// Returns the key; absent is not empty.
    #[must_use]
    pub fn key(&self) -> Option<&Bytes> {
        self.content.message.key()
    }

    /// Returns the headers, those of the library included.
    #[must_use]
    pub fn headers(&self) -> &Headers {
        self.content.message.headers()
    }

    /// Returns the identity; `None` for a message that has none.
    #[must_use]
    pub fn message_id(&self) -> Option<&MessageId> {
        self.content.message.id()
    }

    /// Returns where the message stands, where the broker says so.
    #[must_use]
    pub fn position(&self) -> Option<&MessagePosition> {
        self.content.position.as_ref()
    }

    /// Returns when the event happened, if the message says so.
    #[must_use]
    pub fn timestamp(&self) -> Option<Timestamp> {
        self.content.message.timestamp()
    }

    /// Returns the unit that the message came from: its partition, or zero where there is one unit.
    #[must_use]
    pub fn partition(&self) -> UnitId {
        self.content.unit
    }

    /// Tells whether the broker delivered it before; `None` where it does not say.
    #[must_use]
    pub fn is_redelivered(&self) -> Option<bool> {
        self.content.redelivered
    }

    /// Returns the payload as it came.
    #[must_use]
    pub fn payload(&self) -> &Payload {
        self.content.message.payload()
    }

    /// Returns the message as it came. Its clone is cheap.
    #[must_use]
    pub fn encoded(&self) -> &EncodedMessage {
        &self.content.message
    }
}

impl<T: Clone> Clone for Delivery<T> {
    fn clone(&self) -> Self {
        Self { content: Arc::clone(&self.content), value: self.value.clone() }
    }
}

/// Shows identity and sizes, never content.
impl<T> fmt::Debug for Delivery<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Delivery").field(&self.content).finish()
    }
}

fn tombstone() -> HandlerFailure {
    HandlerFailure::from_failure(Failure::new(
        FailureCategory::PermanentBusiness,
        consign_core_api::codes::TOMBSTONE_UNEXPECTED,
        "the handler requires a value and the message is a tombstone",
    ))
}

#[cfg(test)]
mod tests {
    use consign_core_api::Message;
    use consign_core_api::spi::{DeliveryToken, Epoch};

    use super::*;

    fn delivery(payload: Payload, value: Option<u32>) -> Delivery<u32> {
        let (_, parts) = Message::<()>::tombstone().key("").header("a", "secret").into_parts();
        let token = DeliveryToken::new(UnitId::new(4), Epoch::new(1), 0);
        let inbound = Inbound::new(token, EncodedMessage::new(payload, parts)).counted(2);
        Delivery::new(Arc::new(Content::new(inbound)), value)
    }

    #[test]
    fn a_tombstone_has_no_value_and_requiring_one_is_permanent() {
        let failure = delivery(Payload::Tombstone, None).require().unwrap_err();
        assert_eq!(failure.code(), "TOMBSTONE_UNEXPECTED");
        assert_eq!(failure.category(), FailureCategory::PermanentBusiness);
        assert_eq!(delivery(Payload::from("7"), Some(7)).require().copied().unwrap(), 7);
    }

    #[test]
    fn everything_but_the_token_is_there_to_read() {
        let delivery = delivery(Payload::from("7"), Some(7));
        assert_eq!(delivery.key(), Some(&Bytes::new()), "an empty key is a key");
        assert_eq!(delivery.partition(), UnitId::new(4));
        assert_eq!(delivery.is_redelivered(), Some(true));
        assert!(delivery.message_id().is_none() && delivery.position().is_none());
        assert!(!format!("{delivery:?}").contains("secret"));
    }
}
