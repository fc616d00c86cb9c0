//! Changes or holds the answer of a completion on its way back.

use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, PoisonError};

use consign_core_api::spi::{Completion, CompletionSink, Reply, SlotKey};

type Change<R> = Box<dyn FnOnce(R, Completion<R>) + Send>;

/// Returns a completion whose answer goes to `change` together with the original completion.
///
/// The hand-over and an answer that never comes pass through unchanged.
pub fn intercept<R: Reply>(
    original: Completion<R>,
    change: impl FnOnce(R, Completion<R>) + Send + 'static,
) -> Completion<R> {
    let sink = Intercept {
        key: original.key(),
        to: Arc::clone(original.sink()),
        inner: Mutex::new(Some((original, Box::new(change)))),
    };
    Completion::new(Arc::new(sink), SlotKey::new(NonZeroU64::MIN))
}

struct Intercept<R: Reply> {
    key: SlotKey,
    to: Arc<dyn CompletionSink<R>>,
    inner: Mutex<Option<(Completion<R>, Change<R>)>>,
}

impl<R: Reply> Intercept<R> {
    fn take(&self) -> Option<(Completion<R>, Change<R>)> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<R: Reply> CompletionSink<R> for Intercept<R> {
    fn hand_over(&self, _: SlotKey) -> bool {
        self.to.hand_over(self.key)
    }

    fn resolve(&self, batch: &mut Vec<(SlotKey, R)>) {
        for (key, reply) in batch.drain(..) {
            self.resolve_one(key, reply);
        }
    }

    fn resolve_one(&self, _: SlotKey, reply: R) {
        if let Some((original, change)) = self.take() {
            change(reply, original);
        }
    }

    fn released(&self, _: SlotKey) {
        self.to.released(self.key);
    }

    fn dropped(&self, _: SlotKey) {
        drop(self.take());
    }
}
