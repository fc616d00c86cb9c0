//! What is remembered of failed messages that were given back, until they come again.

use std::collections::{HashMap, VecDeque};

use consign_core_api::message::Timestamp;
use consign_core_api::{MessageId, MessagePosition};

use super::delivery::Content;

/// Failures of messages that are with the broker. Bounded: the oldest entry is forgotten first, which leads to more
/// attempts than the profile says, never to fewer.
#[derive(Debug)]
pub(super) struct Memory {
    failures: Recent<Failures>,
    /// How often each was given back unprocessed, which the broker counts as a delivery too.
    releases: Recent<u32>,
}

/// The entries that were made last.
#[derive(Debug)]
struct Recent<V> {
    known: HashMap<Name, (u64, V)>,
    /// By the number of the entry. What was taken out since is found by its number, and forgotten when it is in the way.
    order: VecDeque<(u64, Name)>,
    next: u64,
    capacity: usize,
}

impl<V> Recent<V> {
    fn new(capacity: usize) -> Self {
        Self { known: HashMap::new(), order: VecDeque::new(), next: 0, capacity: capacity.max(1) }
    }

    /// Changes an entry, or makes it. O(1), over time.
    fn change(&mut self, name: Name, change: impl FnOnce(Option<&V>) -> V) {
        if let Some((_, value)) = self.known.get_mut(&name) {
            *value = change(Some(value));
            return;
        }
        self.next += 1;
        self.order.push_back((self.next, name.clone()));
        self.known.insert(name, (self.next, change(None)));
        let known = &mut self.known;
        let is_known = |known: &HashMap<Name, (u64, V)>, (number, name): &(u64, Name)| {
            known.get(name).is_some_and(|(of, _)| of == number)
        };
        if self.order.len() > self.capacity.saturating_mul(2) {
            self.order.retain(|entry| is_known(known, entry));
        }
        while known.len() > self.capacity {
            let Some(oldest) = self.order.pop_front() else { break };
            if is_known(known, &oldest) {
                known.remove(&oldest.1);
            }
        }
    }

    fn get(&self, name: &Name) -> Option<&V> {
        self.known.get(name).map(|(_, value)| value)
    }
}

/// What is known of a message's failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Failures {
    pub(super) failed: u32,
    pub(super) first: Timestamp,
}

/// A position is the better name: an id may be published twice.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Name {
    Position(MessagePosition),
    Id(MessageId),
}

impl Memory {
    pub(super) fn new(capacity: usize) -> Self {
        Self { failures: Recent::new(capacity), releases: Recent::new(capacity) }
    }

    pub(super) fn remember(&mut self, content: &Content, failures: Failures) {
        let Some(name) = name(content) else { return };
        self.failures.change(name, |_| failures);
    }

    /// Forgets a message that is settled: under the same id, something new may come.
    pub(super) fn forget(&mut self, content: &Content) {
        if self.failures.known.is_empty() && self.releases.known.is_empty() {
            return;
        }
        if let Some(name) = name(content) {
            self.failures.known.remove(&name);
            self.releases.known.remove(&name);
        }
    }

    /// Takes note that a delivery was given back unprocessed.
    pub(super) fn remember_release(&mut self, content: &Content) {
        let Some(name) = name(content) else { return };
        self.releases.change(name, |before| before.copied().unwrap_or(0).saturating_add(1));
    }

    /// Returns the broker's count of deliveries without those that were given back unprocessed: a message must not be
    /// given up for those.
    pub(super) fn processed_deliveries(&self, content: &Content) -> Option<u32> {
        let count = content.delivery_count?;
        let releases = name(content).and_then(|name| self.releases.get(&name).copied());
        Some(count.saturating_sub(releases.unwrap_or(0)).max(1))
    }

    /// Returns what is known of a message that came (again).
    pub(super) fn recall(&self, content: &Content) -> Option<Failures> {
        if self.failures.known.is_empty() {
            return None;
        }
        self.failures.get(&name(content)?).copied()
    }
}

fn name(content: &Content) -> Option<Name> {
    let position = content.position.clone().map(Name::Position);
    position.or_else(|| content.message.id().cloned().map(Name::Id))
}

#[cfg(test)]
mod tests {
    use consign_core_api::spi::{DeliveryToken, Inbound};
    use consign_core_api::{EncodedMessage, Message};

    use super::*;

    fn content(offset: u64) -> Content {
        let (_, parts) = Message::<()>::tombstone().into_parts();
        let token = DeliveryToken::new(Default::default(), Default::default(), 0);
        let position = MessagePosition::Offset { partition: 0, offset };
        Content::new(Inbound::new(token, EncodedMessage::new("", parts)).at(position))
    }

    #[test]
    fn a_message_that_comes_again_is_recognised_and_the_oldest_is_forgotten() {
        let mut memory = Memory::new(2);
        let failures = |failed| Failures { failed, first: Timestamp::from_millis(1) };
        for offset in 0..3 {
            memory.remember(&content(offset), failures(1));
        }
        memory.remember(&content(2), failures(5));
        assert_eq!(memory.recall(&content(0)), None);
        assert_eq!(memory.recall(&content(2)), Some(failures(5)));
        assert_eq!(memory.failures.known.len(), 2);
    }

    #[test]
    fn deliveries_that_were_given_back_unprocessed_do_not_count() {
        let mut memory = Memory::new(2);
        let mut content = content(0);
        content.delivery_count = Some(4);
        assert_eq!(memory.processed_deliveries(&content), Some(4));
        (0..3).for_each(|_| memory.remember_release(&content));
        assert_eq!(memory.processed_deliveries(&content), Some(1));
        (0..9).for_each(|_| memory.remember_release(&content));
        assert_eq!(memory.processed_deliveries(&content), Some(1));
        (1..=2).for_each(|offset| memory.remember_release(&self::content(offset)));
        assert_eq!(memory.processed_deliveries(&content), Some(4), "the oldest is forgotten");
        assert_eq!(memory.releases.known.len(), 2);
    }

    #[test]
    fn messages_that_are_settled_push_out_nobody() {
        let mut memory = Memory::new(2);
        let failures = |failed| Failures { failed, first: Timestamp::from_millis(1) };
        let mut slow = content(0);
        slow.delivery_count = Some(4);
        memory.remember(&content(1), failures(1));
        memory.forget(&content(1));
        memory.remember(&slow, failures(3));
        memory.remember_release(&slow);
        for offset in (1..1000).map(|offset| 1 + offset % 7) {
            memory.remember(&content(offset), failures(1));
            memory.remember_release(&content(offset));
            memory.forget(&content(offset));
        }
        assert_eq!(memory.recall(&slow), Some(failures(3)));
        assert_eq!(memory.processed_deliveries(&slow), Some(3));
        assert!(memory.failures.order.len() <= 4 && memory.releases.order.len() <= 4, "it grows");
    }
}
