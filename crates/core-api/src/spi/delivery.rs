//! A delivery as it comes from a broker.

use std::fmt;

use crate::message::EncodedMessage;
use crate::position::MessagePosition;

/// An adapter's unit of assignment, pausing and settlement: a partition, or zero where there is one unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct UnitId(u32);

impl UnitId {
    /// Names a unit.
    #[must_use]
    pub const fn new(unit: u32) -> Self {
        Self(unit)
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// One period of ownership of a unit. A settlement of an older epoch reaches no broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Epoch(u64);

impl Epoch {
    /// Names an epoch.
    #[must_use]
    pub const fn new(epoch: u64) -> Self {
        Self(epoch)
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the epoch after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

/// Names one delivery to its subscription: unit, epoch, and a tag of the adapter's choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeliveryToken {
    unit: UnitId,
    epoch: Epoch,
    tag: u64,
}

impl DeliveryToken {
    /// Names a delivery. The tag is unique within unit and epoch.
    #[must_use]
    pub const fn new(unit: UnitId, epoch: Epoch, tag: u64) -> Self {
        Self { unit, epoch, tag }
    }

    /// Returns the unit.
    #[must_use]
    pub const fn unit(self) -> UnitId {
        self.unit
    }

    /// Returns the epoch.
    #[must_use]
    pub const fn epoch(self) -> Epoch {
        self.epoch
    }

    /// Returns the tag.
    #[must_use]
    pub const fn tag(self) -> u64 {
        self.tag
    }
}

/// A message that came from a broker.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Inbound {
    /// Names the delivery.
    pub token: DeliveryToken,
    /// The message. Headers that the adapter wrote for itself (id, key, tombstone, timestamp) are already taken out.
    pub message: EncodedMessage,
    /// Where it stands.
    pub position: Option<MessagePosition>,
    /// How often the broker delivered it, this time included; `None` where it does not count.
    pub delivery_count: Option<u32>,
    /// Whether the broker marked it as delivered before; `None` where it does not mark.
    pub redelivered: Option<bool>,
}

impl Inbound {
    /// Makes a delivery of which nothing but the message is known.
    #[must_use]
    pub const fn new(token: DeliveryToken, message: EncodedMessage) -> Self {
        Self { token, message, position: None, delivery_count: None, redelivered: None }
    }

    /// Adds where it stands.
    #[must_use]
    pub fn at(mut self, position: MessagePosition) -> Self {
        self.position = Some(position);
        self
    }

    /// Adds the broker's count, this delivery included; a count above one is also the redelivered mark.
    #[must_use]
    pub const fn counted(mut self, count: u32) -> Self {
        self.delivery_count = Some(count);
        self.redelivered = Some(count > 1);
        self
    }

    /// Adds the broker's redelivered mark.
    #[must_use]
    pub const fn marked(mut self, redelivered: bool) -> Self {
        self.redelivered = Some(redelivered);
        self
    }
}
