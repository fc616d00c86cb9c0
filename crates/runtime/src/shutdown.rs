//! How everything ends.

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use consign_core_api::spi::Connection;
use consign_core_api::time::{Clock, LONGEST, Moment};
use consign_core_api::{DestinationName, GroupName, MessageId, MessagePosition};
use consign_policy::admission::{Admission, Class};
use futures_util::FutureExt as _;
use futures_util::future::{join, join_all};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::clock::TokioClock;
use crate::core::Core;
use crate::slab::{PublishSlab, Reason, Unresolved};

/// What a shutdown left behind.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Publishes that had no answer by the deadline: AMBIGUOUS.
    pub ambiguous: Vec<LeftPublish>,
    /// Publishes that were never sent: REJECTED.
    pub unsent: Vec<LeftPublish>,
    /// Deliveries that were neither settled nor given back with proof: expect them again.
    pub unsettled: Vec<LeftDelivery>,
    /// How many deliveries were settled over the consumers' life.
    pub settled: u64,
    /// Whether the deadline cut something short, or a connection failed to close.
    pub timed_out: bool,
}

/// A publish that a shutdown left without an answer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LeftPublish {
    /// The destination.
    pub destination: DestinationName,
    /// The message.
    pub id: Option<MessageId>,
}

/// A delivery that a shutdown left unsettled.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LeftDelivery {
    /// The destination.
    pub destination: DestinationName,
    /// The group.
    pub group: GroupName,
    /// The message.
    pub id: Option<MessageId>,
    /// Where it stands.
    pub position: Option<MessagePosition>,
}

impl LeftDelivery {
    pub(crate) const fn new(
        destination: DestinationName,
        group: GroupName,
        id: Option<MessageId>,
        position: Option<MessagePosition>,
    ) -> Self {
        Self { destination, group, id, position }
    }
}

impl ShutdownReport {
    /// Tells whether every publish had its answer and every delivery its settlement.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.ambiguous.is_empty() && self.unsent.is_empty() && self.unsettled.is_empty() && !self.timed_out
    }
}

impl ShutdownReport {
    fn note(&mut self, left: Vec<Unresolved>) {
        for left in left {
            let list = if left.ambiguous { &mut self.ambiguous } else { &mut self.unsent };
            list.push(LeftPublish { destination: left.destination, id: left.id });
        }
    }
}

impl fmt::Display for ShutdownReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "settled: {}, ambiguous: {}, unsent: {}, unsettled: {}",
            self.settled,
            self.ambiguous.len(),
            self.unsent.len(),
            self.unsettled.len()
        )?;
        let name = |id: &Option<MessageId>| {
            id.as_ref().map_or_else(|| "without id".to_owned(), MessageId::to_string)
        };
        for left in &self.ambiguous {
            write!(f, "\n  ambiguous: {} in {}", name(&left.id), left.destination)?;
        }
        for left in &self.unsent {
            write!(f, "\n  unsent: {} to {}", name(&left.id), left.destination)?;
        }
        for left in &self.unsettled {
            write!(f, "\n  unsettled: {} of {} in {}", name(&left.id), left.group, left.destination)?;
        }
        Ok(())
    }
}

/// The one shutdown of a library, however often it is asked for.
#[derive(Default)]
pub(crate) struct Shutdown(Mutex<Option<Started>>);

struct Started {
    /// The earliest deadline that anybody asked for.
    deadline: watch::Sender<Moment>,
    result: watch::Receiver<Option<ShutdownReport>>,
}

