//! Changes or holds the answer of a completion on its way back.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use consign_core_api::spi::{Completion, CompletionSink, Reply, SlotKey};

type Change<R> = Box<dyn FnOnce(R, Completion<R>) + Send>;
type Open<R> = HashMap<SlotKey, (Completion<R>, Change<R>)>;

/// Returns a completion whose answer goes to `change` together with the original completion.
///
/// The key is the original's, and completions of one sink stay completions of one sink, so that an adapter may resolve
/// them in batches and withdraw them by key. The hand-over, the release of bytes, and an answer that never comes pass
/// through unchanged. A completion can be intercepted again.
pub fn intercept<R: Reply>(
    original: Completion<R>,
    change: impl FnOnce(R, Completion<R>) + Send + 'static,
) -> Completion<R> {
    let sink = Intercept::of(original.sink());
    let key = original.key();
    lock(&sink.open).insert(key, (original, Box::new(change)));
    Completion::new(sink, key)
}

/// Stands in front of one sink.
struct Intercept<R: Reply> {
    to: Arc<dyn CompletionSink<R>>,
    /// How often this sink was intercepted already; two interceptions of one completion are two sinks.
    open: Mutex<Open<R>>,
}

type Known = HashMap<(TypeId, usize), Weak<dyn Any + Send + Sync>>;

/// The interceptors in use, by the sink that they stand in front of.
static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

impl<R: Reply> Intercept<R> {
    /// Returns the interceptor of a sink. While it lives it keeps the sink, so that the address stays the sink's.
    fn of(to: &Arc<dyn CompletionSink<R>>) -> Arc<Self> {
        let address = Arc::as_ptr(to).cast::<()>() as usize;
        let mut known = lock(&KNOWN);
        let slot = known.entry((TypeId::of::<R>(), address)).or_insert_with(|| Weak::<Self>::new());
        if let Some(alive) = slot.upgrade().and_then(|any| any.downcast::<Self>().ok()) {
            return alive;
        }
        let fresh = Arc::new(Self { to: Arc::clone(to), open: Mutex::default() });
        let any: Arc<dyn Any + Send + Sync> = fresh.clone();
        *slot = Arc::downgrade(&any);
        fresh
    }

    fn take(&self, key: SlotKey) -> Option<(Completion<R>, Change<R>)> {
        lock(&self.open).remove(&key)
    }
}

impl<R: Reply> CompletionSink<R> for Intercept<R> {
    fn hand_over(&self, key: SlotKey) -> bool {
        self.to.hand_over(key)
    }

    fn resolve(&self, batch: &mut Vec<(SlotKey, R)>) {
        for (key, reply) in batch.drain(..) {
            self.resolve_one(key, reply);
        }
    }

    fn resolve_one(&self, key: SlotKey, reply: R) {
        match self.take(key) {
            Some((original, change)) => change(reply, original),
            // An answer to what was answered already: the sink knows what to do with it.
            None => self.to.resolve_one(key, reply),
        }
    }

    fn released(&self, key: SlotKey) {
        self.to.released(key);
    }

    fn dropped(&self, key: SlotKey) {
        drop(self.take(key));
    }
}

impl<R: Reply> Drop for Intercept<R> {
    fn drop(&mut self) {
        // What an adapter forgot, as it must after a withdrawal, is forgotten and not answered.
        let open = self.open.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (_, (original, _)) in open.drain() {
            let _ = original.into_raw();
        }
        let address = Arc::as_ptr(&self.to).cast::<()>() as usize;
        let mut known = lock(&KNOWN);
        let key = (TypeId::of::<R>(), address);
        if known.get(&key).is_some_and(|weak| weak.strong_count() == 0) {
            known.remove(&key);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use consign_core_api::settlement::{SettlementEvidence, SettlementLevel};
    use consign_core_api::spi::SettlementReply;

    use super::*;

    #[derive(Default)]
    struct Log(Mutex<Vec<String>>);

    impl Log {
        fn say(&self, what: &str, key: SlotKey) {
            lock(&self.0).push(format!("{what} {}", key.get()));
        }
    }

    impl CompletionSink<SettlementReply> for Log {
        fn hand_over(&self, key: SlotKey) -> bool {
            self.say("handed over", key);
            true
        }
        fn resolve(&self, batch: &mut Vec<(SlotKey, SettlementReply)>) {
            batch.drain(..).for_each(|(key, reply)| self.resolve_one(key, reply));
        }
        fn resolve_one(&self, key: SlotKey, reply: SettlementReply) {
            let known = matches!(reply, SettlementReply::Evidence(_));
            self.say(if known { "evidence" } else { "unknown" }, key);
        }
        fn released(&self, key: SlotKey) {
            self.say("released", key);
        }
        fn dropped(&self, key: SlotKey) {
            self.say("dropped", key);
        }
    }

    fn evidence() -> SettlementReply {
        SettlementReply::Evidence(SettlementEvidence::observed(SettlementLevel::Processed))
    }

    fn completion(log: &Arc<Log>, key: u64) -> Completion<SettlementReply> {
        Completion::new(log.clone(), SlotKey::new(NonZeroU64::new(key).unwrap()))
    }

    #[test]
    fn an_answer_is_changed_and_everything_else_passes() {
        let log = Arc::new(Log::default());
        let changed = intercept(completion(&log, 7), |_, done| done.resolve(SettlementReply::dropped(true)));
        assert_eq!(changed.key().get().get(), 7, "an adapter withdraws by the key that it was given");
        assert!(changed.hand_over());
        changed.sink().released(changed.key());
        changed.resolve(evidence());
        drop(intercept(completion(&log, 8), |reply, done| done.resolve(reply)));
        assert_eq!(*lock(&log.0), ["handed over 7", "released 7", "unknown 7", "dropped 8"]);
    }

    #[test]
    fn completions_of_one_sink_can_be_resolved_in_one_batch() {
        let log = Arc::new(Log::default());
        let one = intercept(completion(&log, 1), |reply, done| done.resolve(reply));
        let two = intercept(completion(&log, 2), |reply, done| done.resolve(reply));
        let sink = Arc::clone(one.sink());
        let mut batch = Vec::new();
        one.into_batch(evidence(), &mut batch);
        two.into_batch(evidence(), &mut batch);
        sink.resolve(&mut batch);
        assert_eq!(*lock(&log.0), ["evidence 1", "evidence 2"]);
    }

    #[test]
    fn interceptions_nest() {
        let log = Arc::new(Log::default());
        let inner = intercept(completion(&log, 1), |_, done| done.resolve(evidence()));
        let outer = intercept(inner, |_, done| done.resolve(SettlementReply::dropped(true)));
        assert!(outer.hand_over());
        outer.resolve(evidence());
        assert_eq!(*lock(&log.0), ["handed over 1", "evidence 1"]);
    }

    #[test]
    fn what_is_forgotten_after_a_withdrawal_is_not_answered() {
        let log = Arc::new(Log::default());
        let forgotten = intercept(completion(&log, 3), |reply, done| done.resolve(reply));
        let _ = forgotten.into_raw();
        assert!(lock(&log.0).is_empty());
    }
}
