//! The process-wide side of admission: two pools of room, those who wait for it, and a tally per class.

use std::task::Waker;

use super::class::{Class, Usage};
use super::limits::AdmissionLimits;
use super::pool::Pool;
use super::queue::{Answer, Queue, Source, Ticket, Waiter};
use super::sync::{Mutex, lock};
use super::tally::Tally;
use super::units::Units;

/// What came of joining the queue.
#[derive(Debug)]
pub(super) enum Joined {
    /// There was room after all.
    Taken(Source),
    /// The class is closed.
    Closed,
    /// The caller waits.
    Waits(Ticket),
}

/// Pools, queue and tallies.
///
/// Without waiters nothing here locks. A flag in the pool's own word says that somebody waits: whoever raises it
/// holds the lock and saw no room in the same step, and whoever gives back sees it in the same step, then takes the
/// lock and hands the room out, oldest waiter first. A newcomer that sees the flag queues up. So the order is first
/// come, first served: a large message at the front is not starved by small ones behind it, and no wake-up is lost.
///
/// Wakers are woken and dropped outside the lock, because both may run code that comes back here.
#[derive(Debug)]
pub(super) struct Ledger {
    common: Pool,
    reserve: Pool,
    tallies: [Tally; 3],
    queue: Mutex<Queue>,
}

impl Ledger {
    pub(super) fn new(limits: &AdmissionLimits) -> Self {
        Self {
            common: Pool::new(limits.common()),
            reserve: Pool::new(limits.reserve()),
            tallies: [Tally::new(), Tally::new(), Tally::new()],
            queue: Mutex::new(Queue::default()),
        }
    }

    pub(super) const fn tally(&self, class: Class) -> &Tally {
        &self.tallies[class.index()]
    }

    pub(super) fn usage(&self) -> Usage {
        Usage { classes: Class::ALL.map(|class| self.tally(class).usage()) }
    }

    /// Tells whether the count is what stands in a message's way; otherwise it is the bytes, or those before it.
    pub(super) fn count_is_full(&self, class: Class) -> bool {
        let full = |pool: &Pool| !pool.taken().leave_room_for(Units::message(0), pool.limit());
        full(&self.common) && (class != Class::Internal || full(&self.reserve))
    }

    /// Takes units if there is room now and nobody waits for it.
    pub(super) fn take(&self, class: Class, units: Units) -> Option<Source> {
        if class == Class::Internal && self.reserve.take_unless_waited(units) {
            return Some(Source::Reserve);
        }
        self.common.take_unless_waited(units).then_some(Source::Common)
    }

    /// Gives units back, and hands them to those who wait.
    pub(super) fn give(&self, source: Source, units: Units) {
        if self.pool(source).give(units) {
            self.change_queue(|_| ());
        }
    }

    /// Takes units if there is room, else joins the queue.
    pub(super) fn join(&self, class: Class, units: Units, waker: Waker) -> Joined {
        let mut queue = lock(&self.queue);
        // Under the lock, because `close` answers under it: whoever comes after it must see it.
        if self.tally(class).is_closed() {
            return Joined::Closed;
        }
        if self.served_by_reserve(class, units) {
            let first = queue.first_internal(|other| self.reserve.could_hold(other)).is_none();
            if first && self.reserve.take_or_wait(units) {
                return Joined::Taken(Source::Reserve);
            }
        }
        if queue.is_empty() && self.common.take_or_wait(units) {
            self.lower_flags(&queue);
            return Joined::Taken(Source::Common);
        }
        Joined::Waits(queue.join(class, units, waker))
    }

    /// Picks up an answer, or leaves the waker that is to be woken by it.
    pub(super) fn look(&self, class: Class, ticket: Ticket, waker: Waker) -> Option<Answer> {
        let mut queue = lock(&self.queue);
        let answer = queue.pick_up(ticket);
        let replaced = if answer.is_none() { queue.renew(class, ticket, waker) } else { None };
        drop(queue);
        drop(replaced);
        answer
    }

    /// Leaves the queue. An answer that came before is returned: its units belong to the caller.
    pub(super) fn leave(&self, class: Class, ticket: Ticket) -> Option<Answer> {
        let (answer, _removed) = self.change_queue(|queue| match queue.pick_up(ticket) {
            Some(answer) => (Some(answer), None),
            None => (None, queue.remove(class, ticket)),
        });
        answer
    }

    /// Refuses a class from now on, and answers those of it who wait.
    pub(super) fn close(&self, class: Class) {
        self.tally(class).close();
        let closed = self.change_queue(|queue| queue.answer_all(class, Answer::Closed));
        closed.into_iter().for_each(|waiter| waiter.waker.wake());
    }

    /// Changes the queue under its lock, hands out whatever room there is, and wakes those who got some.
    fn change_queue<T>(&self, change: impl FnOnce(&mut Queue) -> T) -> T {
        let mut queue = lock(&self.queue);
        let result = change(&mut queue);
        let served = self.hand_out(&mut queue);
        drop(queue);
        served.into_iter().for_each(|waiter| waiter.waker.wake());
        result
    }

    fn hand_out(&self, queue: &mut Queue) -> Vec<Waiter> {
        let mut served = Vec::new();
        loop {
            // The reserve passes over ordinary waiters, and over internal ones that it could never hold.
            let internal = queue.first_internal(|units| self.reserve.could_hold(units));
            let by_reserve = internal.filter(|waiter| self.reserve.take(waiter.units));
            let next = match by_reserve {
                Some(waiter) => Some((waiter, Source::Reserve)),
                None => queue
                    .front()
                    .filter(|waiter| self.common.take(waiter.units))
                    .map(|waiter| (waiter, Source::Common)),
            };
            let Some((waiter, source)) = next else { break };
            let (class, ticket) = (waiter.class, waiter.ticket);
            served.extend(queue.answer(class, ticket, Answer::Taken(source)));
        }
        self.lower_flags(queue);
        served
    }

    /// Lowers the flags that nobody needs any more.
    fn lower_flags(&self, queue: &Queue) {
        if queue.is_empty() {
            self.common.lower();
        }
        if queue.first_internal(|units| self.reserve.could_hold(units)).is_none() {
            self.reserve.lower();
        }
    }

    fn served_by_reserve(&self, class: Class, units: Units) -> bool {
        class == Class::Internal && self.reserve.could_hold(units)
    }

    const fn pool(&self, source: Source) -> &Pool {
        match source {
            Source::Common => &self.common,
            Source::Reserve => &self.reserve,
        }
    }
}
