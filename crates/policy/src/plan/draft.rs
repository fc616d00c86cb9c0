//! Profiles whose values are legal, as their transports see them.

use consign_core_api::spi::{ConsumerSetup, DestinationSetup, PublishSetup, RetrySetup, Transport};
use consign_core_api::{Capabilities, MaxPayload, Problem};

use super::catalog::Catalog;
use super::join::Joined;
use super::record::Planned;
use crate::negotiation::{Match, check_copy, negotiate};
use crate::profile::{DestinationProfile, Fields};

/// A profile whose values are legal, and its transport.
pub(super) struct Draft<'a> {
    pub(super) profile: DestinationProfile,
    transport: &'a dyn Transport,
    /// What the transport can do for it; `None` where its own rules found a fault.
    capabilities: Option<Capabilities>,
}

impl Draft<'_> {
    fn matched(&self) -> Option<Match<'_>> {
        let capabilities = self.capabilities.as_ref()?;
        Some(Match { profile: &self.profile, capabilities, kind: self.transport.kind() })
    }

    pub(super) fn physical_names(&self) -> Vec<String> {
        if self.capabilities.is_some() {
            self.transport.physical_names(self.profile.setup())
        } else {
            Vec::new()
        }
    }

    pub(super) fn planned(self) -> Option<Planned> {
        Some(Planned {
            profile: self.profile,
            capabilities: self.capabilities?,
            origin: None,
            rungs: Vec::new(),
            dead_letter_origins: Vec::new(),
        })
    }
}

/// Asks each legal profile's transport for its own rules, then for its capabilities, and negotiates.
pub(super) fn all<'a>(
    joined: &Joined<'_>,
    catalog: &'a Catalog,
    fields: &[Fields],
    limits: &[Option<MaxPayload>],
    problems: &mut Vec<Problem>,
) -> Vec<Option<Draft<'a>>> {
    let mut draft = |node: usize| {
        let profile = profile(joined, node, fields, limits[node])?;
        let (_, transport) = catalog.bound(profile.transport().as_str())?;
        let faults = transport.validate(profile.setup());
        let capabilities = faults.is_empty().then(|| transport.capabilities(profile.setup()));
        problems.extend(faults);
        if let Some(capabilities) = &capabilities {
            problems.extend(negotiate(&profile, transport.kind(), capabilities));
        }
        Some(Draft { profile, transport, capabilities })
    };
    (0..fields.len()).map(&mut draft).collect()
}

/// Checks each edge whose ends both have capabilities.
pub(super) fn check_copies(joined: &Joined<'_>, drafts: &[Option<Draft<'_>>], problems: &mut Vec<Problem>) {
    let matched = |node: usize| drafts[node].as_ref().and_then(Draft::matched);
    for node in 0..drafts.len() {
        for (kind, taker) in joined.graph.copies(node) {
            if let (Some(source), Some(target)) = (matched(node), matched(taker)) {
                check_copy(&source, kind, &target, problems);
            }
        }
    }
}

/// Makes a profile of legal values; `None` where one is missing.
fn profile(
    joined: &Joined<'_>,
    node: usize,
    fields: &[Fields],
    max_payload: Option<MaxPayload>,
) -> Option<DestinationProfile> {
    let (spec, own) = (joined.specs[node], &fields[node]);
    if !own.legal {
        return None;
    }
    let named = |node: Option<usize>| node.and_then(|node| fields[node].name.clone());
    let governor = joined.governor(node);

    let mut setup = DestinationSetup::new(own.name.clone()?, spec.delivery, spec.ordering);
    setup.topology = spec.topology;
    setup.side_effects = spec.side_effects;
    setup.native = spec.native.clone();
    setup.publish = publish(joined, node, own, max_payload?)?;
    setup.consumer = consumer(joined, node, own)?;
    setup.retry = retry(joined, node, own)?;
    setup.retry.destination = named(joined.graph.named_for_retry(node));
    Some(DestinationProfile {
        transport: own.transport.clone()?,
        setup,
        key: own.key.clone()?,
        message_id: own.message_id.clone()?,
        dead_letter: named(joined.graph.dead_letter(governor)),
        on_exhausted: fields[governor].on_exhausted?,
    })
}

fn publish(joined: &Joined<'_>, node: usize, own: &Fields, max_payload: MaxPayload) -> Option<PublishSetup> {
    let mut setup = PublishSetup::default();
    setup.confirm = joined.specs[node].publish.confirmation;
    setup.deadline = own.publish.deadline?;
    setup.max_payload = max_payload;
    setup.in_flight = own.publish.in_flight?;
    setup.evidence = own.publish.evidence?;
    Some(setup)
}

fn consumer(joined: &Joined<'_>, node: usize, own: &Fields) -> Option<ConsumerSetup> {
    let (spec, mut setup) = (&joined.specs[node].consumer, ConsumerSetup::default());
    setup.concurrency = own.consumer.concurrency?;
    setup.unit_in_flight = own.consumer.unit_in_flight?;
    setup.handler_timeout = own.consumer.handler_timeout?;
    setup.settlement_deadline = own.consumer.settlement_deadline?;
    setup.extend = spec.extend;
    setup.start = spec.start;
    setup.max_deliveries = own.consumer.max_deliveries?;
    setup.settlement = spec.settlement;
    Some(setup)
}

fn retry(joined: &Joined<'_>, node: usize, own: &Fields) -> Option<RetrySetup> {
    let (spec, mut setup) = (&joined.specs[node].retry, RetrySetup::default());
    setup.strategy = spec.strategy;
    setup.impact = spec.impact;
    setup.max_attempts = own.retry.max_attempts?;
    setup.first = own.retry.first?;
    setup.max = own.retry.max?;
    setup.multiplier = own.retry.multiplier?;
    setup.jitter = own.retry.jitter?;
    Some(setup)
}
