//! A consumer whose handler tells the case what it sees.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use consign_core_api::{BytesCodec, EncodedMessage, MessageId, MessagePosition};
use consign_runtime::Messaging;
use consign_runtime::consumer::{Consumer, Delivery, HandlerContext, HandlerFailure};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::{Lab, key_of, number_of};
use crate::case::CaseError;

/// What a handler saw when it started.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Seen {
    /// The number that the message carries; `u64::MAX` where it carries none.
    pub n: u64,
    /// The key as text; empty without one.
    pub key: String,
    /// The message as it came.
    pub message: EncodedMessage,
    /// Where it stands.
    pub position: Option<MessagePosition>,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The broker's count.
    pub delivery_count: Option<u32>,
    /// When the handler started.
    pub at: Instant,
}

impl Seen {
    fn new(delivery: &Delivery<Bytes>, context: &HandlerContext) -> Self {
        Self {
            n: number_of(delivery.encoded()).unwrap_or(u64::MAX),
            key: key_of(delivery.key()),
            message: delivery.encoded().clone(),
            position: delivery.position().cloned(),
            attempt: context.attempt().get(),
            delivery_count: context.delivery_count(),
            at: Instant::now(),
        }
    }

    /// Returns the identity.
    #[must_use]
    pub const fn id(&self) -> Option<&MessageId> {
        self.message.id()
    }
}

/// A running consumer and what its handler saw.
#[derive(Debug)]
pub struct Consuming {
    /// The consumer.
    pub consumer: Consumer,
    seen: mpsc::UnboundedReceiver<Seen>,
    all: Vec<Seen>,
}

impl Lab {
    /// Consumes with a handler that succeeds.
    ///
    /// # Errors
    /// If it cannot.
    pub async fn consume(
        &self,
        messaging: &Messaging,
        destination: &str,
        group: &str,
    ) -> Result<Consuming, CaseError> {
        self.consume_by(messaging, destination, group, |_, _| async { Ok(()) }).await
    }

    /// Consumes with a handler of the case's own. It is told what every handler saw when it started, in that order.
    ///
    /// # Errors
    /// If it cannot.
    pub async fn consume_by<F, Fut>(
        &self,
        messaging: &Messaging,
        destination: &str,
        group: &str,
        handle: F,
    ) -> Result<Consuming, CaseError>
    where
        F: Fn(Seen, HandlerContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), HandlerFailure>> + Send + 'static,
    {
        let (tell, seen) = mpsc::unbounded_channel();
        let history = Arc::clone(self.history());
        let handler = move |delivery: Delivery<Bytes>, context: HandlerContext| {
            let saw = Seen::new(&delivery, &context);
            history.note(format!("handler: n {}, key {:?}, attempt {}", saw.n, saw.key, saw.attempt));
            // The case may have seen enough.
            let _ = tell.send(saw.clone());
            handle(saw, context)
        };
        let consume = messaging.consume_with(destination, group, BytesCodec::new(), handler);
        let consumer = self.within("starting to consume", consume).await??;
        Ok(Consuming { consumer, seen, all: Vec::new() })
    }
}

impl Consuming {
    /// Waits, bounded, for the next start of a handler.
    ///
    /// # Errors
    /// If none comes.
    pub async fn next(&mut self, lab: &Lab) -> Result<Seen, CaseError> {
        let seen = lab.within("a delivery", self.seen.recv()).await?;
        let seen = seen.ok_or_else(|| CaseError::new("the consumer ended"))?;
        self.all.push(seen.clone());
        Ok(seen)
    }

    /// Waits, bounded, until handlers started so many times in all, and returns what they saw.
    ///
    /// # Errors
    /// If fewer come.
    pub async fn total(&mut self, lab: &Lab, count: usize) -> Result<&[Seen], CaseError> {
        while self.all.len() < count {
            let have = self.all.len();
            self.next(lab).await.map_err(|error| CaseError::new(format!("{have} of {count}: {error:?}")))?;
        }
        Ok(&self.all)
    }

    /// Waits, bounded, until every one of these numbers was seen, and returns what was seen.
    ///
    /// # Errors
    /// If some do not come.
    pub async fn every(
        &mut self,
        lab: &Lab,
        numbers: impl IntoIterator<Item = u64>,
    ) -> Result<&[Seen], CaseError> {
        for n in numbers {
            while !self.all.iter().any(|seen| seen.n == n) {
                self.next(lab).await.map_err(|error| CaseError::new(format!("number {n}: {error:?}")))?;
            }
        }
        Ok(&self.all)
    }

    /// Waits, bounded, until the consumer has been quiet for a while, and returns what was seen. A consumer of which
    /// units stand still is quiet when nothing else moves.
    ///
    /// # Errors
    /// If it does not become quiet.
    pub async fn quiet(&mut self, lab: &Lab) -> Result<&[Seen], CaseError> {
        let idle = lab.within("a quiet consumer", self.consumer.idle(super::QUIET)).await?;
        idle.or_else(
            |error| if error.code() == consign_runtime::codes::UNIT_HALTED { Ok(()) } else { Err(error) },
        )?;
        while let Ok(seen) = self.seen.try_recv() {
            self.all.push(seen);
        }
        Ok(&self.all)
    }

    /// Returns what was seen so far.
    pub fn so_far(&mut self) -> &[Seen] {
        while let Ok(seen) = self.seen.try_recv() {
            self.all.push(seen);
        }
        &self.all
    }

    /// Returns the numbers that were seen so far, in order.
    pub fn numbers(&mut self) -> Vec<u64> {
        self.so_far().iter().map(|seen| seen.n).collect()
    }

    /// Stops the consumer, in time.
    ///
    /// # Errors
    /// If it does not return.
    pub async fn stop(&self, lab: &Lab) -> Result<(), CaseError> {
        let _ = lab.within("stopping a consumer", self.consumer.stop(Duration::from_secs(5))).await?;
        Ok(())
    }
}

/// Something that handlers wait for. Closed until it is opened.
#[derive(Debug, Clone)]
pub struct Gate(Arc<watch::Sender<bool>>);

impl Default for Gate {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Gate {
    /// Lets everybody through.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    /// Tells whether it is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits, without a bound of its own, until it is open.
    pub async fn pass(&self) {
        // The sender is `self`, so the channel is open.
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }
}

/// A failure that may go away by itself.
#[must_use]
pub fn failing_for_now() -> HandlerFailure {
    HandlerFailure::transient("CASE_TRANSIENT", "the case asked for it")
}

/// A failure that does not go away.
#[must_use]
pub fn failing_for_good() -> HandlerFailure {
    HandlerFailure::permanent("CASE_PERMANENT", "the case asked for it")
}

/// What a handler does that panics.
///
/// # Panics
/// Always.
///
/// # Errors
/// Never.
#[expect(clippy::panic, reason = "it is what the case is about")]
pub fn panicking() -> Result<(), HandlerFailure> {
    panic!("the case asked for it")
}
