//! The handle of a running library.

mod build;
mod builder;
mod consuming;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use consign_core_api::{BytesCodec, Codec, Error, JsonCodec};
use consign_policy::admission::Class;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use builder::Builder;

use crate::core::Core;
pub use crate::core::KeyResolver;
use crate::health::Health;
use crate::publisher::Publisher;
use crate::shutdown::{Shutdown, ShutdownReport};

/// A running library: publishers, consumers, health, shutdown. Cheap to clone.
///
/// Dropping the last clone ends every task, sends no settlement, and tells the observers what had no verdict yet.
/// [`shutdown`](Self::shutdown) is the orderly way.
#[derive(Clone)]
pub struct Messaging {
    guard: Arc<Guard>,
}

/// Ends everything when the last handle is gone.
struct Guard {
    core: Arc<Core>,
    shutdown: Shutdown,
}

impl Messaging {
    /// Starts to configure.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Returns a publisher of values as JSON.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](consign_core_api::ErrorKind::Usage) `DESTINATION_UNKNOWN` for a name that no profile registers.
    pub fn publisher<T: Serialize + DeserializeOwned + 'static>(
        &self,
        destination: &str,
    ) -> Result<Publisher<T>, Error> {
        self.publisher_with(destination, JsonCodec::new())
    }

    /// Returns a publisher of bytes as they are.
    ///
    /// # Errors
    /// As [`publisher`](Self::publisher).
    pub fn bytes_publisher(&self, destination: &str) -> Result<Publisher<Bytes>, Error> {
        self.publisher_with(destination, BytesCodec::new())
    }

    /// Returns a publisher with a codec of the caller's choice.
    ///
    /// # Errors
    /// As [`publisher`](Self::publisher).
    pub fn publisher_with<T: 'static>(
        &self,
        destination: &str,
        codec: impl Codec<T>,
    ) -> Result<Publisher<T>, Error> {
        let core = &self.guard.core;
        let open = Arc::clone(core.destination(destination)?);
        Ok(Publisher::new(Arc::clone(core), open, Arc::new(codec), Class::External))
    }

    /// Tells how everything is. Waits for no broker.
    pub async fn health(&self) -> Health {
        Health::of(&self.guard.core).await
    }

    /// Ends everything in order: takes no more work, lets running handlers finish and publish, settles, waits for
    /// outcomes, closes the connections; all by `within`.
    ///
    /// The report lists every message that had no verdict by then. Twice, concurrently or after a failure: harmless;
    /// the earliest deadline counts, and every call returns the same report. Dropping the future does not stop the
    /// shutdown.
    pub async fn shutdown(&self, within: Duration) -> ShutdownReport {
        self.guard.shutdown.run(&self.guard.core, within).await
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.guard.core
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let core = &self.core;
        if !core.stop.is_cancelled() {
            crate::shutdown::abandon(&core.slab, &core.admission, &core.stop);
        }
    }
}

impl fmt::Debug for Messaging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.guard.core, f)
    }
}
