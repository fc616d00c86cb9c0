//! An inbox in memory: the reference, and something for tests.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Begin, Inbox, InboxKey};
use crate::codes;

/// An inbox in memory, which a restart of the process forgets. Cheap to clone; clones share their keys.
///
/// Bounded: it keeps the last `capacity` keys, so that a message which comes again after that many others counts as
/// new.
#[derive(Debug, Clone)]
pub struct MemoryInbox {
    keys: Arc<Mutex<Keys>>,
}

#[derive(Debug)]
struct Keys {
    known: HashSet<InboxKey>,
    order: VecDeque<InboxKey>,
    capacity: usize,
}

/// A transaction of a [`MemoryInbox`]. Dropping it rolls it back.
pub struct MemoryTransaction {
    key: InboxKey,
    effects: Vec<Box<dyn FnOnce() + Send>>,
}

/// How a [`MemoryInbox`] fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryInboxError {
    /// Another transaction committed the same key first.
    #[error("{}: the message id was committed by another transaction", codes::INBOX_CONFLICT)]
    Conflict,
}

impl MemoryInbox {
    /// Makes an empty inbox that keeps `capacity` keys.
    #[must_use]
    pub fn new(capacity: NonZeroUsize) -> Self {
        let keys = Keys { known: HashSet::new(), order: VecDeque::new(), capacity: capacity.get() };
        Self { keys: Arc::new(Mutex::new(keys)) }
    }

    /// Tells whether a key is committed and not forgotten.
    #[must_use]
    pub fn contains(&self, key: &InboxKey) -> bool {
        self.lock().known.contains(key)
    }

    fn lock(&self) -> MutexGuard<'_, Keys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryTransaction {
    /// Adds an effect that takes place when the transaction commits, and never otherwise. It must not panic.
    pub fn on_commit(&mut self, effect: impl FnOnce() + Send + 'static) {
        self.effects.push(Box::new(effect));
    }
}

impl Inbox for MemoryInbox {
    type Tx = MemoryTransaction;
    type Error = MemoryInboxError;

    async fn begin(&self, key: &InboxKey) -> Result<Begin<MemoryTransaction>, MemoryInboxError> {
        if self.contains(key) {
            return Ok(Begin::Duplicate);
        }
        Ok(Begin::Fresh(MemoryTransaction { key: key.clone(), effects: Vec::new() }))
    }

    async fn commit(&self, tx: MemoryTransaction) -> Result<(), MemoryInboxError> {
        let MemoryTransaction { key, effects } = tx;
        {
            let mut keys = self.lock();
            if !keys.known.insert(key.clone()) {
                return Err(MemoryInboxError::Conflict);
            }
            keys.order.push_back(key);
            while keys.order.len() > keys.capacity {
                if let Some(oldest) = keys.order.pop_front() {
                    keys.known.remove(&oldest);
                }
            }
        }
        // No await between the key and the effects: nobody can drop this future between them.
        effects.into_iter().for_each(|effect| effect());
        Ok(())
    }
}

impl fmt::Debug for MemoryTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryTransaction")
            .field("key", &self.key)
            .field("effects", &self.effects.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use consign_core_api::{DestinationName, GroupName, MessageId};

    use super::*;

    fn key(id: &str) -> InboxKey {
        let (destination, group) =
            (DestinationName::new("orders").unwrap(), GroupName::new("billing").unwrap());
        InboxKey::new(destination, group, MessageId::new(id).unwrap())
    }

    async fn fresh(inbox: &MemoryInbox, id: &str) -> MemoryTransaction {
        match inbox.begin(&key(id)).await.unwrap() {
            Begin::Fresh(tx) => tx,
            Begin::Duplicate => panic!("{id} is a duplicate"),
        }
    }

    #[tokio::test]
    async fn an_effect_takes_place_once_with_its_key() {
        let inbox = MemoryInbox::new(NonZeroUsize::new(10).unwrap());
        let effects = Arc::new(AtomicUsize::new(0));
        let with_effect = |mut tx: MemoryTransaction| {
            let effects = Arc::clone(&effects);
            tx.on_commit(move || {
                effects.fetch_add(1, Ordering::SeqCst);
            });
            tx
        };
        drop(with_effect(fresh(&inbox, "a").await));
        let (one, two) = (fresh(&inbox, "a").await, fresh(&inbox, "a").await);
        inbox.commit(with_effect(one)).await.unwrap();
        assert_eq!(inbox.commit(with_effect(two)).await, Err(MemoryInboxError::Conflict));
        assert!(matches!(inbox.begin(&key("a")).await, Ok(Begin::Duplicate)));
        assert_eq!(effects.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn it_forgets_the_oldest_key_and_never_grows_past_its_capacity() {
        let inbox = MemoryInbox::new(NonZeroUsize::new(2).unwrap());
        for id in ["a", "b", "c"] {
            let tx = fresh(&inbox, id).await;
            inbox.commit(tx).await.unwrap();
        }
        assert!(!inbox.contains(&key("a")) && inbox.contains(&key("b")) && inbox.contains(&key("c")));
        let keys = inbox.lock();
        assert_eq!((keys.known.len(), keys.order.len()), (2, 2));
    }
}
