//! What a handler knows of the attempt it is, and what it publishes with.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use consign_core_api::time::{Clock, Moment};
use consign_core_api::{Attempt, Codec, DestinationName, Error, GroupName, JsonCodec};
use consign_policy::admission::Class;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::delivery::Content;
use super::source::Source;
use crate::publisher::Publisher;

/// What a handler knows of the attempt it is. Cheap to clone.
#[derive(Clone)]
pub struct HandlerContext {
    source: Arc<Source>,
    content: Arc<Content>,
    attempt: Attempt,
    deadline: Moment,
    cancellation: CancellationToken,
}

impl HandlerContext {
    pub(crate) const fn new(
        source: Arc<Source>,
        content: Arc<Content>,
        attempt: Attempt,
        deadline: Moment,
        cancellation: CancellationToken,
    ) -> Self {
        Self { source, content, attempt, deadline, cancellation }
    }

    /// Returns the number of this attempt, over all retry destinations: failures that are known, and one.
    ///
    /// Known are those of this process and those that a retry copy carries; a restart of the process may forget.
    #[must_use]
    pub const fn attempt(&self) -> Attempt {
        self.attempt
    }

    /// Returns how often the broker delivered the message, this time included; `None` where it does not count.
    #[must_use]
    pub fn delivery_count(&self) -> Option<u32> {
        self.content.delivery_count
    }

    /// Returns when the handler is cut off, on the library's clock.
    #[must_use]
    pub const fn deadline(&self) -> Moment {
        self.deadline
    }

    /// Returns how long the handler may still run; zero when the time is over.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.deadline.since(self.source.core.clock.now())
    }

    /// Returns a handle on the cancellation of this attempt, for tasks that the handler starts.
    #[must_use]
    pub fn cancellation(&self) -> Cancellation {
        Cancellation(self.cancellation.clone())
    }

    /// Tells whether the attempt counts no more: cut off, stopped, or its unit taken away.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancellation.is_cancelled()
    }

    /// Returns the group.
    #[must_use]
    pub fn group(&self) -> &GroupName {
        &self.source.group
    }

    /// Returns the destination that is consumed; for a delivery from a retry destination, its origin.
    #[must_use]
    pub fn destination(&self) -> &DestinationName {
        self.source.origin.name()
    }

    /// Returns a publisher of JSON values, admitted as part of handling: a shutdown closes it only when the handlers
    /// have finished.
    ///
    /// # Errors
    /// `DESTINATION_UNKNOWN` for a name without a profile.
    pub fn publisher<T: Serialize + DeserializeOwned + 'static>(
        &self,
        name: &str,
    ) -> Result<Publisher<T>, Error> {
        self.publisher_with(name, JsonCodec::new())
    }

    /// Returns a publisher with a codec of choice; otherwise like [`publisher`](Self::publisher).
    ///
    /// # Errors
    /// `DESTINATION_UNKNOWN` for a name without a profile.
    pub fn publisher_with<T: 'static>(
        &self,
        name: &str,
        codec: impl Codec<T>,
    ) -> Result<Publisher<T>, Error> {
        let core = &self.source.core;
        let destination = Arc::clone(core.destination(name)?);
        Ok(Publisher::new(Arc::clone(core), destination, Arc::new(codec), Class::Handler))
    }
}

impl fmt::Debug for HandlerContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerContext")
            .field("destination", self.destination())
            .field("group", self.group())
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

/// Tells when an attempt counts no more: its handler was cut off, its unit was taken away, or its consumer's stop came
/// to its end. What it still does leads to no settlement. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Cancellation(CancellationToken);

impl Cancellation {
    /// Tells whether it happened.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until it happens. Cancel safe.
    pub async fn cancelled(&self) {
        self.0.cancelled().await;
    }
}
