//! What a consumer's handle and its drivers share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use consign_core_api::time::Moment;
use consign_core_api::{DestinationName, MessageId, MessagePosition};
use futures_util::task::AtomicWaker;
use tokio::sync::watch;

use super::counters::Counters;

/// What the handle and all drivers of one consumer share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) counters: Counters,
    pub(super) board: watch::Sender<Board>,
    /// One per driver.
    seats: Vec<Seat>,
    request: Mutex<Option<Moment>>,
}

#[derive(Debug, Default)]
struct Seat {
    waker: AtomicWaker,
}

/// How each driver is.
#[derive(Debug, Clone)]
pub(super) struct Board {
    pub(super) drivers: Vec<DriverState>,
}

/// How one driver is.
#[derive(Debug, Clone)]
pub(super) struct DriverState {
    pub(super) activity: Activity,
    /// How many ordering units stand still; one for a driver that died, until a stop is asked for.
    pub(super) halted: usize,
    /// What was left when it ended; `None` while it runs.
    pub(super) ended: Option<Vec<Left>>,
}

/// Whether something is in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    Busy,
    /// Nothing came and nothing was in flight since then, apart from what stands still for good.
    IdleSince(Moment),
}

/// A delivery that was not settled when its driver ended.
#[derive(Debug, Clone)]
pub(super) struct Left {
    pub(super) destination: DestinationName,
    pub(super) id: Option<MessageId>,
    pub(super) position: Option<MessagePosition>,
    pub(super) because: LeftBecause,
}

/// Why a delivery was not settled when its consumer stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeftBecause {
    /// It was not handled, or not to the end, and was given back.
    Released,
    /// Its settlement was sent, and no proof came in time.
    Unknown,
    /// It could not even be given back in time; the broker takes it back by itself.
    Abandoned,
}

impl Shared {
    pub(super) fn new(drivers: usize, now: Moment) -> Self {
        let state = DriverState { activity: Activity::IdleSince(now), halted: 0, ended: None };
        Self {
            counters: Counters::default(),
            board: watch::Sender::new(Board { drivers: vec![state; drivers] }),
            seats: (0..drivers).map(|_| Seat::default()).collect(),
            request: Mutex::new(None),
        }
    }

    /// Asks all drivers to end by `deadline`. The earliest of several deadlines counts.
    pub(super) fn request_stop(&self, deadline: Moment) {
        {
            let mut request = self.request();
            *request = Some(request.map_or(deadline, |before| before.min(deadline)));
        }
        self.board.send_if_modified(|board| {
            let mut looked_at = false;
            for dead in board.drivers.iter_mut().filter(|driver| driver.ended.is_some()) {
                looked_at |= std::mem::take(&mut dead.halted) > 0;
            }
            looked_at
        });
        for seat in &self.seats {
            seat.waker.wake();
        }
    }

    /// Returns by when to end, if that was asked for; otherwise wakes the task when it is.
    pub(super) fn poll_stop(&self, seat: usize, cx: &std::task::Context<'_>) -> Option<Moment> {
        if let Some(seat) = self.seats.get(seat) {
            seat.waker.register(cx.waker());
        }
        *self.request()
    }

    /// Tells how a driver is, if that changed.
    pub(super) fn tell(&self, seat: usize, activity: Activity, halted: usize) {
        self.board.send_if_modified(|board| {
            let Some(state) = board.drivers.get_mut(seat) else { return false };
            if state.activity == activity && state.halted == halted {
                return false;
            }
            (state.activity, state.halted) = (activity, halted);
            true
        });
    }

    /// Tells that a driver ended and what it left.
    pub(super) fn end(&self, seat: usize, left: Vec<Left>) {
        self.board.send_modify(|board| {
            if let Some(state) = board.drivers.get_mut(seat) {
                state.ended = Some(left);
            }
        });
    }

    fn request(&self) -> MutexGuard<'_, Option<Moment>> {
        self.request.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Board {
    pub(super) fn is_running(&self) -> bool {
        self.drivers.iter().any(|driver| driver.ended.is_none())
    }

    pub(super) fn halted(&self) -> usize {
        self.drivers.iter().map(|driver| driver.halted).sum()
    }

    /// Returns since when nothing is in flight anywhere; `None` while something is.
    pub(super) fn idle_since(&self) -> Option<Moment> {
        let mut latest = Moment::START;
        for driver in &self.drivers {
            match driver.activity {
                Activity::Busy => return None,
                Activity::IdleSince(since) => latest = latest.max(since),
            }
        }
        Some(latest)
    }

    /// Returns everything that was left by the drivers that ended.
    pub(super) fn left(&self) -> Vec<Left> {
        self.drivers.iter().filter_map(|driver| driver.ended.as_ref()).flatten().cloned().collect()
    }
}

impl std::fmt::Display for LeftBecause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Released => "given back",
            Self::Unknown => "settlement unknown",
            Self::Abandoned => "left to the broker",
        })
    }
}
