//! What a library is configured with.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use consign_core_api::spi::Transport;
use consign_core_api::{ConfigurationError, EncodedMessage};
use consign_policy::profile::ProfileSpecs;

use super::Messaging;
use crate::core::KeyResolver;
use crate::observer::Observer;

/// Collects transports, profiles, key resolvers and observers.
#[must_use = "a builder does nothing until it is built"]
pub struct Builder {
    pub(super) transports: Vec<(String, Arc<dyn Transport>)>,
    pub(super) specs: ProfileSpecs,
    pub(super) resolvers: BTreeMap<String, KeyResolver>,
    pub(super) observers: Vec<Arc<dyn Observer>>,
    pub(super) connect_timeout: Duration,
}

impl Builder {
    pub(super) fn new() -> Self {
        Self {
            transports: Vec::new(),
            specs: ProfileSpecs::new(),
            resolvers: BTreeMap::new(),
            observers: Vec::new(),
            connect_timeout: Duration::from_secs(10),
        }
    }

    /// Binds a transport under the name that profiles use. No I/O happens before [`build`](Self::build).
    pub fn transport(mut self, name: impl Into<String>, transport: impl Transport) -> Self {
        self.transports.push((name.into(), Arc::new(transport)));
        self
    }

    /// Sets the profiles.
    pub fn profiles(mut self, specs: ProfileSpecs) -> Self {
        self.specs = specs;
        self
    }

    /// Registers a key resolver under the name that a profile's `key = { custom = "…" }` uses.
    pub fn key_resolver(
        mut self,
        name: impl Into<String>,
        resolve: impl Fn(&EncodedMessage) -> Option<Bytes> + Send + Sync + 'static,
    ) -> Self {
        self.resolvers.insert(name.into(), Arc::new(resolve));
        self
    }

    /// Adds an observer. Events also go to `tracing`, always.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Bounds connecting to each transport; the default is 10 s. Values below 1 ms or above 30 days are refused by
    /// [`build`](Self::build).
    pub const fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Validates, connects and verifies.
    ///
    /// First every contradiction of every profile is found, without any I/O, and reported at once. Only a clean
    /// configuration is connected and compared with the brokers, in a second report. Dropping the future closes what
    /// was connected.
    ///
    /// Call it in a tokio runtime with timers that outlives the library: deadlines are told there. When that runtime
    /// ends, the library takes nothing new, and what has no verdict gets one.
    ///
    /// # Errors
    /// The report, ordered by phase, destination and rule.
    pub async fn build(self) -> Result<Messaging, ConfigurationError> {
        super::build::build(self).await
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transports: Vec<_> =
            self.transports.iter().map(|(name, transport)| (name, transport.kind())).collect();
        f.debug_struct("Builder").field("transports", &transports).finish_non_exhaustive()
    }
}
