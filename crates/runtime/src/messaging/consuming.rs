//! Consuming and redriving, from the handle.

use std::sync::Arc;
use std::time::Duration;

use consign_core_api::{Code, Codec, Error, ErrorKind, Failure, FailureCategory, GroupName, JsonCodec};
use consign_policy::admission::Class;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Messaging;
use crate::codes;
use crate::consumer::{self, Consumer, Handler, Handling};
use crate::inbox::{Inbox, InboxHandler};
use crate::redrive::{self, RedriveOptions, RedriveReport};

impl Messaging {
    /// Consumes JSON values of a destination, and of its retry destinations, in a group.
    ///
    /// A message is settled after its handler succeeded and never before (with AT_MOST_ONCE, before and never after).
    /// The members of a group share the messages; each group gets all of them. A new group starts where the profile's
    /// `consumer.start` says. Dropping the future before it is ready starts nothing.
    ///
    /// # Errors
    /// - `DESTINATION_UNKNOWN`, `RUNG_NOT_CONSUMABLE` or an illegal group name: [`ErrorKind::Usage`].
    /// - `INBOX_NOT_CONFIGURED` and `HANDLER_NOT_IDEMPOTENT`, where the profile's side effects ask for more.
    /// - What the broker said, where it did not let the group subscribe.
    /// - `SHUT_DOWN` once a shutdown has begun: [`ErrorKind::Closed`].
    pub async fn consume<T, H>(&self, destination: &str, group: &str, handler: H) -> Result<Consumer, Error>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        H: Handler<T>,
    {
        self.consume_with(destination, group, JsonCodec::new(), handler).await
    }

    /// Consumes with a codec of the caller's choice; otherwise like [`consume`](Self::consume).
    ///
    /// # Errors
    /// As [`consume`](Self::consume).
    pub async fn consume_with<T, H>(
        &self,
        destination: &str,
        group: &str,
        codec: impl Codec<T>,
        handler: H,
    ) -> Result<Consumer, Error>
    where
        T: Send + 'static,
        H: Handler<T>,
    {
        self.start(destination, group, Handling::plain(Arc::new(codec), handler)).await
    }

    /// Consumes JSON values with an inbox: the handler's effect and the message's id are committed together, then the
    /// message is settled. A message that the inbox knows already is settled unhandled.
    ///
    /// # Errors
    /// As [`consume`](Self::consume).
    pub async fn consume_with_inbox<T, I, H>(
        &self,
        destination: &str,
        group: &str,
        inbox: I,
        handler: H,
    ) -> Result<Consumer, Error>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        I: Inbox,
        H: InboxHandler<T, I::Tx>,
    {
        let codec: Arc<dyn Codec<T>> = Arc::new(JsonCodec::new());
        self.start(destination, group, Handling::with_inbox(codec, inbox, handler)).await
    }

    /// Sends the messages of a dead letter back to where they came from.
    ///
    /// Each keeps its id and its group, and is settled in the dead letter only after its copy was CONFIRMED. Dropping
    /// the future leaves what was not settled in the dead letter; some of it may then be in both places.
    ///
    /// # Errors
    /// - `DESTINATION_UNKNOWN`, or `NOT_A_DEAD_LETTER`: [`ErrorKind::Usage`].
    /// - `REDRIVE_REORDERS`, where an origin is ordered and the options do not allow it.
    pub async fn redrive(&self, dead_letter: &str, options: RedriveOptions) -> Result<RedriveReport, Error> {
        redrive::redrive(self.core(), dead_letter, options).await
    }

    async fn start(&self, destination: &str, group: &str, handling: Handling) -> Result<Consumer, Error> {
        let open = self.core().destination(destination)?;
        let group = GroupName::new(group).map_err(|error| usage(codes::GROUP_INVALID, error.to_string()))?;
        self.refuse_after_shutdown()?;
        let consumer = consumer::start(self.core(), open, group, handling).await?;
        // A shutdown that began meanwhile may have stopped every consumer but this one.
        if let Err(refused) = self.refuse_after_shutdown() {
            consumer.stop(Duration::ZERO).await;
            return Err(refused);
        }
        Ok(consumer)
    }

    fn refuse_after_shutdown(&self) -> Result<(), Error> {
        if !self.core().admission.is_closed(Class::External) {
            return Ok(());
        }
        let text = "the library is shut down, or about to be";
        let failure = Failure::new(FailureCategory::TransientInfrastructure, codes::SHUT_DOWN, text);
        Err(Error::new(ErrorKind::Closed, failure))
    }
}

fn usage(code: Code, text: String) -> Error {
    Error::new(ErrorKind::Usage, Failure::new(FailureCategory::Configuration, code, text))
}
