//! A receipt for a publish in flight.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use consign_core_api::{MessageId, PublishOutcome};

use crate::slab::Pending;

/// A publish in flight: a future of its outcome.
///
/// Dropping it does not lose the outcome, which the observers are told; it does not take the message back. Polled again
/// after its outcome, it stays pending.
#[derive(Debug)]
#[must_use = "the outcome is in the receipt"]
pub struct Receipt {
    id: Option<MessageId>,
    pending: Pending,
}

impl Receipt {
    pub(super) const fn new(id: Option<MessageId>, pending: Pending) -> Self {
        Self { id, pending }
    }

    /// Returns the message's id, if the profile gives it one.
    #[must_use]
    pub const fn id(&self) -> Option<&MessageId> {
        self.id.as_ref()
    }

    pub(super) fn take_id(&mut self) -> Option<MessageId> {
        self.id.take()
    }
}

impl Future for Receipt {
    type Output = PublishOutcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<PublishOutcome> {
        Pin::new(&mut self.pending).poll(cx)
    }
}
