//! A declaration, changed.

use consign_core_api::capability::{CapabilitiesBuilder, Ordering};
use consign_core_api::{Capabilities, Capability};

/// Starts a declaration that says everything that another says, but for the ordering.
pub fn redeclare(declared: &Capabilities, ordering: Ordering) -> CapabilitiesBuilder {
    let mut again = Capabilities::builder(ordering)
        .pipelined_order(declared.pipelined_order())
        .redelivery_keeps_order(declared.redelivery_keeps_order())
        .delivery_count(declared.delivery_count())
        .headers(declared.headers())
        .tombstones(declared.tombstones());
    for capability in Capability::ALL {
        again = again.with(capability, declared.support(capability));
    }
    if let Some(evidence) = declared.strongest_evidence() {
        again = again.strongest_evidence(*evidence);
    }
    if let Some(level) = declared.settlement_level() {
        again = again.settlement_level(level);
    }
    if let Some(limit) = declared.payload_limit() {
        again = again.payload_limit(limit);
    }
    if let Some(window) = declared.deduplication_window() {
        again = again.deduplication_window(window);
    }
    again
}
