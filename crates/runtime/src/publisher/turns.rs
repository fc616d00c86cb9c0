//! Turns: one publish per ordering unit in flight, where an adapter cannot pipeline in order.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use consign_core_api::{EncodedMessage, OrderingScope};
use tokio::sync::{Mutex, OwnedMutexGuard};

/// How many keys can be in flight at once; keys that share a stripe wait for each other.
const STRIPES: usize = 256;

/// The turns of one destination. Waiting is first in, first out.
pub(crate) struct Turns(Vec<Arc<Mutex<()>>>);

impl Turns {
    pub(crate) fn new(scope: OrderingScope) -> Self {
        // Which partition a key goes to is the broker's affair: any two messages may share one.
        let stripes = if scope == OrderingScope::Key { STRIPES } else { 1 };
        Self((0..stripes).map(|_| Arc::default()).collect())
    }

    /// Waits until no earlier publish of the message's ordering unit is in flight. Cancel safe; unbounded, so the
    /// caller bounds it.
    pub(crate) async fn take(&self, message: &EncodedMessage) -> OwnedMutexGuard<()> {
        let mut hasher = DefaultHasher::new();
        message.key().hash(&mut hasher);
        let stripe = usize::try_from(hasher.finish() % self.0.len() as u64).unwrap_or(0);
        Arc::clone(&self.0[stripe]).lock_owned().await
    }
}
