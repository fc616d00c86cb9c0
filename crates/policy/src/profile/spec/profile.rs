//! One raw profile.

use consign_core_api::spi::{NativeSettings, TopologyMode};
use consign_core_api::{DeliveryGuarantee, ExternalSideEffectGuarantee, OrderingScope};
use serde::Deserialize;

use super::{ConsumerSpec, KeySpec, MessageIdSpec, OnExhausted, PublishSpec, RetrySpec, native};

/// What is written of one destination. Only transport, delivery and ordering have no default.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ProfileSpec {
    /// The name of a bound transport.
    pub transport: String,
    /// How often a message may reach a handler.
    pub delivery: DeliveryGuarantee,
    /// Within which set handlers start in order.
    pub ordering: OrderingScope,
    /// What the library may do to the topology. Default verify.
    #[serde(default)]
    pub topology: TopologyMode,
    /// What protects external effects. Default none.
    #[serde(default = "no_side_effects")]
    pub side_effects: ExternalSideEffectGuarantee,
    /// Where the key comes from. Default nowhere.
    #[serde(default)]
    pub key: Option<KeySpec>,
    /// Where the message id comes from. Default generated.
    #[serde(default)]
    pub message_id: MessageIdSpec,
    /// The publishing side.
    #[serde(default)]
    pub publish: PublishSpec,
    /// The consuming side.
    #[serde(default)]
    pub consumer: ConsumerSpec,
    /// How failed messages are tried again. Default not at all.
    #[serde(default)]
    pub retry: RetrySpec,
    /// The destination of messages that failed for good. Default none.
    #[serde(default)]
    pub dead_letter: Option<String>,
    /// What becomes of a message that failed for good. Default dead-lettered where a dead letter is named, discarded
    /// under AT_MOST_ONCE, else halt.
    #[serde(default)]
    pub on_exhausted: Option<OnExhausted>,
    /// What only the adapter understands.
    #[serde(default, deserialize_with = "native::settings")]
    pub native: NativeSettings,
}

const fn no_side_effects() -> ExternalSideEffectGuarantee {
    ExternalSideEffectGuarantee::None
}

impl ProfileSpec {
    /// Writes a profile with the default of everything that has one.
    #[must_use]
    pub fn new(transport: impl Into<String>, delivery: DeliveryGuarantee, ordering: OrderingScope) -> Self {
        Self {
            transport: transport.into(),
            delivery,
            ordering,
            topology: TopologyMode::default(),
            side_effects: no_side_effects(),
            key: None,
            message_id: MessageIdSpec::default(),
            publish: PublishSpec::default(),
            consumer: ConsumerSpec::default(),
            retry: RetrySpec::default(),
            dead_letter: None,
            on_exhausted: None,
            native: NativeSettings::default(),
        }
    }

    /// Sets what the library may do to the topology.
    #[must_use]
    pub const fn topology(mut self, mode: TopologyMode) -> Self {
        self.topology = mode;
        self
    }

    /// Sets what protects external effects.
    #[must_use]
    pub const fn side_effects(mut self, guarantee: ExternalSideEffectGuarantee) -> Self {
        self.side_effects = guarantee;
        self
    }

    /// Sets where the key comes from.
    #[must_use]
    pub fn key(mut self, source: KeySpec) -> Self {
        self.key = Some(source);
        self
    }

    /// Sets where the message id comes from.
    #[must_use]
    pub fn message_id(mut self, source: MessageIdSpec) -> Self {
        self.message_id = source;
        self
    }

    /// Sets the publishing side.
    #[must_use]
    pub const fn publish(mut self, spec: PublishSpec) -> Self {
        self.publish = spec;
        self
    }

    /// Sets the consuming side.
    #[must_use]
    pub const fn consumer(mut self, spec: ConsumerSpec) -> Self {
        self.consumer = spec;
        self
    }

    /// Sets how failed messages are tried again.
    #[must_use]
    pub fn retry(mut self, spec: RetrySpec) -> Self {
        self.retry = spec;
        self
    }

    /// Names the destination of messages that failed for good.
    #[must_use]
    pub fn dead_letter(mut self, destination: impl Into<String>) -> Self {
        self.dead_letter = Some(destination.into());
        self
    }

    /// Sets what becomes of a message that failed for good.
    #[must_use]
    pub const fn on_exhausted(mut self, end: OnExhausted) -> Self {
        self.on_exhausted = Some(end);
        self
    }

    /// Sets what only the adapter understands.
    #[must_use]
    pub fn native(mut self, settings: NativeSettings) -> Self {
        self.native = settings;
        self
    }
}
