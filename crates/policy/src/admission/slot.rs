//! The slots of one destination.

use std::num::NonZeroUsize;
use std::sync::Arc;

use super::class::Class;
use super::ledger::Ledger;
use super::sync::{AtomicUsize, Ordering};

/// One destination's limits and slots.
#[derive(Debug)]
pub(super) struct Slots {
    taken: AtomicUsize,
    limit: NonZeroUsize,
    largest_ordinary: usize,
    largest_internal: usize,
    ledger: Arc<Ledger>,
}

impl Slots {
    pub(super) fn new(
        limit: NonZeroUsize,
        largest_ordinary: usize,
        largest_internal: usize,
        ledger: Arc<Ledger>,
    ) -> Self {
        Self { taken: AtomicUsize::new(0), limit, largest_ordinary, largest_internal, ledger }
    }

    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }

    pub(super) const fn limit(&self) -> NonZeroUsize {
        self.limit
    }

    pub(super) const fn largest(&self, class: Class) -> usize {
        match class {
            Class::External | Class::Handler => self.largest_ordinary,
            Class::Internal => self.largest_internal,
        }
    }

    pub(super) const fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    /// Takes a slot if one is free.
    pub(super) fn take(self: &Arc<Self>) -> Option<Slot> {
        let mut seen = self.taken.load(Ordering::Relaxed);
        while seen < self.limit.get() {
            match self.taken.compare_exchange_weak(seen, seen + 1, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Some(Slot { slots: Arc::clone(self), held: true }),
                Err(now) => seen = now,
            }
        }
        None
    }
}

/// A slot that was taken. Dropping it frees it.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Arc<Slots>,
    held: bool,
}

impl Slot {
    pub(super) fn ledger(&self) -> &Ledger {
        &self.slots.ledger
    }

    /// Frees the slot; again, without effect.
    pub(super) fn free(&mut self) {
        if std::mem::take(&mut self.held) {
            self.slots.taken.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.free();
    }
}
