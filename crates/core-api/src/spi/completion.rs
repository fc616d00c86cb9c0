//! Completions: how an adapter says, once and from any thread, what became of a request.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;

/// Names a slot of the runtime and one use of it. It crosses a C callback as a number.
///
/// A sink never uses a key twice: a late reply after the slot was given to another request is recognised. Keys of two
/// sinks may be equal; every consumer has a sink of its own for its settlements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotKey(NonZeroU64);

impl SlotKey {
    /// Makes a key from its number.
    #[must_use]
    pub const fn new(number: NonZeroU64) -> Self {
        Self(number)
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> NonZeroU64 {
        self.0
    }
}

impl fmt::Debug for SlotKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slot {:#x}", self.0)
    }
}

/// What a completion can be resolved with.
pub trait Reply: Send + Sized + 'static {
    /// What is told when the completion was dropped without a reply.
    ///
    /// After the hand-over the end is unknown; before it, nothing was sent.
    fn dropped(handed_over: bool) -> Self;
}

/// The runtime's side of completions.
///
/// Each method may be called from any thread, also from inside a foreign callback. None blocks longer than a
/// short critical section, none calls back into the adapter.
pub trait CompletionSink<R: Reply>: Send + Sync + 'static {
    /// Takes the request from queued to handed over. `false` means that it was already given up: it must not be
    /// transmitted, and the completion is simply dropped.
    ///
    /// Called once per key, before the first call that could transmit.
    fn hand_over(&self, key: SlotKey) -> bool;

    /// Resolves every key in the batch and leaves it empty, its capacity kept. Wakes each waiting task once.
    fn resolve(&self, batch: &mut Vec<(SlotKey, R)>);

    /// Resolves one key.
    fn resolve_one(&self, key: SlotKey, reply: R);

    /// Says that the client holds the request's bytes no more although no reply has come yet. Resolving implies it.
    fn released(&self, key: SlotKey);

    /// Says that a completion was dropped without a reply.
    fn dropped(&self, key: SlotKey);
}

/// The duty to say, exactly once, what became of one request.
///
/// Dropping it is also an answer: unknown if the request was handed over, refused if not.
#[must_use = "dropping a completion tells its publisher that the end is unknown"]
pub struct Completion<R: Reply> {
    sink: Arc<dyn CompletionSink<R>>,
    key: Option<SlotKey>,
}

impl<R: Reply> Completion<R> {
    /// Makes a completion. The runtime calls it; an adapter calls it after a foreign callback, with the key that it
    /// had taken by [`into_raw`](Self::into_raw).
    pub const fn new(sink: Arc<dyn CompletionSink<R>>, key: SlotKey) -> Self {
        Self { sink, key: Some(key) }
    }

    /// Returns the key, for a batch or for [`withdraw`](super::Destination::withdraw).
    #[must_use]
    pub fn key(&self) -> SlotKey {
        // Only `into_raw`, `resolve` and `into_batch` take the key, and all of them consume the completion.
        self.key.unwrap_or(SlotKey(NonZeroU64::MAX))
    }

    /// Takes the request from queued to handed over. `false`: it was given up; do not transmit, drop this.
    #[must_use]
    pub fn hand_over(&self) -> bool {
        self.sink.hand_over(self.key())
    }

    /// Resolves.
    pub fn resolve(mut self, reply: R) {
        if let Some(key) = self.key.take() {
            self.sink.resolve_one(key, reply);
        }
    }

    /// Puts the reply into a batch, which the adapter hands to [`CompletionSink::resolve`] when it is complete.
    pub fn into_batch(mut self, reply: R, batch: &mut Vec<(SlotKey, R)>) {
        if let Some(key) = self.key.take() {
            batch.push((key, reply));
        }
    }

    /// Turns the completion into its key without answering. Whoever holds the key now has the duty.
    #[must_use]
    pub fn into_raw(mut self) -> SlotKey {
        let key = self.key();
        self.key = None;
        key
    }

    /// Returns the sink, for batches.
    #[must_use]
    pub const fn sink(&self) -> &Arc<dyn CompletionSink<R>> {
        &self.sink
    }
}

impl<R: Reply> Drop for Completion<R> {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.sink.dropped(key);
        }
    }
}

impl<R: Reply> fmt::Debug for Completion<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Completion").field(&self.key).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::spi::SettlementReply;

    #[derive(Default)]
    struct Log(Mutex<Vec<&'static str>>);

    impl CompletionSink<SettlementReply> for Log {
        fn hand_over(&self, _: SlotKey) -> bool {
            true
        }
        fn resolve(&self, batch: &mut Vec<(SlotKey, SettlementReply)>) {
            for _ in batch.drain(..) {
                self.0.lock().unwrap().push("batch");
            }
        }
        fn resolve_one(&self, _: SlotKey, _: SettlementReply) {
            self.0.lock().unwrap().push("one");
        }
        fn released(&self, _: SlotKey) {}
        fn dropped(&self, _: SlotKey) {
            self.0.lock().unwrap().push("dropped");
        }
    }

    #[test]
    fn a_completion_answers_exactly_once_even_when_it_is_dropped() {
        let log = Arc::new(Log::default());
        let sink: Arc<dyn CompletionSink<SettlementReply>> = log.clone();
        let key = SlotKey::new(NonZeroU64::MIN);
        let completion = || Completion::new(sink.clone(), key);
        drop(completion());
        completion().resolve(SettlementReply::dropped(true));
        let mut batch = Vec::new();
        completion().into_batch(SettlementReply::dropped(true), &mut batch);
        sink.resolve(&mut batch);
        assert_eq!(completion().into_raw(), key);
        assert_eq!(*log.0.lock().unwrap(), ["dropped", "one", "batch"]);
    }
}
