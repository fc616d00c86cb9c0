//! The driver's timers: one sleep for all of them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};

use consign_core_api::time::{Clock as _, Moment};
use tokio::time::Sleep;

use crate::clock::TokioClock;

/// So many timers of [`Timers::set_last`] may stand behind one that still means something before they are looked through.
const CROWD: usize = 1024;

/// Timers of `D`, each with the moment at which it is due. A timer is not taken back: whoever gets it looks whether it
/// still means something.
#[derive(Debug)]
pub(super) struct Timers<D> {
    heap: BinaryHeap<Reverse<Timed<D>>>,
    next: u64,
    /// Timers that are set in the order in which they are due; cheaper than the heap.
    queue: VecDeque<(Moment, D)>,
    /// At this length the whole queue is looked through.
    crowd: usize,
    sleep: Pin<Box<Sleep>>,
    armed: Option<Moment>,
}

#[derive(Debug)]
struct Timed<D> {
    at: Moment,
    number: u64,
    due: D,
}

impl<D> Timers<D> {
    pub(super) fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            next: 0,
            queue: VecDeque::new(),
            crowd: CROWD,
            sleep: Box::pin(tokio::time::sleep_until(tokio::time::Instant::now())),
            armed: None,
        }
    }

    /// Sets a timer. O(log n).
    pub(super) fn set(&mut self, at: Moment, due: D) {
        self.next += 1;
        self.heap.push(Reverse(Timed { at, number: self.next, due }));
    }

    /// Sets a timer that is due after all that were set by this method. O(1).
    pub(super) fn set_last(&mut self, at: Moment, due: D) {
        self.queue.push_back((at, due));
    }

    /// Forgets timers of [`set_last`](Self::set_last) that mean nothing any more: the first ones, and behind one that
    /// does, all where they are more than [`CROWD`] and than those that do. O(1) for each timer set, over time.
    pub(super) fn trim(&mut self, mut means_nothing: impl FnMut(&D) -> bool) {
        while self.queue.front().is_some_and(|(_, due)| means_nothing(due)) {
            self.queue.pop_front();
        }
        if self.queue.len() >= self.crowd {
            self.queue.retain(|(_, due)| !means_nothing(due));
            self.crowd = self.queue.len().saturating_mul(2).max(CROWD);
        }
    }

    /// Takes a timer that is due at `now`, or sleeps until the earliest.
    pub(super) fn poll_due(&mut self, cx: &mut Context<'_>, mut now: Moment, clock: &TokioClock) -> Poll<D> {
        loop {
            if let Some(due) = self.take_due(now) {
                return Poll::Ready(due);
            }
            let Some(earliest) = self.earliest() else { return Poll::Pending };
            // A sleep that ends too early is cheaper than arming it anew for every timer that is later.
            if self.armed.is_none_or(|armed| earliest < armed) {
                self.armed = Some(earliest);
                self.sleep.as_mut().reset(clock.instant(earliest));
            }
            if self.sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.armed = None;
            now = clock.now();
        }
    }

    fn earliest(&self) -> Option<Moment> {
        let heap = self.heap.peek().map(|Reverse(timed)| timed.at);
        let queue = self.queue.front().map(|(at, _)| *at);
        heap.into_iter().chain(queue).min()
    }

    fn take_due(&mut self, now: Moment) -> Option<D> {
        if self.heap.peek().is_some_and(|Reverse(timed)| timed.at <= now) {
            return self.heap.pop().map(|Reverse(timed)| timed.due);
        }
        if self.queue.front().is_some_and(|(at, _)| *at <= now) {
            return self.queue.pop_front().map(|(_, due)| due);
        }
        None
    }
}

impl<D> Ord for Timed<D> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl<D> PartialOrd for Timed<D> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<D> PartialEq for Timed<D> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl<D> Eq for Timed<D> {}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_start(Duration::from_millis(millis))
    }

    #[tokio::test(start_paused = true)]
    async fn timers_are_due_in_their_order_and_never_early() {
        let clock = TokioClock::new();
        let mut timers = Timers::new();
        timers.set(at(50), "heap 50");
        timers.set_last(at(20), "gone");
        timers.set_last(at(30), "queue 30");
        timers.set(at(10), "heap 10");
        timers.set(Moment::NEVER, "never");
        timers.trim(|due| *due == "gone");
        let mut seen = Vec::new();
        while seen.len() < 3 {
            let due = std::future::poll_fn(|cx| timers.poll_due(cx, clock.now(), &clock)).await;
            seen.push((due, clock.now() >= at(10)));
            if due == "heap 10" {
                timers.set(at(15), "heap 15");
            }
            if seen.len() == 3 {
                assert!(clock.now() >= at(30));
            }
        }
        assert_eq!(seen, [("heap 10", true), ("heap 15", true), ("queue 30", true)]);
    }

    #[tokio::test(start_paused = true)]
    async fn one_timer_that_waits_keeps_no_crowd_behind_it() {
        let clock = TokioClock::new();
        let mut timers = Timers::new();
        timers.set_last(at(20), "waits");
        for _ in 0..100_000 {
            timers.set_last(at(20), "gone");
            timers.trim(|due| *due == "gone");
        }
        assert!(timers.queue.len() <= CROWD, "{}", timers.queue.len());
        let due = std::future::poll_fn(|cx| timers.poll_due(cx, clock.now(), &clock)).await;
        assert_eq!(due, "waits");
    }
}
