//! The driver: one task that reads one subscription, whatever the broker.
//!
//! It is not generic: the handlers that run are behind one object per consumer. Everything happens in its task, so
//! that nothing here needs a lock; replies of the broker arrive in a mailbox. Each file is one part of the life of a
//! delivery:
//!
//! | file | what it does |
//! |---|---|
//! | `intake` | takes events from the subscription |
//! | `handling` | starts handlers and takes their results |
//! | `failing` | carries out what is decided of a failure, copies included |
//! | `handover` | hands endings over in order, and takes the broker's replies |
//! | `units` | assignment, revocation, loss, interruption |
//! | `stopping` | ends everything by a deadline |

mod dice;
mod failing;
mod handling;
mod handover;
mod intake;
mod stopping;
mod units;
mod work;

use std::collections::HashMap;
use std::future::Future as _;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use consign_core_api::message::Timestamp;
use consign_core_api::spi::{
    Batch, Completion, CompletionSink, Epoch, SettlementReply, Settler, Subscription, UnitId,
};
use consign_core_api::time::{Clock as _, Moment};
use consign_core_api::{Failure, PublishOutcome};
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::counters::Counter;
use super::delivery::Content;
use super::lanes::{Flow, Lanes, Limits};
use super::mailbox::Mailbox;
use super::memory::Memory;
use super::pool::HandlerPool;
use super::shared::{Activity, Left, Shared};
use super::source::Source;
use super::timers::Timers;
use super::works::{WorkKey, Works};
use crate::observer::Observed;
use dice::Dice;
use work::{Stage, Work};

/// What a driver is made of.
pub(super) struct Parts {
    pub(super) source: Arc<Source>,
    pub(super) shared: Arc<Shared>,
    /// Which of the consumer's drivers it is.
    pub(super) seat: usize,
    pub(super) pool: Box<dyn HandlerPool>,
    pub(super) settler: Arc<dyn Settler>,
    pub(super) outstanding: NonZeroUsize,
}

/// The driver of one subscription.
pub(super) struct Driver {
    source: Arc<Source>,
    shared: Arc<Shared>,
    seat: usize,
    pool: Box<dyn HandlerPool>,
    settler: Arc<dyn Settler>,
    mailbox: Arc<Mailbox>,
    sink: Arc<dyn CompletionSink<SettlementReply>>,
    copies: FuturesUnordered<BoxFuture<'static, (WorkKey, PublishOutcome)>>,
    works: Works<Work>,
    lanes: Lanes<WorkKey>,
    timers: Timers<Due>,
    units: HashMap<UnitId, units::Unit>,
    memory: Memory,
    dice: Dice,
    kill: Pin<Box<WaitForCancellationFutureOwned>>,
    outstanding: usize,
    /// One look at the clock per turn.
    now: Moment,
    /// When something last came or was in flight.
    active: Moment,
    stopping: Option<stopping::Stopping>,
    left: Vec<Left>,
    ended: bool,
    /// How many units stand still; counted anew when `recount` says so.
    halted: usize,
    recount: bool,
    replies: Vec<(WorkKey, SettlementReply)>,
}

/// What a timer is for.
#[derive(Debug, Clone, Copy)]
enum Due {
    /// A delivery's time has come: back-off, retry copy, another try of a copy.
    Delivery(WorkKey),
    /// A settlement had its time for an answer.
    Reply(WorkKey),
    /// A revoked unit had its time.
    Drained(UnitId, Epoch),
    Extend,
    Cutoff,
    End,
}

/// What a turn of the loop brought.
enum Turn {
    Events(Batch),
    Worked,
    Stop(Moment),
    Kill,
}

type Next<'a> = Pin<Box<dyn Future<Output = Batch> + Send + 'a>>;

/// How many of one kind are taken in one turn, so that nothing else waits for long.
const AT_ONCE: usize = 64;

/// Other tasks of the thread get their turn after so many of ours.
const TURNS: u32 = 32;

