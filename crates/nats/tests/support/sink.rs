//! The runtime's side of completions, for tests.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};

use consign_core_api::spi::{Completion, CompletionSink, Reply, SlotKey};
use tokio::sync::Notify;

/// Keeps what each key was answered.
pub(crate) struct Sink<R> {
    state: Mutex<State<R>>,
    changed: Notify,
}

struct State<R> {
    answers: HashMap<u64, R>,
    handed_over: HashSet<u64>,
    given_up: HashSet<u64>,
}

impl<R: Reply> CompletionSink<R> for Sink<R> {
    fn hand_over(&self, key: SlotKey) -> bool {
        let mut state = self.state.lock().unwrap();
        let key = key.get().get();
        if state.given_up.contains(&key) {
            return false;
        }
        assert!(state.handed_over.insert(key), "handed over twice");
        drop(state);
        self.changed.notify_waiters();
        true
    }

    fn resolve(&self, batch: &mut Vec<(SlotKey, R)>) {
        for (key, reply) in batch.drain(..) {
            self.answer(key, reply);
        }
    }

    fn resolve_one(&self, key: SlotKey, reply: R) {
        self.answer(key, reply);
    }

    fn released(&self, _: SlotKey) {}

    fn dropped(&self, key: SlotKey) {
        let handed_over = self.state.lock().unwrap().handed_over.contains(&key.get().get());
        self.answer(key, R::dropped(handed_over));
    }
}

impl<R> Sink<R> {
    fn answer(&self, key: SlotKey, reply: R) {
        let before = self.state.lock().unwrap().answers.insert(key.get().get(), reply);
        assert!(before.is_none(), "{key:?} was answered twice");
        self.changed.notify_waiters();
    }
}

/// Makes completions and waits for their answers.
pub(crate) struct Answers<R>(Arc<Sink<R>>);

impl<R: Reply> Answers<R> {
    pub(crate) fn new() -> Self {
        let state = State { answers: HashMap::new(), handed_over: HashSet::new(), given_up: HashSet::new() };
        Self(Arc::new(Sink { state: Mutex::new(state), changed: Notify::new() }))
    }

    pub(crate) fn key(number: u64) -> SlotKey {
        SlotKey::new(NonZeroU64::new(number).unwrap())
    }

    pub(crate) fn completion(&self, number: u64) -> Completion<R> {
        Completion::new(Arc::clone(&self.0) as Arc<dyn CompletionSink<R>>, Self::key(number))
    }

    /// Gives a request up that was not handed over, as the runtime does at the deadline. `false`: too late.
    pub(crate) fn give_up(&self, number: u64) -> bool {
        let mut state = self.0.state.lock().unwrap();
        !state.handed_over.contains(&number) && state.given_up.insert(number)
    }

    pub(crate) fn is_answered(&self, number: u64) -> bool {
        self.0.state.lock().unwrap().answers.contains_key(&number)
    }

    pub(crate) fn is_handed_over(&self, number: u64) -> bool {
        self.0.state.lock().unwrap().handed_over.contains(&number)
    }

    /// Waits for the answer and takes it.
    pub(crate) async fn of(&self, number: u64) -> R {
        let changed = self.0.changed.notified();
        tokio::pin!(changed);
        loop {
            changed.as_mut().enable();
            if let Some(reply) = self.0.state.lock().unwrap().answers.remove(&number) {
                return reply;
            }
            changed.as_mut().await;
            changed.set(self.0.changed.notified());
        }
    }

    pub(crate) async fn handed_over(&self, number: u64) {
        let changed = self.0.changed.notified();
        tokio::pin!(changed);
        loop {
            changed.as_mut().enable();
            if self.is_handed_over(number) {
                return;
            }
            changed.as_mut().await;
            changed.set(self.0.changed.notified());
        }
    }
}
