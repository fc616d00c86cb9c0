//! One partition: messages in order, each at its offset.

use std::collections::VecDeque;

use consign_core_api::EncodedMessage;

/// Where a message stands in a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) partition: u32,
    pub(crate) offset: u64,
}

/// The log of a partition. An offset is given once, and never again after the message was forgotten.
#[derive(Debug, Default)]
pub(crate) struct PartitionLog {
    base: u64,
    messages: VecDeque<EncodedMessage>,
}

impl PartitionLog {
    /// The offset of the oldest message that is kept.
    pub(crate) const fn base(&self) -> u64 {
        self.base
    }

    /// The offset of the next message.
    pub(crate) fn end(&self) -> u64 {
        self.base + self.messages.len() as u64
    }

    pub(crate) fn append(&mut self, message: EncodedMessage) -> u64 {
        let offset = self.end();
        self.messages.push_back(message);
        offset
    }

    pub(crate) fn get(&self, offset: u64) -> Option<&EncodedMessage> {
        let index = offset.checked_sub(self.base)?;
        self.messages.get(usize::try_from(index).ok()?)
    }

    /// Forgets every message below `offset` and returns how many those were. O(forgotten).
    pub(crate) fn forget_below(&mut self, offset: u64) -> usize {
        let most = self.messages.len();
        let count = usize::try_from(offset.saturating_sub(self.base)).map_or(most, |n| n.min(most));
        self.messages.drain(..count);
        self.base += count as u64;
        count
    }

    /// Every message that is kept, with its offset, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &EncodedMessage)> {
        (self.base..).zip(&self.messages)
    }
}
