//! Everything that the clones of one broker share.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use consign_core_api::DestinationName;
use consign_core_api::time::Clock;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::withheld::CutOff;
use super::{Accepted, ConnectionId, DestinationState, Inner, WakeList};
use crate::chaos::Chaos;
use crate::config::Settings;
use crate::script::Script;

/// How the broker behaves.
#[derive(Debug)]
pub(crate) enum Behaviour {
    Faithful,
    Scripted(Script),
    Chaotic(Chaos),
}

/// Where held publishes stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeldAt {
    /// In the client's queue, not handed over: at its deadline the runtime gives the publish up by itself.
    BeforeHandOver,
    /// Handed over, and provably not transmitted: it can be withdrawn.
    BeforeTransmission,
}

/// What tests switch on and off.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Switches {
    pub(crate) down: bool,
    pub(crate) hold_confirms: bool,
    pub(crate) hold_publishes: Option<HeldAt>,
}

/// The broker behind its handles.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) behaviour: Behaviour,
    registry: Mutex<Registry>,
    last_connection: AtomicU64,
    /// Told when held answers or publishes were let go; a closing connection waits for it.
    pub(crate) let_go: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Registry {
    destinations: BTreeMap<DestinationName, Arc<DestinationState>>,
    switches: Switches,
}

impl Shared {
    pub(crate) fn new(behaviour: Behaviour) -> Self {
        Self {
            behaviour,
            registry: Mutex::default(),
            last_connection: AtomicU64::new(0),
            let_go: Arc::new(Notify::new()),
        }
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn next_connection(&self) -> ConnectionId {
        ConnectionId(self.last_connection.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn is_down(&self) -> bool {
        self.registry().switches.down
    }

    /// Finds a destination, or lets it spring into existence.
    pub(crate) fn open(&self, name: &DestinationName, settings: Settings) -> Arc<DestinationState> {
        let mut registry = self.registry();
        let switches = registry.switches;
        let state = registry.destinations.entry(name.clone()).or_insert_with(|| {
            let let_go = Arc::clone(&self.let_go);
            Arc::new(DestinationState::new(name, settings, &self.behaviour, switches, let_go))
        });
        Arc::clone(state)
    }

    pub(crate) fn find(&self, name: &str) -> Option<Arc<DestinationState>> {
        self.registry().destinations.get(&DestinationName::new(name).ok()?).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<DestinationState>> {
        self.registry().destinations.values().cloned().collect()
    }

    /// Changes the switches for every destination, those to come included, and does `then` under each one's lock.
    /// What it returns is told after all locks are given back.
    pub(crate) fn switch(
        &self,
        change: impl Fn(&mut Switches),
        then: impl Fn(&mut Inner, &mut WakeList) -> (CutOff, Vec<Accepted>),
    ) {
        let mut wakes = WakeList::default();
        let mut done = Vec::new();
        {
            let mut registry = self.registry();
            change(&mut registry.switches);
            for state in registry.destinations.values() {
                let mut inner = state.lock();
                change(&mut inner.switches);
                let (cut, accepted) = then(&mut inner, &mut wakes);
                drop(inner);
                done.push((Arc::clone(state), cut, accepted));
            }
        }
        wakes.wake();
        for (state, cut, accepted) in done {
            cut.tell();
            accepted
                .into_iter()
                .for_each(|accepted| tell(&state, accepted, Handle::try_current().ok().as_ref()));
        }
        self.let_go.notify_waiters();
    }
}

/// Answers a publish, now or later. Without a runtime a late answer comes at once.
pub(crate) fn tell(state: &Arc<DestinationState>, accepted: Accepted, runtime: Option<&Handle>) {
    match (accepted, runtime) {
        (Accepted::Silent, _) => {}
        (Accepted::Answer((done, reply)), _) => done.resolve(reply),
        (Accepted::Later(number, _), None) => state.tell_late(number),
        (Accepted::Later(number, delay), Some(runtime)) => {
            let state = Arc::downgrade(state);
            // Only a scripted or chaotic fault comes here, so a task for each is no cost of a publish. It ends with
            // its delay, and holds nothing.
            runtime.spawn(async move {
                tokio::time::sleep(delay).await;
                if let Some(state) = state.upgrade() {
                    state.tell_late(number);
                }
            });
        }
    }
}

/// What the destinations and subscriptions of one connection share.
pub(crate) struct ConnectionState {
    pub(crate) id: ConnectionId,
    pub(crate) shared: Arc<Shared>,
    pub(crate) clock: Arc<dyn Clock>,
    /// The runtime in which the transport was connected, for late answers.
    pub(crate) runtime: Option<Handle>,
    closed: AtomicBool,
}

impl ConnectionState {
    pub(crate) fn new(shared: Arc<Shared>, clock: Arc<dyn Clock>) -> Self {
        let id = shared.next_connection();
        Self { id, shared, clock, runtime: Handle::try_current().ok(), closed: AtomicBool::new(false) }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Closes, and answers whatever is unanswered. What is published after this was refused.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        for state in self.shared.all() {
            let mut wakes = WakeList::default();
            let cut = state.lock().disconnect(self.id, &mut wakes);
            wakes.wake();
            cut.tell();
        }
    }

    /// Refuses new work; what is owed may still be answered.
    pub(crate) fn refuse_work(&self) {
        self.closed.store(true, Ordering::Release);
    }
}

/// A connection that is forgotten leaves nothing behind.
impl Drop for ConnectionState {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for ConnectionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionState")
            .field("id", &self.id)
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
