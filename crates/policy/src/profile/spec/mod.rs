//! Everything that can be written of destinations, in code or in TOML. Nothing is checked yet.

mod admission;
mod consumer;
mod evidence;
mod exhausted;
mod humane;
mod key;
mod limit;
mod native;
mod profile;
mod publish;
mod retry;
#[cfg(feature = "toml")]
mod toml;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

pub use admission::AdmissionSpec;
pub use consumer::ConsumerSpec;
pub use evidence::{CopiesSpec, EvidenceSpec};
pub use exhausted::OnExhausted;
pub use key::{KeyFrom, KeySpec, MessageIdSpec};
pub use limit::Limit;
pub use profile::ProfileSpec;
pub use publish::PublishSpec;
pub use retry::RetrySpec;

pub(crate) use humane::Size;
pub(crate) use retry::ATTEMPTS;

/// The raw profiles of all destinations, by name, and the limits that they share.
///
/// ```
/// use consign_core_api::{DeliveryGuarantee, OrderingScope};
/// use consign_policy::{ProfileSpec, ProfileSpecs};
///
/// let orders = ProfileSpec::new("main", DeliveryGuarantee::AtLeastOnce, OrderingScope::None);
/// let specs = ProfileSpecs::new().with("orders", orders);
/// assert_eq!(specs.iter().count(), 1);
/// ```
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProfileSpecs {
    pub(crate) destinations: BTreeMap<String, ProfileSpec>,
    pub(crate) admission: AdmissionSpec,
    #[serde(skip)]
    pub(crate) repeated: BTreeSet<String>,
}

impl ProfileSpecs {
    /// Starts without a destination.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a destination. A name that was added before is kept as it was, and reported by [`plan`](crate::plan()) as
    /// `PHYSICAL_NAME_COLLISION`.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, spec: ProfileSpec) -> Self {
        match self.destinations.entry(name.into()) {
            Entry::Vacant(place) => {
                place.insert(spec);
            }
            Entry::Occupied(taken) => {
                self.repeated.insert(taken.key().clone());
            }
        }
        self
    }

    /// Sets the limits that all destinations share.
    #[must_use]
    pub const fn admission(mut self, spec: AdmissionSpec) -> Self {
        self.admission = spec;
        self
    }

    /// Returns the raw profile of a destination.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&ProfileSpec> {
        self.destinations.get(name)
    }

    /// Returns the raw profiles in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ProfileSpec)> {
        self.destinations.iter().map(|(name, spec)| (name.as_str(), spec))
    }
}
