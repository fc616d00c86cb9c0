//! Those who wait for room, in their order.

use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;

use super::class::Class;
use super::units::Units;

/// Names a waiter. Tickets grow, so that the smaller one came first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

/// Which pool units were taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Common,
    Reserve,
}

/// What a waiter is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// The units were taken for it.
    Taken(Source),
    /// Its class was closed.
    Closed,
}

/// One who waits.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) ticket: Ticket,
    pub(super) class: Class,
    pub(super) units: Units,
    pub(super) waker: Waker,
}

/// The waiters and the answers not yet picked up. Each waiter holds a slot of its destination, so that there are
/// never more of them than all destinations allow in flight together.
///
/// Two lines, one order: internal waiters have their own line because the reserve serves only them.
#[derive(Debug, Default)]
pub(super) struct Queue {
    next: u64,
    ordinary: VecDeque<Waiter>,
    internal: VecDeque<Waiter>,
    answers: BTreeMap<Ticket, Answer>,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.ordinary.is_empty() && self.internal.is_empty()
    }

    /// Joins the end.
    pub(super) fn join(&mut self, class: Class, units: Units, waker: Waker) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        self.line(class).push_back(Waiter { ticket, class, units, waker });
        ticket
    }

    /// Returns who came first of all.
    pub(super) fn front(&self) -> Option<&Waiter> {
        match (self.ordinary.front(), self.internal.front()) {
            (Some(one), Some(other)) => Some(if one.ticket < other.ticket { one } else { other }),
            (one, other) => one.or(other),
        }
    }

    /// Returns the first internal waiter that passes a test. Linear in those before it that do not.
    pub(super) fn first_internal(&self, fits: impl Fn(Units) -> bool) -> Option<&Waiter> {
        self.internal.iter().find(|waiter| fits(waiter.units))
    }

    /// Takes a waiter out and answers it; the caller wakes it once the lock is released.
    pub(super) fn answer(&mut self, class: Class, ticket: Ticket, answer: Answer) -> Option<Waiter> {
        let waiter = self.remove(class, ticket)?;
        self.answers.insert(ticket, answer);
        Some(waiter)
    }

    /// Takes all waiters of a class out and answers them.
    pub(super) fn answer_all(&mut self, class: Class, answer: Answer) -> Vec<Waiter> {
        let line = self.line(class);
        let (out, stay): (VecDeque<_>, _) = line.drain(..).partition(|waiter| waiter.class == class);
        *line = stay;
        self.answers.extend(out.iter().map(|waiter| (waiter.ticket, answer)));
        out.into()
    }

    /// Picks up an answer.
    pub(super) fn pick_up(&mut self, ticket: Ticket) -> Option<Answer> {
        self.answers.remove(&ticket)
    }

    /// Renews the waker of one who waits on, and returns the one before.
    pub(super) fn renew(&mut self, class: Class, ticket: Ticket, waker: Waker) -> Option<Waker> {
        let line = self.line(class);
        let index = line.binary_search_by_key(&ticket, |waiter| waiter.ticket).ok()?;
        line.get_mut(index).map(|waiter| std::mem::replace(&mut waiter.waker, waker))
    }

    /// Takes a waiter out, unanswered. Linear in the shorter way to an end of its line.
    pub(super) fn remove(&mut self, class: Class, ticket: Ticket) -> Option<Waiter> {
        let line = self.line(class);
        let index = line.binary_search_by_key(&ticket, |waiter| waiter.ticket).ok()?;
        line.remove(index)
    }

    fn line(&mut self, class: Class) -> &mut VecDeque<Waiter> {
        match class {
            Class::External | Class::Handler => &mut self.ordinary,
            Class::Internal => &mut self.internal,
        }
    }
}
