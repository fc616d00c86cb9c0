//! One pool of room: a count and bytes, both bounded, in one atomic word.

use super::sync::{AtomicU64, Ordering};
use super::units::{Units, WAITED};

/// A pool. Its word carries what is taken and the flag [`WAITED`]; because both are one word, whoever gives back
/// sees every waiter who saw the pool full, and no wake-up is lost.
///
/// Own cache line: it is written by every publish.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Pool {
    word: AtomicU64,
    limit: Units,
}

impl Pool {
    pub(super) fn new(limit: Units) -> Self {
        Self { word: AtomicU64::new(0), limit }
    }

    pub(super) const fn limit(&self) -> Units {
        self.limit
    }

    pub(super) fn taken(&self) -> Units {
        Units::in_word(self.word.load(Ordering::Acquire))
    }

    /// Tells whether units could fit if nothing were taken.
    pub(super) const fn could_hold(&self, units: Units) -> bool {
        Units::in_word(0).leave_room_for(units, self.limit)
    }

    /// Takes units if they fit and nobody waits. For newcomers: they do not overtake.
    pub(super) fn take_unless_waited(&self, units: Units) -> bool {
        self.update(|word| {
            let fits = word & WAITED == 0 && Units::in_word(word).leave_room_for(units, self.limit);
            fits.then(|| word + units.word())
        })
        .is_some()
    }

    /// Takes units if they fit. For whoever holds the queue's lock and serves its order.
    pub(super) fn take(&self, units: Units) -> bool {
        self.update(|word| {
            Units::in_word(word).leave_room_for(units, self.limit).then(|| word + units.word())
        })
        .is_some()
    }

    /// Takes units if they fit, else raises the flag, in one step. For whoever holds the queue's lock.
    pub(super) fn take_or_wait(&self, units: Units) -> bool {
        let before = self.update(|word| {
            let fits = Units::in_word(word).leave_room_for(units, self.limit);
            Some(if fits { word + units.word() } else { word | WAITED })
        });
        before.is_some_and(|word| Units::in_word(word).leave_room_for(units, self.limit))
    }

    /// Lowers the flag. For whoever holds the queue's lock and saw that nobody waits.
    pub(super) fn lower(&self) {
        self.word.fetch_and(!WAITED, Ordering::AcqRel);
    }

    /// Gives units back, and tells whether somebody waits.
    #[must_use]
    pub(super) fn give(&self, units: Units) -> bool {
        self.word.fetch_sub(units.word(), Ordering::AcqRel) & WAITED != 0
    }

    /// Changes the word by compare-and-swap; returns the word before the change, or nothing where `change` refused.
    fn update(&self, change: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        let mut seen = self.word.load(Ordering::Relaxed);
        loop {
            let next = change(seen)?;
            match self.word.compare_exchange_weak(seen, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(before) => return Some(before),
                Err(now) => seen = now,
            }
        }
    }
}
