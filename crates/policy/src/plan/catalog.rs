//! What profiles may refer to.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use consign_core_api::TransportName;
use consign_core_api::spi::Transport;

/// What an application bound in code: transports and key resolvers, by name.
#[derive(Clone, Default)]
pub struct Catalog {
    transports: BTreeMap<String, (TransportName, Arc<dyn Transport>)>,
    key_resolvers: BTreeSet<String>,
}

impl Catalog {
    /// Starts without a binding.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds a transport. The last one bound under a name counts.
    #[must_use]
    pub fn transport(mut self, name: TransportName, transport: Arc<dyn Transport>) -> Self {
        self.transports.insert(name.as_str().to_owned(), (name, transport));
        self
    }

    /// Registers the name of a key resolver.
    #[must_use]
    pub fn key_resolver(mut self, name: impl Into<String>) -> Self {
        self.key_resolvers.insert(name.into());
        self
    }

    pub(crate) fn bound(&self, name: &str) -> Option<(&TransportName, &dyn Transport)> {
        self.transports.get(name).map(|(name, transport)| (name, transport.as_ref()))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.transports.keys().map(String::as_str)
    }

    pub(crate) fn resolves(&self, name: &str) -> bool {
        self.key_resolvers.contains(name)
    }
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transports: Vec<_> =
            self.transports.iter().map(|(name, (_, bound))| (name, bound.kind())).collect();
        f.debug_struct("Catalog")
            .field("transports", &transports)
            .field("key_resolvers", &self.key_resolvers)
            .finish()
    }
}
