//! Wakers to be called after a lock is given back.

use std::task::Waker;

/// Collects wakers under a lock. One costs no allocation.
#[derive(Debug, Default)]
pub(crate) struct WakeList {
    first: Option<Waker>,
    rest: Vec<Waker>,
}

impl WakeList {
    pub(crate) fn push(&mut self, waker: Option<Waker>) {
        match (waker, &self.first) {
            (None, _) => {}
            (waker, None) => self.first = waker,
            (Some(waker), Some(_)) => self.rest.push(waker),
        }
    }

    /// Wakes everything that was collected. Call it without a lock: a waker may run foreign code.
    pub(crate) fn wake(self) {
        if let Some(first) = self.first {
            first.wake();
            self.rest.into_iter().for_each(Waker::wake);
        }
    }
}
