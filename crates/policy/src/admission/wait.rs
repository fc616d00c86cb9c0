//! Waiting for room.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::class::Class;
use super::ledger::{Joined, Ledger};
use super::queue::{Answer, Ticket};
use super::units::Units;

/// Ready with an answer. Joins the queue when it is first polled.
///
/// Dropping it leaves the queue; room that was handed to it in the meantime goes to the next.
#[derive(Debug)]
pub(super) struct Wait<'a> {
    ledger: &'a Ledger,
    class: Class,
    units: Units,
    ticket: Option<Ticket>,
}

impl<'a> Wait<'a> {
    pub(super) const fn new(ledger: &'a Ledger, class: Class, units: Units) -> Self {
        Self { ledger, class, units, ticket: None }
    }

    /// Ends the wait. An answer that came in the same moment still counts.
    pub(super) fn give_up(mut self) -> Option<Answer> {
        let ticket = self.ticket.take()?;
        self.ledger.leave(self.class, ticket)
    }
}

impl Future for Wait<'_> {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let waker = cx.waker().clone();
        let answer = match self.ticket {
            Some(ticket) => self.ledger.look(self.class, ticket, waker),
            None => match self.ledger.join(self.class, self.units, waker) {
                Joined::Taken(source) => Some(Answer::Taken(source)),
                Joined::Closed => Some(Answer::Closed),
                Joined::Waits(ticket) => {
                    self.ticket = Some(ticket);
                    None
                }
            },
        };
        answer.map_or(Poll::Pending, |answer| {
            self.ticket = None;
            Poll::Ready(answer)
        })
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take()
            && let Some(Answer::Taken(source)) = self.ledger.leave(self.class, ticket)
        {
            self.ledger.give(source, self.units);
        }
    }
}
