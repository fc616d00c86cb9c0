//! The record of everything that an adapter declares of one destination configuration.

use std::borrow::Cow;
use std::time::Duration;

use super::{Capability, Ordering, Support};
use crate::limit::MaxPayload;
use crate::outcome::ConfirmationEvidence;
use crate::settlement::SettlementLevel;

/// Whether the broker counts deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeliveryCount {
    /// It does not: a message that kills the process is not bounded by a count.
    None,
    /// It tells only whether a delivery is the first.
    RedeliveredMark,
    /// It counts, and a restart of the consumer keeps the count.
    Counted,
}

/// What headers can be carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct HeaderModel {
    /// Values may be any bytes.
    pub binary_values: bool,
    /// A name may repeat, and the order of its values is kept.
    pub duplicates: bool,
    /// The order across different names is kept.
    pub order: bool,
}

impl HeaderModel {
    /// Everything that a message can hold.
    pub const FULL: Self = Self { binary_values: true, duplicates: true, order: true };

    /// Describes what can be carried.
    #[must_use]
    pub const fn new(binary_values: bool, duplicates: bool, order: bool) -> Self {
        Self { binary_values, duplicates, order }
    }

    /// Tells whether everything that `other` carries is carried too.
    #[must_use]
    pub const fn covers(self, other: Self) -> bool {
        (self.binary_values || !other.binary_values)
            && (self.duplicates || !other.duplicates)
            && (self.order || !other.order)
    }
}

/// What an adapter declares of one destination configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    support: Vec<(Capability, Support)>,
    ordering: Ordering,
    strongest: Option<ConfirmationEvidence>,
    settlement: Option<SettlementLevel>,
    pipelined_order: bool,
    redelivery_keeps_order: bool,
    delivery_count: DeliveryCount,
    payload_limit: Option<MaxPayload>,
    deduplication_window: Option<Duration>,
    headers: HeaderModel,
    tombstones: bool,
}

impl Capabilities {
    /// Starts a declaration: nothing is supported until it is said.
    pub const fn builder(ordering: Ordering) -> CapabilitiesBuilder {
        CapabilitiesBuilder(Self {
            support: Vec::new(),
            ordering,
            strongest: None,
            settlement: None,
            pipelined_order: false,
            redelivery_keeps_order: false,
            delivery_count: DeliveryCount::None,
            payload_limit: None,
            deduplication_window: None,
            headers: HeaderModel::new(false, false, false),
            tombstones: false,
        })
    }

    /// Returns how a capability is had.
    #[must_use]
    pub fn support(&self, capability: Capability) -> Support {
        match capability {
            Capability::OrderedStream => self.ordering.ordered_stream(),
            Capability::KeyedOrdering => self.ordering.keyed_ordering(),
            other => self
                .support
                .iter()
                .find(|(named, _)| *named == other)
                .map_or(Support::Unsupported(Cow::Borrowed("not declared")), |(_, how)| how.clone()),
        }
    }

    /// Tells whether a capability is there, one way or another.
    #[must_use]
    pub fn has(&self, capability: Capability) -> bool {
        self.support(capability).is_available()
    }

    /// Returns the order that deliveries keep.
    #[must_use]
    pub const fn ordering(&self) -> &Ordering {
        &self.ordering
    }

    /// Returns the strongest evidence that a confirmation can carry; `None` where nothing is confirmed.
    #[must_use]
    pub const fn strongest_evidence(&self) -> Option<&ConfirmationEvidence> {
        self.strongest.as_ref()
    }

    /// Returns the strongest settlement level; `None` where settlement gives no evidence.
    #[must_use]
    pub const fn settlement_level(&self) -> Option<SettlementLevel> {
        self.settlement
    }

    /// Tells whether several publishes of one ordering unit may be in flight without losing their order.
    #[must_use]
    pub const fn pipelined_order(&self) -> bool {
        self.pipelined_order
    }

    /// Tells whether a redelivery comes before what was published after it.
    #[must_use]
    pub const fn redelivery_keeps_order(&self) -> bool {
        self.redelivery_keeps_order
    }

    /// Tells whether the broker counts deliveries.
    #[must_use]
    pub const fn delivery_count(&self) -> DeliveryCount {
        self.delivery_count
    }

