//! The publisher's end of a slot.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use consign_core_api::PublishOutcome;
use consign_core_api::spi::SlotKey;

use super::{PublishSlab, lock};

/// A publish whose outcome somebody waits for.
///
/// Dropping it does not lose the outcome: it is told to the observers, and permits return with the verdict. Polled
/// again after the outcome was taken, it stays pending: by then its slot may be another's.
pub(crate) struct Pending {
    slab: Arc<PublishSlab>,
    key: SlotKey,
    taken: bool,
}

impl Pending {
    pub(super) const fn new(slab: Arc<PublishSlab>, key: SlotKey) -> Self {
        Self { slab, key, taken: false }
    }

    pub(crate) const fn key(&self) -> SlotKey {
        self.key
    }
}

impl Future for Pending {
    type Output = PublishOutcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<PublishOutcome> {
        if self.taken {
            return Poll::Pending;
        }
        let slab = Arc::clone(&self.slab);
        let Some((slot, _)) = slab.find(self.key) else { return Poll::Pending };
        let (outcome, residue) = {
            let mut cell = lock(&slot.cell);
            let Some(outcome) = cell.outcome.take() else {
                if cell.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                    return Poll::Pending;
                }
                let replaced = cell.waker.replace(cx.waker().clone());
                // Its drop may run code of others, which may come back here.
                drop(cell);
                drop(replaced);
                return Poll::Pending;
            };
            self.taken = true;
            cell.wanted = false;
            (outcome, slab.free_if_done(slot, self.key, &mut cell))
        };
        drop(residue);
        Poll::Ready(outcome)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.taken {
            return;
        }
        let Some((slot, _)) = self.slab.find(self.key) else { return };
        let (outcome, residue, waker) = {
            let mut cell = lock(&slot.cell);
            cell.wanted = false;
            let (outcome, waker) = (cell.outcome.take(), cell.waker.take());
            (outcome, self.slab.free_if_done(slot, self.key, &mut cell), waker)
        };
        drop((outcome, residue, waker));
    }
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Pending").field(&self.key).finish()
    }
}