impl Driver {
    pub(super) fn new(parts: Parts) -> Self {
        let Parts { source, shared, seat, pool, settler, outstanding } = parts;
        let outstanding = outstanding.get();
        let consumer = &source.here.profile().setup().consumer;
        let limits = Limits {
            concurrency: consumer.concurrency.get(),
            unit_in_flight: consumer.unit_in_flight.get(),
            // A lane that stands still may take a quarter of what is outstanding, so that the others go on.
            buffer: (outstanding / 4).max(1),
        };
        let mailbox = Arc::new(Mailbox::default());
        let now = source.core.clock.now();
        let mut timers = Timers::new();
        if consumer.extend {
            timers.set(now.after(extension_period(consumer.settlement_deadline)), Due::Extend);
        }
        Self {
            kill: Box::pin(source.core.stop.clone().cancelled_owned()),
            source,
            shared,
            seat,
            pool,
            settler,
            sink: Arc::clone(&mailbox) as Arc<dyn CompletionSink<SettlementReply>>,
            mailbox,
            copies: FuturesUnordered::new(),
            works: Works::new(),
            lanes: Lanes::new(limits),
            timers,
            units: HashMap::new(),
            memory: Memory::new(outstanding.saturating_mul(4).max(1024)),
            dice: Dice::new(),
            outstanding,
            now,
            active: now,
            stopping: None,
            left: Vec::new(),
            ended: false,
            halted: 0,
            recount: false,
            replies: Vec::new(),
        }
    }

    /// Runs until it is stopped or everything ends. Dropping it sends no settlement.
    pub(super) async fn run(mut self, mut subscription: Box<dyn Subscription>) {
        let mut stop = self.read(subscription.as_mut()).await;
        while let Some(deadline) = stop {
            self.begin_stop(deadline);
            stop = self.drain().await;
        }
        if let Some(rest) = self.rest_of_stop() {
            drop(tokio::time::timeout(rest, subscription.close()).await);
        }
        self.end();
    }

    /// Reads until a stop is asked for (by when) or everything ends (`None`).
    async fn read(&mut self, subscription: &mut dyn Subscription) -> Option<Moment> {
        let mut turns = 0_u32;
        loop {
            let mut next = subscription.next(self.room());
            let events = loop {
                self.go_on();
                match std::future::poll_fn(|cx| self.poll_turn(cx, Some(&mut next))).await {
                    Turn::Events(events) => break events,
                    Turn::Worked => {}
                    Turn::Stop(deadline) => return Some(deadline),
                    Turn::Kill => return None,
                }
                give_way(&mut turns).await;
            };
            drop(next);
            self.take_events(events);
            give_way(&mut turns).await;
        }
    }

    /// Works without reading until nothing is left, or until another stop is asked for, which is returned.
    async fn drain(&mut self) -> Option<Moment> {
        let mut turns = 0_u32;
        while !self.is_drained() {
            self.go_on();
            match std::future::poll_fn(|cx| self.poll_turn(cx, None)).await {
                Turn::Stop(deadline) => return Some(deadline),
                Turn::Kill => return None,
                Turn::Events(_) | Turn::Worked => {}
            }
            give_way(&mut turns).await;
        }
        None
    }