    /// Returns the broker's own payload limit, where it is known before connecting.
    #[must_use]
    pub const fn payload_limit(&self) -> Option<MaxPayload> {
        self.payload_limit
    }

    /// Returns for how long a second publish under the same id is recognised; `None` without deduplication.
    #[must_use]
    pub const fn deduplication_window(&self) -> Option<Duration> {
        self.deduplication_window
    }

    /// Returns what headers can be carried.
    #[must_use]
    pub const fn headers(&self) -> HeaderModel {
        self.headers
    }

    /// Tells whether a tombstone stays distinct from an empty payload.
    #[must_use]
    pub const fn tombstones(&self) -> bool {
        self.tombstones
    }
}

/// Collects a declaration.
#[derive(Debug, Clone)]
#[must_use]
pub struct CapabilitiesBuilder(Capabilities);

impl CapabilitiesBuilder {
    /// Declares a capability. The two of ordering derive from the ordering value; declaring them has no effect.
    pub fn with(mut self, capability: Capability, how: Support) -> Self {
        self.0.support.retain(|(named, _)| *named != capability);
        self.0.support.push((capability, how));
        self
    }

    /// Declares a capability as the broker's own.
    pub fn native(self, capability: Capability, note: impl Into<Cow<'static, str>>) -> Self {
        self.with(capability, Support::Native(note.into()))
    }

    /// Declares a capability as the adapter's work.
    pub fn emulated(self, capability: Capability, note: impl Into<Cow<'static, str>>) -> Self {
        self.with(capability, Support::Emulated(note.into()))
    }

    /// Declares that a capability is missing, and why.
    pub fn unsupported(self, capability: Capability, note: impl Into<Cow<'static, str>>) -> Self {
        self.with(capability, Support::Unsupported(note.into()))
    }

    /// Declares the strongest evidence of a confirmation.
    pub const fn strongest_evidence(mut self, evidence: ConfirmationEvidence) -> Self {
        self.0.strongest = Some(evidence);
        self
    }

    /// Declares the strongest settlement level.
    pub const fn settlement_level(mut self, level: SettlementLevel) -> Self {
        self.0.settlement = Some(level);
        self
    }

    /// Declares whether pipelined publishes keep their order.
    pub const fn pipelined_order(mut self, kept: bool) -> Self {
        self.0.pipelined_order = kept;
        self
    }

    /// Declares whether a redelivery keeps its place.
    pub const fn redelivery_keeps_order(mut self, kept: bool) -> Self {
        self.0.redelivery_keeps_order = kept;
        self
    }

    /// Declares whether deliveries are counted.
    pub const fn delivery_count(mut self, count: DeliveryCount) -> Self {
        self.0.delivery_count = count;
        self
    }

    /// Declares the broker's payload limit.
    pub const fn payload_limit(mut self, limit: MaxPayload) -> Self {
        self.0.payload_limit = Some(limit);
        self
    }

    /// Declares for how long ids are recognised.
    pub const fn deduplication_window(mut self, window: Duration) -> Self {
        self.0.deduplication_window = Some(window);
        self
    }

    /// Declares what headers can be carried.
    pub const fn headers(mut self, model: HeaderModel) -> Self {
        self.0.headers = model;
        self
    }

    /// Declares whether tombstones stay distinct.
    pub const fn tombstones(mut self, distinct: bool) -> Self {
        self.0.tombstones = distinct;
        self
    }

    /// Ends the declaration.
    #[must_use]
    pub fn build(self) -> Capabilities {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_declared_is_unsupported() {
        let none = Capabilities::builder(Ordering::Unordered("".into())).build();
        assert!(Capability::ALL.iter().all(|capability| !none.has(*capability)));
    }

    #[test]
    fn ordering_capabilities_follow_the_ordering_value_whatever_else_is_declared() {
        let record = Capabilities::builder(Ordering::Unordered("".into()))
            .native(Capability::KeyedOrdering, "")
            .native(Capability::OrderedStream, "")
            .build();
        assert!(!record.has(Capability::KeyedOrdering) && !record.has(Capability::OrderedStream));
    }

    #[test]
    fn a_wider_header_model_covers_a_narrower_one() {
        let text = HeaderModel::new(false, true, true);
        assert!(HeaderModel::FULL.covers(text) && !text.covers(HeaderModel::FULL) && text.covers(text));
    }
}
