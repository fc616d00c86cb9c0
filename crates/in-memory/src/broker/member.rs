//! A member of a group: one subscription, as the broker sees it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use consign_core_api::spi::{Event, SubscriptionSpec};
use consign_core_api::time::{Clock, Moment};

use super::WakeList;

/// Names a member within its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct MemberId(u64);

impl MemberId {
    pub(crate) const fn new(number: u64) -> Self {
        Self(number)
    }
}

/// Names a connection within its broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ConnectionId(pub(crate) u64);

/// A member. Its events are bounded: what it has not read and is no longer true is taken back.
pub(crate) struct Member {
    pub(crate) id: MemberId,
    pub(crate) connection: ConnectionId,
    pub(crate) limit: usize,
    pub(crate) outstanding: usize,
    /// Where the next round over its units starts.
    pub(crate) turn: usize,
    pub(crate) waker: Option<Waker>,
    events: VecDeque<Event>,
    clock: Arc<dyn Clock>,
}

impl Member {
    pub(crate) fn new(
        id: MemberId,
        connection: ConnectionId,
        spec: &SubscriptionSpec,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            id,
            connection,
            limit: spec.outstanding.get(),
            outstanding: 0,
            turn: 0,
            waker: None,
            events: VecDeque::new(),
            clock,
        }
    }

    /// The moment on the member's own clock.
    pub(crate) fn moment_in(&self, wait: Duration) -> Moment {
        self.clock.now().after(wait)
    }

    /// Adds an event and wakes the member. O(unread events).
    pub(crate) fn tell(&mut self, event: Event, wakes: &mut WakeList) {
        match &event {
            Event::Lost(unit, epoch) => {
                let ended = |e: &Event, assigned_only: bool| match e {
                    Event::Assigned(u, e) => u == unit && e == epoch,
                    Event::Revoking { unit: u, epoch: e, .. } => !assigned_only && u == unit && e == epoch,
                    _ => false,
                };
                if self.events.iter().any(|e| ended(e, true)) {
                    self.events.retain(|e| !ended(e, false));
                    return;
                }
            }
            Event::Interrupted(_) => self.events.retain(|e| !matches!(e, Event::Interrupted(_))),
            _ => {}
        }
        self.events.push_back(event);
        wakes.push(self.waker.take());
    }

    /// Takes every unread event out, in order.
    pub(crate) fn read(&mut self, into: &mut Vec<Event>) {
        into.extend(self.events.drain(..));
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("id", &self.id)
            .field("outstanding", &self.outstanding)
            .finish_non_exhaustive()
    }
}
