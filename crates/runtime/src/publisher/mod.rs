//! Publishing: one message, many, or a window of them.

mod batch;
mod pipeline;
mod prepare;
mod receipt;
pub(crate) mod turns;

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use consign_core_api::{
    Codec, DestinationName, EncodedMessage, Error, ErrorKind, Failure, FailureCategory, Message,
    PublishOutcome, Rejection,
};
use consign_policy::admission::Class;

pub use pipeline::Pipeline;
pub use receipt::Receipt;

use crate::codes;
use crate::core::{Core, OpenDestination};

/// Publishes values to one destination. Cheap to clone.
///
/// Every publish ends by `publish.deadline`, counted from the call, in exactly one of three outcomes.
pub struct Publisher<T> {
    core: Arc<Core>,
    destination: Arc<OpenDestination>,
    codec: Arc<dyn Codec<T>>,
    class: Class,
}

impl<T: 'static> Publisher<T> {
    pub(crate) fn new(
        core: Arc<Core>,
        destination: Arc<OpenDestination>,
        codec: Arc<dyn Codec<T>>,
        class: Class,
    ) -> Self {
        Self { core, destination, codec, class }
    }

    /// Returns the destination's name.
    #[must_use]
    pub fn destination(&self) -> &DestinationName {
        self.destination.name()
    }

    /// Publishes a message and waits for its outcome.
    ///
    /// Dropping the future loses nothing but the caller's sight of it: before the message was admitted, nothing was
    /// sent; afterwards the publish goes on, its outcome is told to the observers, and permits return.
    pub async fn publish<V: Borrow<T>>(&self, message: Message<V>) -> PublishOutcome {
        match self.encode(message) {
            Ok(message) => self.core.publish(&self.destination, message, self.class).await,
            Err(rejection) => self.core.rejected(&self.destination, rejection),
        }
    }

    /// Publishes a message that is encoded already, such as one that a REJECTED outcome handed back.
    ///
    /// Key, id and headers are checked as for any other message. Dropping the future: as [`publish`](Self::publish).
    pub async fn publish_encoded(&self, message: EncodedMessage) -> PublishOutcome {
        match prepare::complete(&self.destination, message, self.core.as_ref()) {
            Ok(message) => self.core.publish(&self.destination, message, self.class).await,
            Err(rejection) => self.core.rejected(&self.destination, rejection),
        }
    }

    /// Hands a message over and returns a receipt for its outcome. Waits only for admission.
    ///
    /// Dropping the future before it is ready sends nothing. A receipt keeps its slot until its outcome is taken or it is
    /// dropped; who keeps more receipts than the windows of all destinations and twice `admission.in_flight` allow is
    /// refused with `SLOTS_EXHAUSTED`.
    ///
    /// # Errors
    /// The REJECTED outcome of a message that was refused before transmission; the message is handed back.
    pub async fn submit<V: Borrow<T>>(&self, message: Message<V>) -> Result<Receipt, Rejection> {
        let message = self.encode(message).inspect_err(|rejection| self.tell(rejection))?;
        self.submit_message(message).await
    }

    /// Publishes all messages, in their order, and waits for all outcomes, one per message in the same order.
    ///
    /// At most `publish.in_flight` of them are in flight at once. Dropping the future leaves those that were handed
    /// over to the observers, and the rest unsent.
    pub async fn publish_batch<V: Borrow<T>>(
        &self,
        messages: impl IntoIterator<Item = Message<V>>,
    ) -> Vec<PublishOutcome> {
        batch::publish(self, messages).await
    }

    /// Opens a window of `size` publishes in flight, which waits for its own oldest outcome instead of piling up.
    ///
    /// # Errors
    /// A size of zero or above the profile's `publish.in_flight`.
    pub fn pipeline(&self, size: usize) -> Result<Pipeline<T>, Error> {
        let most = self.destination.profile().setup().publish.in_flight.get();
        if size == 0 || size > most {
            let failure = Failure::new(
                FailureCategory::Configuration,
                codes::WINDOW_OUT_OF_RANGE,
                format!("a window of {size} is not within 1 to publish.in_flight = {most}"),
            );
            return Err(Error::new(ErrorKind::Usage, failure));
        }
        Ok(Pipeline::new(self.clone(), size))
    }

    fn encode<V: Borrow<T>>(&self, message: Message<V>) -> Result<EncodedMessage, Rejection> {
        let message = prepare::encode(self.codec.as_ref(), message)?;
        prepare::complete(&self.destination, message, self.core.as_ref())
    }

    async fn submit_message(&self, message: EncodedMessage) -> Result<Receipt, Rejection> {
        let id = message.id().cloned();
        let pending = self.core.submit(&self.destination, message, self.class).await;
        pending.map(|pending| Receipt::new(id, pending)).inspect_err(|rejection| self.tell(rejection))
    }

    fn tell(&self, rejection: &Rejection) {
        // The caller gets the rejection itself; the observers get the same one as an outcome.
        drop(self.core.rejected(&self.destination, rejection.clone()));
    }
}

impl<T> Clone for Publisher<T> {
    fn clone(&self) -> Self {
        Self {
            core: Arc::clone(&self.core),
            destination: Arc::clone(&self.destination),
            codec: Arc::clone(&self.codec),
            class: self.class,
        }
    }
}

impl<T> fmt::Debug for Publisher<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("destination", self.destination.name()).finish_non_exhaustive()
    }
}
