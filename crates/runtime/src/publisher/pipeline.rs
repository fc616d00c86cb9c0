//! A window of publishes in flight.

use std::borrow::Borrow;
use std::collections::VecDeque;

use consign_core_api::{Message, MessageId, PublishOutcome, Rejection};

use super::{Publisher, Receipt};

/// A window of publishes in flight, in order. It waits for its own oldest outcome before it admits another message,
/// so that outcomes never pile up and the loop is never refused by its own speed.
///
/// ```text
/// loop { if let Some((id, outcome)) = window.submit(message).await? { note(id, outcome) } }
/// while let Some((id, outcome)) = window.next().await { note(id, outcome) }
/// ```
/// Dropping it leaves what is in flight to the observers.
#[derive(Debug)]
pub struct Pipeline<T> {
    publisher: Publisher<T>,
    size: usize,
    window: VecDeque<Receipt>,
    /// An outcome that was taken from the window when its future was dropped, so that it is not lost.
    taken: Option<(Option<MessageId>, PublishOutcome)>,
}

impl<T: 'static> Pipeline<T> {
    pub(super) fn new(publisher: Publisher<T>, size: usize) -> Self {
        Self { publisher, size, window: VecDeque::with_capacity(size), taken: None }
    }

    /// Hands a message over. If the window is full, it first waits for the oldest outcome and returns it.
    /// The message's deadline begins after that wait, which is bounded by the oldest message's own deadline.
    ///
    /// Cancel safe in this sense: if the future is dropped, the message was not sent, and no outcome is lost: a later
    /// call returns it.
    ///
    /// # Errors
    /// The REJECTED outcome of a message that was refused before transmission. The window goes on; an outcome that
    /// was due is returned by the next call.
    pub async fn submit<V: Borrow<T>>(
        &mut self,
        message: Message<V>,
    ) -> Result<Option<(Option<MessageId>, PublishOutcome)>, Rejection> {
        if self.taken.is_none() && self.window.len() >= self.size {
            self.taken = self.oldest().await;
        }
        let receipt = self.publisher.submit(message).await?;
        self.window.push_back(receipt);
        Ok(self.taken.take())
    }

    /// Waits for the oldest outcome; `None` when nothing is in flight. Cancel safe.
    pub async fn next(&mut self) -> Option<(Option<MessageId>, PublishOutcome)> {
        if self.taken.is_some() {
            return self.taken.take();
        }
        self.oldest().await
    }

    /// Returns how many publishes have no outcome yet.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.window.len()
    }

    async fn oldest(&mut self) -> Option<(Option<MessageId>, PublishOutcome)> {
        // The receipt leaves the window only together with its outcome, so that a dropped future loses neither.
        let outcome = self.window.front_mut()?.await;
        let id = self.window.pop_front().and_then(|mut receipt| receipt.take_id());
        Some((id, outcome))
    }
}