    /// Looks at everything that may have happened. Events of the subscription are looked at in every turn, however much
    /// else there is: a revocation must not wait behind handlers.
    fn poll_turn(&mut self, cx: &mut Context<'_>, next: Option<&mut Next<'_>>) -> Poll<Turn> {
        self.now = self.source.core.clock.now();
        if self.kill.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Turn::Kill);
        }
        if let Some(deadline) = self.shared.poll_stop(self.seat, cx)
            && self.stopping.as_ref().is_none_or(|stopping| deadline < stopping.deadline)
        {
            return Poll::Ready(Turn::Stop(deadline));
        }
        let mut worked = self.poll_replies(cx);
        for _ in 0..AT_ONCE {
            let Poll::Ready(finished) = self.pool.poll_finished(cx) else { break };
            self.finish(finished.key, finished.result);
            worked = true;
        }
        for _ in 0..AT_ONCE {
            let Poll::Ready(Some((key, outcome))) = self.copies.poll_next_unpin(cx) else { break };
            self.copied(key, outcome);
            worked = true;
        }
        let works = &self.works;
        self.timers.trim(|due| match due {
            Due::Reply(key) => works.get(*key).is_none_or(|work| !work.awaits_reply()),
            _ => false,
        });
        for _ in 0..AT_ONCE {
            let Poll::Ready(due) = self.timers.poll_due(cx, self.now, &self.source.core.clock) else { break };
            self.now = self.source.core.clock.now();
            self.due(due);
            worked = true;
        }
        // An adapter that delivers more than was asked for is not read until that is worked off.
        let next = next.filter(|_| self.works.len() < self.outstanding.saturating_mul(2));
        if let Some(next) = next
            && let Poll::Ready(events) = next.as_mut().poll(cx)
        {
            return Poll::Ready(Turn::Events(events));
        }
        if worked { Poll::Ready(Turn::Worked) } else { Poll::Pending }
    }

    fn due(&mut self, due: Due) {
        match due {
            Due::Delivery(key) => self.delivery_due(key),
            Due::Reply(key) => self.reply_due(key),
            Due::Drained(unit, epoch) => self.drained(unit, epoch),
            Due::Extend => self.extend(),
            Due::Cutoff => self.cut_off(),
            Due::End => {}
        }
    }

    /// Starts what may start, and tells what changed.
    fn go_on(&mut self) {
        // The last handle of the library may be dropped within a turn, by an observer or on another thread. To begin may
        // be to settle, which nothing does after that.
        while !self.source.core.stop.is_cancelled()
            && let Some((_, key)) = self.lanes.start()
        {
            self.begin(key);
        }
        while let Some(flow) = self.lanes.next_flow() {
            match flow {
                Flow::Pause(unit) => self.settler.pause(unit),
                Flow::Resume(unit) => self.settler.resume(unit),
            }
        }
        self.tell_activity();
    }

    fn tell_activity(&mut self) {
        if std::mem::take(&mut self.recount) {
            self.halted = self.works.iter().filter(|(_, work)| matches!(work.stage, Stage::Halted)).count();
        }
        // Behind a unit that stands still for good, others wait for good too.
        let stands = |work: &Work| matches!(work.stage, Stage::Halted | Stage::Waiting(_));
        let idle = self.works.len() == 0
            || (self.halted > 0
                && self.lanes.running() == 0
                && self.works.iter().all(|(_, work)| stands(work)));
        let activity = if idle {
            Activity::IdleSince(self.active)
        } else {
            self.active = self.now;
            Activity::Busy
        };
        self.shared.tell(self.seat, activity, self.halted);
    }

    fn room(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.outstanding.saturating_sub(self.works.len())).unwrap_or(NonZeroUsize::MIN)
    }

    fn extend(&mut self) {
        let tokens: Vec<_> = self
            .works
            .iter()
            .filter(|(_, work)| work.is_held() && !work.stale)
            .map(|(_, work)| work.token)
            .collect();
        if !tokens.is_empty() {
            self.settler.extend(&tokens);
        }
        let deadline = self.source.here.profile().setup().consumer.settlement_deadline;
        self.timers.set(self.now.after(extension_period(deadline)), Due::Extend);
    }

    /// Allows one reply for a delivery, and bounds the wait for it.
    fn completion(&mut self, key: WorkKey) -> Completion<SettlementReply> {
        self.mailbox.open(key);
        let bound = self.source.here.profile().setup().consumer.settlement_deadline;
        self.timers.set_last(self.now.after(bound), Due::Reply(key));
        Completion::new(Arc::clone(&self.sink), key.slot())
    }

    fn wall(&self) -> Timestamp {
        Timestamp::from(self.source.core.clock.wall())
    }

    fn tell(&self, event: &Observed<'_>) {
        self.source.core.observers.tell(event);
    }

    fn tell_filtered(&self, content: &Content, what: &'static str) {
        self.shared.counters.filtered.one();
        self.tell(&Observed::Filtered { delivery: self.source.info(content), what });
    }

    fn tell_discarded(&self, content: &Content, failure: &Failure) {
        self.shared.counters.discarded.one();
        self.tell(&Observed::Discarded { delivery: self.source.info(content), failure });
    }

    fn tell_released(&self, content: &Content) {
        let released: &Counter = &self.shared.counters.released;
        released.one();
        self.tell(&Observed::Released { delivery: self.source.info(content) });
    }
}

/// Three extensions per deadline, so that a late one does not matter.
fn extension_period(deadline: Duration) -> Duration {
    (deadline / 3).max(Duration::from_millis(1))
}

async fn give_way(turns: &mut u32) {
    *turns += 1;
    if *turns >= TURNS {
        *turns = 0;
        tokio::task::yield_now().await;
    }
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").field("source", &self.source).finish_non_exhaustive()
    }
}
