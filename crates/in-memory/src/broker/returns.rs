//! What came back where no order is kept: due messages first come first served, the others by their time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use tokio::time::Instant;

use super::Place;

/// The messages that came back to a group whose members compete.
#[derive(Debug, Default)]
pub(crate) struct ReturnQueue {
    due: VecDeque<Place>,
    later: BinaryHeap<Reverse<(Instant, Place)>>,
    served_last: bool,
}

impl ReturnQueue {
    pub(crate) fn push(&mut self, place: Place, due: Option<Instant>) {
        match due {
            None => self.due.push_back(place),
            Some(due) => self.later.push(Reverse((due, place))),
        }
    }

    /// Moves what is due by `now` to the others that are. O(moved log n).
    pub(crate) fn advance(&mut self, now: Instant) {
        while self.later.peek().is_some_and(|Reverse((due, _))| *due <= now) {
            if let Some(Reverse((_, place))) = self.later.pop() {
                self.due.push_back(place);
            }
        }
    }

    /// Takes the next one. Where something new is there too, every second call answers none, so that a message that
    /// comes back again and again starves nothing.
    pub(crate) fn pop(&mut self, something_new: bool) -> Option<Place> {
        if something_new && std::mem::take(&mut self.served_last) {
            return None;
        }
        let place = self.due.pop_front();
        self.served_last = place.is_some();
        place
    }

    /// When the next one is due of those that are not.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.later.peek().map(|Reverse((due, _))| *due)
    }
}
