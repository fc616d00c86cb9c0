//! What an adapter is told, made of legal values.

use consign_core_api::MaxPayload;
use consign_core_api::spi::{ConsumerSetup, DestinationSetup, PublishSetup, RetrySetup};

use super::join::Joined;
use crate::profile::{
    ConsumerFields, ConsumerSpec, DestinationProfile, Fields, PublishFields, PublishSpec, RetryFields,
    RetrySpec,
};

/// Makes a profile of legal values; `None` where one is missing.
pub(super) fn profile(
    joined: &Joined<'_>,
    node: usize,
    own: Fields,
    max_payload: MaxPayload,
) -> Option<DestinationProfile> {
    let spec = joined.specs[node];
    if !own.legal {
        return None;
    }
    let named = |node: Option<usize>| node.and_then(|node| joined.names[node].clone());

    let mut setup = DestinationSetup::new(joined.names[node].clone()?, spec.delivery, spec.ordering);
    setup.topology = spec.topology;
    setup.side_effects = spec.side_effects;
    setup.native = spec.native.clone();
    setup.publish = publish(&spec.publish, &own.publish, max_payload)?;
    setup.consumer = consumer(&spec.consumer, &own.consumer)?;
    setup.retry = retry(&spec.retry, &own.retry)?;
    setup.retry.destination = named(joined.graph.named_for_retry(node));
    Some(DestinationProfile {
        transport: own.transport?,
        setup,
        key: own.key?,
        message_id: own.message_id?,
        dead_letter: named(joined.graph.dead_letter(joined.governor(node))),
        on_exhausted: own.on_exhausted?,
    })
}

fn publish(spec: &PublishSpec, own: &PublishFields, max_payload: MaxPayload) -> Option<PublishSetup> {
    let mut setup = PublishSetup::default();
    setup.confirm = spec.confirmation;
    setup.deadline = own.deadline?;
    setup.max_payload = max_payload;
    setup.in_flight = own.in_flight?;
    setup.evidence = own.evidence?;
    Some(setup)
}

fn consumer(spec: &ConsumerSpec, own: &ConsumerFields) -> Option<ConsumerSetup> {
    let mut setup = ConsumerSetup::default();
    setup.concurrency = own.concurrency?;
    setup.unit_in_flight = own.unit_in_flight?;
    setup.handler_timeout = own.handler_timeout?;
    setup.settlement_deadline = own.settlement_deadline?;
    setup.extend = spec.extend;
    setup.start = spec.start;
    setup.max_deliveries = own.max_deliveries?;
    setup.settlement = spec.settlement;
    Some(setup)
}

fn retry(spec: &RetrySpec, own: &RetryFields) -> Option<RetrySetup> {
    let mut setup = RetrySetup::default();
    setup.strategy = spec.strategy;
    setup.impact = spec.impact;
    setup.max_attempts = own.max_attempts?;
    setup.first = own.first?;
    setup.max = own.max?;
    setup.multiplier = own.multiplier?;
    setup.jitter = own.jitter?;
    Some(setup)
}
