//! What a case works with.

mod consuming;
mod numbers;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use consign_core_api::spi::Transport;
use consign_core_api::{Capabilities, ConfigurationError};
use consign_policy::{ProfileSpec, ProfileSpecs};
use consign_runtime::{Builder, Messaging};

use crate::case::CaseError;
use crate::harness::{BrokerFault, Harness, Stored};
use crate::history::{Happened, History};
use crate::profile::Profile;
use crate::wrap::{Meddle, Wrapper, meddled};

pub use consuming::{Consuming, Gate, Seen, failing_for_good, failing_for_now, panicking};
pub use numbers::{Number, key_of, number_of};

/// The longest that a case waits for anything, unless the run says otherwise.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// How long nothing must come before a case takes it that nothing more comes. It is no proof by itself: wherever it
/// can, a case lets a marker come behind what must not come.
pub const QUIET: Duration = Duration::from_millis(400);
/// How far beyond a deadline something may end on a busy machine before a case calls it late.
pub const LAG: Duration = Duration::from_secs(5);

/// One run of one case: a broker, a profile, names of its own, and a history.
pub struct Lab {
    harness: Arc<dyn Harness>,
    profile: Profile,
    capabilities: Capabilities,
    prefix: String,
    named: AtomicU32,
    wrapper: Option<Wrapper>,
    history: Arc<History>,
    patience: Duration,
}

impl Lab {
    pub(crate) fn new(
        harness: Arc<dyn Harness>,
        profile: Profile,
        capabilities: Capabilities,
        prefix: String,
        wrapper: Option<Wrapper>,
        patience: Duration,
    ) -> Self {
        let history = Arc::new(History::default());
        Self { harness, profile, capabilities, prefix, named: AtomicU32::new(0), wrapper, history, patience }
    }

    /// Returns the profile under test.
    #[must_use]
    pub const fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Returns what the adapter declares of it.
    #[must_use]
    pub const fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// Returns the history.
    #[must_use]
    pub const fn history(&self) -> &Arc<History> {
        &self.history
    }

    /// Makes a destination name that no other case and no other run uses.
    #[must_use]
    pub fn destination(&self, role: &str) -> String {
        format!("{}-{role}-{}", self.prefix, self.named.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the raw profile of a destination of the profile under test.
    #[must_use]
    pub fn spec(&self) -> ProfileSpec {
        self.profile.spec()
    }

    /// Returns a transport to the broker under test, through the mutant if there is one.
    #[must_use]
    pub fn transport(&self) -> Arc<dyn Transport> {
        let transport = self.harness.transport();
        match &self.wrapper {
            Some(wrap) => wrap(transport),
            None => transport,
        }
    }

    /// Returns a builder with the transport bound as `main` and the history observing.
    pub fn builder(&self) -> Builder {
        Messaging::builder().transport("main", self.transport()).observer(self.history.clone())
    }

    /// Returns a builder with a fault of the case's own between the runtime and the transport.
    pub fn builder_with(&self, fault: impl Meddle) -> Builder {
        let transport = meddled(self.transport(), Arc::new(fault));
        Messaging::builder().transport("main", transport).observer(self.history.clone())
    }

    /// Starts a library with these profiles.
    ///
    /// # Errors
    /// The report of what is wrong with them.
    pub async fn start(&self, specs: ProfileSpecs) -> Result<Messaging, ConfigurationError> {
        self.builder().profiles(specs).build().await
    }

    /// Starts a library with these profiles and a fault of the case's own.
    ///
    /// # Errors
    /// The report of what is wrong with them.
    pub async fn start_with(
        &self,
        fault: impl Meddle,
        specs: ProfileSpecs,
    ) -> Result<Messaging, ConfigurationError> {
        self.builder_with(fault).profiles(specs).build().await
    }

    /// Starts a library with one destination of the profile under test, and returns its name.
    ///
    /// # Errors
    /// The report of what is wrong with it.
    pub async fn one(&self) -> Result<(Messaging, String), ConfigurationError> {
        self.one_with(self.spec()).await
    }

    /// Starts a library with one destination of this raw profile, and returns its name.
    ///
    /// # Errors
    /// The report of what is wrong with it.
    pub async fn one_with(&self, spec: ProfileSpec) -> Result<(Messaging, String), ConfigurationError> {
        let name = self.destination("d");
        let messaging = self.start(ProfileSpecs::new().with(&name, spec)).await?;
        Ok((messaging, name))
    }

    /// Reads everything that a destination holds, not through the adapter.
    ///
    /// # Errors
    /// Why it could not be read.
    pub async fn stored(&self, destination: &str) -> Result<Vec<Stored>, CaseError> {
        self.within("reading back", self.harness.read_back(&self.profile, destination))
            .await?
            .map_err(CaseError::new)
    }

    /// Does something to the broker.
    ///
    /// # Errors
    /// If the harness does not offer it.
    pub async fn inflict(&self, fault: BrokerFault<'_>) -> Result<(), CaseError> {
        self.history.note(format!("fault: {fault:?}"));
        self.within("inflicting a fault", self.harness.inflict(fault)).await?.map_err(CaseError::from)
    }

    /// Waits, bounded.
    ///
    /// # Errors
    /// If the wait took too long.
    pub async fn within<F: Future>(&self, what: &str, future: F) -> Result<F::Output, CaseError> {
        let patience = self.patience;
        tokio::time::timeout(patience, future)
            .await
            .map_err(|_| CaseError::new(format!("{what}: nothing within {patience:?}")))
    }

    /// Waits, bounded, until so many things like this happened.
    ///
    /// # Errors
    /// If the wait took too long.
    pub async fn happened(
        &self,
        what: &str,
        times: usize,
        like: impl Fn(&Happened) -> bool,
    ) -> Result<(), CaseError> {
        let enough =
            |events: &[Happened]| (events.iter().filter(|event| like(event)).count() >= times).then_some(());
        self.within(what, self.history.until(enough)).await
    }

    /// Shuts a library down, in time.
    ///
    /// # Errors
    /// If it does not return.
    pub async fn end(&self, messaging: &Messaging) -> Result<(), CaseError> {
        let report = self.within("shutdown", messaging.shutdown(Duration::from_secs(5))).await?;
        self.history.note(format!("shut down: {report}"));
        Ok(())
    }
}

impl std::fmt::Debug for Lab {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lab")
            .field("profile", &self.profile.name)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}
