//! A transport without a broker, and short ways to write profiles.

use std::sync::Arc;

use async_trait::async_trait;
use consign_core_api::capability::{DeliveryCount, HeaderModel, Ordering};
use consign_core_api::outcome::{ConfirmationEvidence, Copies, Evidenced, Persistence};
use consign_core_api::spi::{ConnectContext, Connection, DestinationSetup, Transport, TransportError};
use consign_core_api::{
    Capabilities, Capability, CapabilityUnavailable, ConfigurationError, DeliveryGuarantee, DestinationName,
    OrderingScope, Problem, SettlementLevel, Support, TransportName,
};
use consign_policy::{Catalog, Plan, ProfileSpec, ProfileSpecs};

/// What a transport answers of a destination.
type Answer<T> = Box<dyn Fn(&DestinationSetup) -> T + Send + Sync>;

/// Declares what it is told to declare.
pub(crate) struct Fake {
    pub(crate) capabilities: Answer<Capabilities>,
    pub(crate) faults: Answer<Vec<Problem>>,
    pub(crate) names: Answer<Vec<String>>,
}

impl Fake {
    /// Can do all that is asked.
    pub(crate) fn able() -> Self {
        Self {
            capabilities: Box::new(|setup| able(setup).build()),
            faults: Box::new(|_| Vec::new()),
            names: Box::new(|_| Vec::new()),
        }
    }
}

/// Everything, with the ordering that is asked for.
pub(crate) fn able(setup: &DestinationSetup) -> consign_core_api::capability::CapabilitiesBuilder {
    let native = || Support::Native("".into());
    let ordering = match setup.ordering {
        OrderingScope::Partition => Ordering::Partition(native()),
        OrderingScope::Key => Ordering::Key(native()),
        _ => Ordering::Destination(native()),
    };
    let evidence = ConfirmationEvidence::new(
        Evidenced::observed(Copies::Leader),
        Evidenced::observed(Persistence::Flushed),
    );
    Capability::ALL
        .into_iter()
        .fold(Capabilities::builder(ordering), |all, capability| all.native(capability, ""))
        .strongest_evidence(evidence)
        .settlement_level(SettlementLevel::Committed)
        .redelivery_keeps_order(true)
        .delivery_count(DeliveryCount::Counted)
        .headers(HeaderModel::FULL)
        .tombstones(true)
}

#[async_trait]
impl Transport for Fake {
    fn kind(&self) -> &'static str {
        "fake"
    }

    fn validate(&self, setup: &DestinationSetup) -> Vec<Problem> {
        (self.faults)(setup)
    }

    fn capabilities(&self, setup: &DestinationSetup) -> Capabilities {
        (self.capabilities)(setup)
    }

    fn physical_names(&self, setup: &DestinationSetup) -> Vec<String> {
        (self.names)(setup)
    }

    async fn connect(&self, _: ConnectContext) -> Result<Arc<dyn Connection>, TransportError> {
        Err(TransportError::Unavailable(CapabilityUnavailable::new("connecting", "this is no broker")))
    }
}

pub(crate) fn catalog(fake: Fake) -> Catalog {
    Catalog::new().transport(TransportName::new("main").unwrap(), Arc::new(fake)).key_resolver("tenant")
}

/// Plans with a transport that can do everything.
pub(crate) fn plan(specs: &ProfileSpecs) -> Result<Plan, ConfigurationError> {
    consign_policy::plan(specs, &catalog(Fake::able()))
}

/// Returns the codes of the report, in their order.
pub(crate) fn codes(specs: &ProfileSpecs) -> Vec<&'static str> {
    codes_of(plan(specs))
}

pub(crate) fn codes_of(planned: Result<Plan, ConfigurationError>) -> Vec<&'static str> {
    planned.err().map_or(Vec::new(), |report| report.codes().iter().map(|code| code.as_str()).collect())
}

/// Returns the codes of one profile alone.
pub(crate) fn alone(spec: ProfileSpec) -> Vec<&'static str> {
    codes(&ProfileSpecs::new().with("orders", spec))
}

/// AT_LEAST_ONCE.
pub(crate) fn at_least_once(ordering: OrderingScope) -> ProfileSpec {
    ProfileSpec::new("main", DeliveryGuarantee::AtLeastOnce, ordering)
}

/// AT_MOST_ONCE.
pub(crate) fn at_most_once(ordering: OrderingScope) -> ProfileSpec {
    ProfileSpec::new("main", DeliveryGuarantee::AtMostOnce, ordering)
}

/// AT_LEAST_ONCE without an order.
pub(crate) fn plain() -> ProfileSpec {
    at_least_once(OrderingScope::None)
}

pub(crate) fn name(text: &str) -> DestinationName {
    DestinationName::new(text).unwrap()
}
