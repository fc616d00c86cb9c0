//! The slots of publishes in flight: where a completion finds its publisher, and where the one verdict is given.
//!
//! A slot goes `Free -> Queued -> HandedOver -> Resolved -> Free`. Whoever takes it to `Resolved` by compare-and-swap
//! gives the verdict; everybody else comes late. It is reused only when the verdict was taken (or nobody wants it) and
//! the adapter holds its bytes no more, and under a new generation, so that a reply to its former user is recognised.

mod cell;
mod pending;
mod resend;
mod sink;
mod sweep;
mod word;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use consign_core_api::spi::SlotKey;
use consign_core_api::time::{Clock, Moment};
use tokio::sync::Notify;

pub(crate) use cell::Entry;
pub(crate) use pending::Pending;
pub(crate) use sweep::{Reason, Unresolved, run_deadlines};

use crate::clock::TokioClock;
use crate::observer::Observers;
use cell::{Cell, Residue};
use word::Word;

const CHUNK: usize = 256;
const NEVER: u64 = u64::MAX;

/// The slots of all publishes in flight.
pub(crate) struct PublishSlab {
    chunks: Box<[OnceLock<Box<[Slot]>>]>,
    free: Mutex<FreeList>,
    capacity: usize,
    /// When the deadline task wakes next, in nanoseconds of the clock; `NEVER` while it looks at the slots.
    next_wake: AtomicU64,
    wake: Notify,
    observers: Observers,
    clock: Arc<TokioClock>,
}

#[derive(Debug, Default)]
struct FreeList {
    reusable: Vec<u32>,
    fresh: u32,
}

struct Slot {
    word: Word,
    /// When the deadline task looks at it next, in nanoseconds of the clock: at its deadline or at another attempt.
    /// Written only under the cell's lock, so that it is always that of the publish in the cell.
    due: AtomicU64,
    cell: Mutex<Cell>,
}

impl PublishSlab {
    /// Makes a slab with room for `capacity` publishes whose bytes some client still holds. Memory is taken in
    /// chunks as it is needed.
    pub(crate) fn new(capacity: usize, observers: Observers, clock: Arc<TokioClock>) -> Arc<Self> {
        let capacity = capacity.clamp(1, u32::MAX as usize - 1);
        let chunks = (0..capacity.div_ceil(CHUNK)).map(|_| OnceLock::new()).collect();
        Arc::new(Self {
            chunks,
            free: Mutex::new(FreeList::default()),
            capacity,
            next_wake: AtomicU64::new(NEVER),
            wake: Notify::new(),
            observers,
            clock,
        })
    }

    /// Puts a publish into a slot; gives it back if every slot is held.
    pub(crate) fn insert(self: &Arc<Self>, entry: Entry) -> Result<Pending, Box<Entry>> {
        let due = nanos(entry.deadline);
        let index = {
            let mut free = lock(&self.free);
            if let Some(index) = free.reusable.pop() {
                index
            } else if (free.fresh as usize) < self.capacity {
                free.fresh += 1;
                free.fresh - 1
            } else {
                return Err(Box::new(entry));
            }
        };
        let Some(slot) = self.slot_or_allocate(index) else { return Err(Box::new(entry)) };
        {
            let mut cell = lock(&slot.cell);
            *cell = Cell::occupied(entry);
            slot.due.store(due, Ordering::SeqCst);
        }
        let generation = slot.word.occupy();
        self.remind(due);
        Ok(Pending::new(Arc::clone(self), word::key(generation, index)))
    }

    /// Has the deadline task wake by that time.
    fn remind(&self, due: u64) {
        if due < self.next_wake.load(Ordering::SeqCst) {
            self.wake.notify_one();
        }
    }

    /// Returns the clock.
    pub(crate) const fn clock(&self) -> &Arc<TokioClock> {
        &self.clock
    }

    fn now(&self) -> Moment {
        self.clock.now()
    }

    fn slot(&self, index: u32) -> Option<&Slot> {
        let index = index as usize;
        self.chunks.get(index / CHUNK)?.get()?.get(index % CHUNK)
    }

    fn slot_or_allocate(&self, index: u32) -> Option<&Slot> {
        let index = index as usize;
        let chunk = self.chunks.get(index / CHUNK)?;
        chunk.get_or_init(|| (0..CHUNK).map(|_| Slot::empty()).collect()).get(index % CHUNK)
    }

    /// Returns the slot of a key and the generation that the key names.
    fn find(&self, key: SlotKey) -> Option<(&Slot, u32)> {
        let (generation, index) = word::parts(key)?;
        Some((self.slot(index)?, generation))
    }

    /// Frees the slot if nobody needs it any more. The caller holds the cell's lock.
    fn free_if_done(&self, slot: &Slot, key: SlotKey, cell: &mut MutexGuard<'_, Cell>) -> Option<Residue> {
        if !cell.is_done() {
            return None;
        }
        let residue = cell.clear();
        slot.due.store(NEVER, Ordering::SeqCst);
        if let Some((_, index)) = word::parts(key) {
            slot.word.free();
            lock(&self.free).reusable.push(index);
        }
        residue
    }
}

impl std::fmt::Debug for PublishSlab {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PublishSlab").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

impl Slot {
    const fn empty() -> Self {
        Self { word: Word::new(), due: AtomicU64::new(NEVER), cell: Mutex::new(Cell::empty()) }
    }
}

/// Returns a moment in nanoseconds, at most one below `NEVER`.
fn nanos(moment: Moment) -> u64 {
    u64::try_from(moment.since_start().as_nanos()).unwrap_or(NEVER - 1).min(NEVER - 1)
}

/// Locks; a panic elsewhere leaves values whole here, since no critical section of this module can panic halfway.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
