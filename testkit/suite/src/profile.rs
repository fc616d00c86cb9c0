//! A configuration under test: broker times profile.

use consign_core_api::spi::{NativeSettings, TopologyMode};
use consign_core_api::{DeliveryGuarantee, OrderingScope};
use consign_policy::{KeySpec, ProfileSpec};

/// One configuration of a broker under test. A guarantee belongs to a configuration, never to a broker.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Profile {
    /// The name in reports.
    pub name: String,
    /// The ordering that destinations ask for.
    pub ordering: OrderingScope,
    /// The delivery guarantee that destinations ask for.
    pub delivery: DeliveryGuarantee,
    /// What only the adapter understands.
    pub native: NativeSettings,
}

impl Profile {
    /// Makes a profile without order, AT_LEAST_ONCE.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ordering: OrderingScope::None,
            delivery: DeliveryGuarantee::AtLeastOnce,
            native: NativeSettings::default(),
        }
    }

    /// Sets the ordering.
    #[must_use]
    pub const fn ordering(mut self, ordering: OrderingScope) -> Self {
        self.ordering = ordering;
        self
    }

    /// Sets the delivery guarantee.
    #[must_use]
    pub const fn delivery(mut self, delivery: DeliveryGuarantee) -> Self {
        self.delivery = delivery;
        self
    }

    /// Sets a native setting.
    #[must_use]
    pub fn native(mut self, name: impl Into<String>, value: impl Into<serde_json::Value>) -> Self {
        self.native = self.native.with(name, value);
        self
    }

    /// Returns the raw profile of a destination of this configuration. Cases change what they are about.
    #[must_use]
    pub fn spec(&self) -> ProfileSpec {
        let mut spec = ProfileSpec::new("main", self.delivery, self.ordering);
        spec.topology = TopologyMode::Declare;
        spec.native = self.native.clone();
        if self.ordering == OrderingScope::Key {
            spec = spec.key(KeySpec::message());
        }
        spec
    }
}
