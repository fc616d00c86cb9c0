//! Faults that no broker can be asked for: lost replies, held publishes, settlements that go nowhere.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use consign_core_api::outcome::Transmission;
use consign_core_api::spi::{
    Completion, Destination, PublishReply, PublishRequest, Refusal, Reply, SettlementReply, Settler,
};
use consign_core_api::{Code, Failure, FailureCategory};
use tokio::sync::watch;

use super::{Meddle, Site, Verb, intercept};

/// What befalls a publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PublishFault {
    /// Nothing.
    None,
    /// It waits in the client, not handed over, until it is let go.
    Held,
    /// It reaches the broker, and the reply waits until it is let go.
    ReplyHeld,
    /// It reaches the broker, and the reply is lost.
    ReplyLost,
    /// It is lost after it was handed over, and the adapter says so: nobody knows.
    Lost,
    /// The adapter drops it after the hand-over.
    Dropped,
    /// The adapter drops it before the hand-over.
    DroppedUnsent,
    /// The broker refuses it.
    Refused,
}

/// What befalls a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettleFault {
    /// Nothing.
    None,
    /// It is lost, and so is its reply: SETTLEMENT_UNKNOWN, and the message is unsettled.
    Lost,
    /// It waits until it is let go.
    Held,
}

type Choose<F> = Box<dyn Fn(&Site, usize) -> F + Send + Sync>;

/// Faults of a case's own choice, put between the runtime and the adapter under test.
pub struct Faults {
    publish: Choose<PublishFault>,
    settle: Choose<SettleFault>,
    publishes: AtomicUsize,
    settlements: AtomicUsize,
    state: Mutex<State>,
    changed: watch::Sender<Counts>,
}

#[derive(Default)]
struct State {
    /// While it is open, nothing is held.
    open: bool,
    held: VecDeque<Box<dyn FnOnce() + Send>>,
}

/// How much came by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Publishes that the runtime gave to the adapter.
    pub publishes: usize,
    /// Settlements and terminations.
    pub settlements: usize,
    /// What is held.
    pub held: usize,
}

impl Faults {
    /// No faults; it only counts.
    #[must_use]
    pub fn none() -> Self {
        Self::with(|_, _| PublishFault::None, |_, _| SettleFault::None)
    }

    /// Chooses the fault of each publish, by where it goes and its number from zero.
    #[must_use]
    pub fn publishing(choose: impl Fn(&Site, usize) -> PublishFault + Send + Sync + 'static) -> Self {
        Self::with(choose, |_, _| SettleFault::None)
    }

    /// Chooses the fault of each settlement, by where it goes and its number from zero.
    #[must_use]
    pub fn settling(choose: impl Fn(&Site, usize) -> SettleFault + Send + Sync + 'static) -> Self {
        Self::with(|_, _| PublishFault::None, choose)
    }

    fn with(
        publish: impl Fn(&Site, usize) -> PublishFault + Send + Sync + 'static,
        settle: impl Fn(&Site, usize) -> SettleFault + Send + Sync + 'static,
    ) -> Self {
        Self {
            publish: Box::new(publish),
            settle: Box::new(settle),
            publishes: AtomicUsize::new(0),
            settlements: AtomicUsize::new(0),
            state: Mutex::default(),
            changed: watch::Sender::new(Counts::default()),
        }
    }

    /// Returns how much came by.
    #[must_use]
    pub fn counts(&self) -> Counts {
        *self.changed.borrow()
    }

    /// Waits, without a bound of its own, until so much came by.
    pub async fn until(&self, enough: impl FnMut(&Counts) -> bool) {
        // The sender is `self`, so the channel is open.
        let _ = self.changed.subscribe().wait_for(enough).await;
    }

    /// Lets the oldest thing go that is held. Returns whether there was one.
    pub fn let_one_go(&self) -> bool {
        let one = self.state().held.pop_front();
        self.changed
            .send_modify(|counts| counts.held = counts.held.saturating_sub(usize::from(one.is_some())));
        one.map(|go| go()).is_some()
    }

    /// Lets the newest thing go that is held. Returns whether there was one.
    pub fn let_the_newest_go(&self) -> bool {
        let one = self.state().held.pop_back();
        self.changed
            .send_modify(|counts| counts.held = counts.held.saturating_sub(usize::from(one.is_some())));
        one.map(|go| go()).is_some()
    }

    /// Lets everything go that is held, in order, and holds nothing more.
    pub fn open(&self) {
        self.state().open = true;
        while self.let_one_go() {}
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hold(&self, what: impl FnOnce() + Send + 'static) {
        {
            let mut state = self.state();
            if !state.open {
                state.held.push_back(Box::new(what));
                drop(state);
                self.changed.send_modify(|counts| counts.held += 1);
                return;
            }
        }
        what();
    }
}

impl std::fmt::Debug for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Faults").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

/// A failure that a fault makes.
fn made() -> Failure {
    Failure::new(
        FailureCategory::TransientInfrastructure,
        Code::new("FAULT_OF_THE_CASE"),
        "the case asked for it",
    )
}

impl Meddle for Arc<Faults> {
    fn publish(
        &self,
        site: &Site,
        inner: &Arc<dyn Destination>,
        request: PublishRequest,
        done: Completion<PublishReply>,
    ) {
        let fault = (self.publish)(site, self.publishes.fetch_add(1, Ordering::Relaxed));
        match fault {
            PublishFault::None => inner.publish(request, done),
            PublishFault::Held => {
                let inner = Arc::clone(inner);
                self.hold(move || inner.publish(request, done));
            }
            PublishFault::ReplyHeld => {
                let faults = Self::clone(self);
                let hold =
                    move |reply, done: Completion<PublishReply>| faults.hold(move || done.resolve(reply));
                inner.publish(request, intercept(done, hold));
            }
            PublishFault::ReplyLost => {
                let lose = |_: PublishReply, done: Completion<PublishReply>| {
                    done.resolve(PublishReply::Unknown(made()))
                };
                inner.publish(request, intercept(done, lose));
            }
            PublishFault::Lost => {
                if done.hand_over() {
                    done.resolve(PublishReply::Unknown(made()));
                }
            }
            PublishFault::Dropped => {
                let _ = done.hand_over();
                drop(done);
            }
            PublishFault::DroppedUnsent => drop(done),
            PublishFault::Refused => {
                if done.hand_over() {
                    let refusal = Refusal::new(Transmission::RefusedByBroker, made());
                    done.resolve(PublishReply::Refused(refusal));
                }
            }
        }
        self.changed.send_modify(|counts| counts.publishes += 1);
    }

    fn verb(&self, site: &Site, inner: &Arc<dyn Settler>, verb: Verb, done: Completion<SettlementReply>) {
        if !verb.ends() {
            return verb.pass(inner.as_ref(), done);
        }
        match (self.settle)(site, self.settlements.fetch_add(1, Ordering::Relaxed)) {
            SettleFault::None => verb.pass(inner.as_ref(), done),
            SettleFault::Lost => {
                let _ = done.hand_over();
                done.resolve(SettlementReply::dropped(true));
            }
            SettleFault::Held => {
                let inner = Arc::clone(inner);
                self.hold(move || verb.pass(inner.as_ref(), done));
            }
        }
        self.changed.send_modify(|counts| counts.settlements += 1);
    }
}
