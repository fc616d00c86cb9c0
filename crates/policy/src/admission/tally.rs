//! What one class has in flight, whether it takes new work, and who waits for it to be drained.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::class::ClassUsage;
use super::sync::{AtomicU64, Mutex, Ordering, lock};
use super::units::{CLOSED, Units, WAITED};

/// The tally of one class. Its word carries what is in flight, the flag [`CLOSED`], and the flag [`WAITED`] where
/// somebody waits for the count to reach zero.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Tally {
    word: AtomicU64,
    watchers: Mutex<Watchers>,
}

#[derive(Debug, Default)]
struct Watchers {
    next: u64,
    wakers: BTreeMap<u64, Waker>,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self { word: AtomicU64::new(0), watchers: Mutex::new(Watchers::default()) }
    }

    pub(super) fn usage(&self) -> ClassUsage {
        let units = Units::in_word(self.word.load(Ordering::Acquire));
        ClassUsage { in_flight: units.count(), bytes: units.bytes() }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.word.load(Ordering::Acquire) & CLOSED != 0
    }

    pub(super) fn close(&self) {
        self.word.fetch_or(CLOSED, Ordering::AcqRel);
    }

    /// Enters units unless the class is closed. Check and entry are one step on one word: once a closed class was
    /// seen empty, nothing enters any more.
    pub(super) fn enter(&self, units: Units) -> bool {
        if self.word.fetch_add(units.word(), Ordering::AcqRel) & CLOSED == 0 {
            return true;
        }
        self.leave(units);
        false
    }

    /// Takes units out, and wakes those who wait for the count to reach zero.
    pub(super) fn leave(&self, units: Units) {
        let before = self.word.fetch_sub(units.word(), Ordering::AcqRel);
        let was_last = units.count() > 0 && Units::in_word(before).count() == units.count();
        if was_last && before & WAITED != 0 {
            let woken = {
                let mut watchers = lock(&self.watchers);
                self.word.fetch_and(!WAITED, Ordering::AcqRel);
                std::mem::take(&mut watchers.wakers)
            };
            woken.into_values().for_each(Waker::wake);
        }
    }

    /// Waits until nothing is in flight.
    pub(super) const fn drained(&self) -> Drained<'_> {
        Drained { tally: self, key: None }
    }
}

/// Ready when the count of a class is zero. Dropping it leaves nothing behind.
#[derive(Debug)]
pub(super) struct Drained<'a> {
    tally: &'a Tally,
    key: Option<u64>,
}

impl Future for Drained<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let waker = cx.waker().clone();
        let tally = self.tally;
        // A waker that is replaced is dropped after the lock: its drop may run code of others.
        let _replaced = {
            let mut watchers = lock(&tally.watchers);
            let word = tally.word.fetch_or(WAITED, Ordering::AcqRel);
            if Units::in_word(word).count() == 0 {
                return Poll::Ready(());
            }
            let key = *self.key.get_or_insert_with(|| {
                watchers.next += 1;
                watchers.next
            });
            watchers.wakers.insert(key, waker)
        };
        Poll::Pending
    }
}

impl Drop for Drained<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            let _removed = lock(&self.tally.watchers).wakers.remove(&key);
        }
    }
}