impl Shutdown {
    /// Starts it, or hastens and waits for the one that was started. It runs in a task of its own, so that a dropped
    /// caller does not stop it.
    pub(crate) async fn run(&self, core: &Arc<Core>, within: Duration) -> ShutdownReport {
        let deadline = core.clock.now().after(within.min(LONGEST));
        let mut result = {
            let mut started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let started = started.get_or_insert_with(|| start(core, deadline));
            started.deadline.send_if_modified(|earliest| {
                let earlier = deadline < *earliest;
                *earliest = deadline.min(*earliest);
                earlier
            });
            started.result.clone()
        };
        match result.wait_for(Option::is_some).await {
            Ok(report) => report.clone().unwrap_or_default(),
            // The task is gone with its runtime: nothing more can be said than that it was cut short.
            Err(_) => ShutdownReport { timed_out: true, ..ShutdownReport::default() },
        }
    }
}

fn start(core: &Arc<Core>, deadline: Moment) -> Started {
    let (tell, result) = watch::channel(None);
    let (deadline, changes) = watch::channel(deadline);
    let core = Arc::clone(core);
    tokio::spawn(async move {
        let time = Time { clock: Arc::clone(&core.clock), deadline: changes };
        let report = shut_down(&core, time).await;
        tell.send_replace(Some(report));
    });
    Started { deadline, result }
}

/// What is left of a shutdown's time; it may become less at any moment.
struct Time {
    clock: Arc<TokioClock>,
    deadline: watch::Receiver<Moment>,
}

impl Time {
    fn rest(&mut self) -> Duration {
        self.deadline.borrow_and_update().since(self.clock.now())
    }

    /// Does `work` for at most a share of what is left; `None` if that was too short. Whatever the shares, steps one
    /// after the other end by the deadline, since each takes its share of what the former ones left.
    async fn share<T>(&mut self, share: f64, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        loop {
            let bound = self.rest().mul_f64(share);
            tokio::select! {
                biased;
                done = &mut work => return Some(done),
                () = tokio::time::sleep(bound) => return None,
                Ok(()) = self.deadline.changed() => {}
            }
        }
    }
}

async fn shut_down(core: &Arc<Core>, mut time: Time) -> ShutdownReport {
    let mut report = ShutdownReport::default();

    core.admission.close(Class::External);
    // A part of the time is kept for what must follow the handlers: their publishes, and the connections.
    let stopped = loop {
        let within = time.rest().mul_f64(0.8);
        tokio::select! {
            biased;
            stopped = core.consumers.stop_all(within) => break stopped,
            // Asked again, with less time.
            Ok(()) = time.deadline.changed() => {}
        }
    };
    report.settled = stopped.settled;
    report.unsettled = stopped.unsettled;
    report.timed_out |= stopped.timed_out;

    core.admission.close(Class::Handler);
    let published = join(core.admission.drained(Class::External), core.admission.drained(Class::Handler));
    report.timed_out |= time.share(0.7, published).await.is_none();
    core.admission.close(Class::Internal);
    report.timed_out |= time.share(0.5, core.admission.drained(Class::Internal)).await.is_none();
    report.note(core.slab.give_up_all(Reason::ShutDown));

    let closing = time.rest();
    let close = |connection: &Arc<dyn Connection>| {
        let connection = Arc::clone(connection);
        // A connection that panics must not cost the others their end, nor the caller the report.
        AssertUnwindSafe(async move { connection.close(closing).await }).catch_unwind()
    };
    let closed = time.share(1.0, join_all(core.connections.values().map(close))).await;
    report.timed_out |= closed.is_none_or(|closed| closed.iter().any(Result::is_err));

    core.stop.cancel();
    // Once more: a publish may have been between its admission and its slot. One that comes later still sees that the
    // library has stopped, and gives itself up.
    report.note(core.slab.give_up_all(Reason::ShutDown));
    report
}

/// What dropping the last handle does, and the end of the task that watches deadlines: no settlement is sent, nothing
/// new is taken; what had no verdict gets one, which is told to the observers.
pub(crate) fn abandon(slab: &PublishSlab, admission: &Admission, stop: &CancellationToken) {
    for class in Class::ALL {
        admission.close(class);
    }
    stop.cancel();
    drop(slab.give_up_all(Reason::ShutDown));
}
