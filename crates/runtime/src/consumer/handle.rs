//! The handle on a consumer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use consign_core_api::time::{Clock as _, LONGEST, Moment};
use consign_core_api::{DestinationName, Error, ErrorKind, Failure, FailureCategory, GroupName};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::report::StopReport;
use super::shared::{LeftBecause, Shared};
use super::{ConsumerCounters, Unsettled};
use crate::clock::TokioClock;
use crate::codes;
use crate::health::ConsumerHealth;
use crate::registry::{Running, Stopped};
use crate::shutdown::LeftDelivery;

/// A consumer that runs. Cheap to clone.
///
/// Dropping it detaches: the consumer goes on until the library shuts down.
#[derive(Clone)]
#[must_use = "dropping the handle lets the consumer run on; keep it to stop it, or detach on purpose"]
pub struct Consumer(Arc<Inner>);

struct Inner {
    destination: DestinationName,
    group: GroupName,
    shared: Arc<Shared>,
    clock: Arc<TokioClock>,
}

impl Consumer {
    pub(super) fn new(
        destination: DestinationName,
        group: GroupName,
        shared: Arc<Shared>,
        clock: Arc<TokioClock>,
    ) -> Self {
        Self(Arc::new(Inner { destination, group, shared, clock }))
    }

    /// Returns the destination.
    #[must_use]
    pub fn destination(&self) -> &DestinationName {
        &self.0.destination
    }

    /// Returns the group.
    #[must_use]
    pub fn group(&self) -> &GroupName {
        &self.0.group
    }

    /// Lets the consumer run on without a handle.
    pub fn detach(self) {
        drop(self);
    }

    /// Stops by `deadline` from now: takes nothing more, lets running handlers finish, settles, gives the rest back.
    /// Handlers that still run shortly before the deadline (a tenth of it, at most a second) are cut off.
    ///
    /// Returns by the deadline. Twice or concurrently: harmless, the earliest deadline counts, each call returns the
    /// same report. Dropping the future does not take the stop back.
    pub async fn stop(&self, deadline: Duration) -> StopReport {
        let deadline = deadline.min(LONGEST);
        let now = self.0.clock.now();
        // The drivers end a little earlier, so that their report is there in time.
        let margin = (deadline / 20).min(Duration::from_millis(50));
        self.0.shared.request_stop(now.after(deadline.saturating_sub(margin)));
        let mut board = self.0.shared.board.subscribe();
        let ended = board.wait_for(|board| !board.is_running());
        let timed_out = tokio::time::timeout(deadline, ended).await.is_err();
        let left = self.0.shared.board.borrow().left();
        StopReport { unsettled: left.into_iter().map(Unsettled::from).collect(), timed_out }
    }

    /// Waits until nothing came and nothing was in flight for `quiet`, counted from this call at the earliest.
    ///
    /// Without a bound of its own: see [`idle_within`](Self::idle_within). Cancel safe.
    ///
    /// # Errors
    /// `UNIT_HALTED` where an ordering unit stands still and nothing else moves; `CONSUMER_STOPPED` if it ended.
    pub async fn idle(&self, quiet: Duration) -> Result<(), Error> {
        let called = self.0.clock.now();
        let mut board = self.0.shared.board.subscribe();
        loop {
            let (since, halted, running) = {
                let board = board.borrow_and_update();
                (board.idle_since(), board.halted(), board.is_running())
            };
            if !running {
                return Err(stopped());
            }
            let until: Moment = since.map_or(Moment::NEVER, |since| since.max(called).after(quiet));
            if until <= self.0.clock.now() {
                return if halted == 0 { Ok(()) } else { Err(halted_units(halted)) };
            }
            let waited = async {
                if until == Moment::NEVER {
                    std::future::pending::<()>().await;
                }
                tokio::time::sleep_until(self.0.clock.instant(until)).await;
            };
            tokio::select! {
                changed = board.changed() => if changed.is_err() { return Err(stopped()) },
                () = waited => {}
            }
        }
    }

    /// Like [`idle`](Self::idle), for at most `bound`.
    ///
    /// # Errors
    /// `IDLE_TIMED_OUT` when the bound passed first; otherwise as [`idle`](Self::idle).
    pub async fn idle_within(&self, quiet: Duration, bound: Duration) -> Result<(), Error> {
        match tokio::time::timeout(bound.min(LONGEST), self.idle(quiet)).await {
            Ok(result) => result,
            Err(_) => Err(Error::new(
                ErrorKind::TimedOut,
                Failure::new(
                    FailureCategory::TransientInfrastructure,
                    codes::IDLE_TIMED_OUT,
                    format!("the consumer was not idle for {quiet:?} within {bound:?}"),
                ),
            )),
        }
    }

    /// Tells how it is.
    #[must_use]
    pub fn health(&self) -> ConsumerHealth {
        self.0.health()
    }

    /// Tells whether an ordering unit stands still, unsettled, until somebody looks.
    #[must_use]
    pub fn is_halted(&self) -> bool {
        self.0.shared.board.borrow().halted() > 0
    }

    /// Returns what it has done so far.
    #[must_use]
    pub fn counters(&self) -> ConsumerCounters {
        self.0.shared.counters.read()
    }

    pub(super) fn running(&self) -> Arc<dyn Running> {
        Arc::new(Registered(self.clone()))
    }
}

impl Inner {
    fn health(&self) -> ConsumerHealth {
        let board = self.shared.board.borrow();
        ConsumerHealth::new(self.destination.clone(), self.group.clone(), board.is_running(), board.halted())
    }
}

/// What shutdown and health hold of a consumer.
struct Registered(Consumer);

impl Running for Registered {
    fn stop(&self, within: Duration) -> BoxFuture<'static, Stopped> {
        let consumer = self.0.clone();
        async move {
            let report = consumer.stop(within).await;
            let group = consumer.group().clone();
            // What was given back with proof is where it was; only the rest is worth a line.
            let unproven = report.unsettled.into_iter().filter(|left| left.because != LeftBecause::Released);
            let unsettled = unproven
                .map(|left| LeftDelivery::new(left.destination, group.clone(), left.id, left.position))
                .collect();
            Stopped { settled: consumer.counters().settled, unsettled, timed_out: report.timed_out }
        }
        .boxed()
    }

    fn health(&self) -> ConsumerHealth {
        self.0.health()
    }

    fn is_finished(&self) -> bool {
        let board = self.0.0.shared.board.borrow();
        !board.is_running() && board.halted() == 0
    }
}

fn stopped() -> Error {
    let text = "the consumer has ended";
    let failure = Failure::new(FailureCategory::TransientInfrastructure, codes::CONSUMER_STOPPED, text);
    Error::new(ErrorKind::Closed, failure)
}

fn halted_units(halted: usize) -> Error {
    let text = format!("{halted} ordering units stand still, unsettled");
    let failure = Failure::new(FailureCategory::TransientInfrastructure, codes::UNIT_HALTED, text);
    Error::new(ErrorKind::Usage, failure)
}

impl fmt::Debug for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer")
            .field("destination", self.destination())
            .field("group", self.group())
            .finish_non_exhaustive()
    }
}
