//! Needs that capabilities do not meet.

use std::num::NonZeroU16;
use std::time::Duration;

use consign_core_api::capability::{CapabilitiesBuilder, DeliveryCount, HeaderModel, Ordering};
use consign_core_api::error::Phase;
use consign_core_api::outcome::{ConfirmationEvidence, Copies, Evidenced, Persistence};
use consign_core_api::spi::{Confirm, OrderImpact, RetryStrategy};
use consign_core_api::{
    Capabilities, Capability, ConfigurationError, MaxPayload, OrderingScope, SettlementLevel, Support,
};
use consign_policy::{
    ConsumerSpec, CopiesSpec, EvidenceSpec, KeySpec, ProfileSpec, ProfileSpecs, PublishSpec, RetrySpec,
};

use super::support::{Fake, able, at_least_once, at_most_once, catalog, codes_of, plain};

const NOTHING: [&str; 0] = [];
const UNMET: [&str; 1] = ["CAPABILITY_UNAVAILABLE"];

type Change = fn(CapabilitiesBuilder) -> CapabilitiesBuilder;

/// A transport that can do everything, but for a change.
fn but(change: Change) -> Fake {
    Fake { capabilities: Box::new(move |setup| change(able(setup)).build()), ..Fake::able() }
}

fn check(spec: ProfileSpec, fake: Fake) -> Result<(), ConfigurationError> {
    consign_policy::plan(&ProfileSpecs::new().with("orders", spec), &catalog(fake)).map(drop)
}

fn unmet(spec: ProfileSpec, change: Change) -> Vec<&'static str> {
    check(spec, but(change)).err().map_or(Vec::new(), |report| {
        assert!(report.problems().iter().all(|problem| problem.phase() == Phase::Negotiation), "{report}");
        assert!(report.problems().iter().all(|problem| !problem.help().is_empty()), "{report}");
        report.codes().iter().map(|code| code.as_str()).collect()
    })
}

fn without(capability: Capability) -> impl Fn(ProfileSpec) -> Vec<&'static str> {
    move |spec| {
        let capabilities = move |setup: &_| able(setup).unsupported(capability, "not here").build();
        let fake = Fake { capabilities: Box::new(capabilities), ..Fake::able() };
        codes_of(consign_policy::plan(&ProfileSpecs::new().with("orders", spec), &catalog(fake)))
    }
}

fn retry(strategy: RetryStrategy) -> ProfileSpec {
    plain().retry(RetrySpec::new(strategy).impact(OrderImpact::AllowReorder))
}

fn ordered_as(ordering: fn() -> Ordering) -> Fake {
    Fake {
        capabilities: Box::new(move |_| {
            let able = Capability::ALL
                .into_iter()
                .fold(Capabilities::builder(ordering()), |all, capability| all.native(capability, ""));
            able.settlement_level(SettlementLevel::Committed).headers(HeaderModel::FULL).build()
        }),
        ..Fake::able()
    }
}

#[test]
fn an_ordering_is_kept_by_the_same_or_a_wider_one() {
    let unordered: fn() -> Ordering = || Ordering::Unordered("a queue".into());
    let unsupported: fn() -> Ordering = || Ordering::Key(Support::Unsupported("a queue".into()));
    for ordering in [unordered, unsupported] {
        for scope in [OrderingScope::Destination, OrderingScope::Partition, OrderingScope::Key] {
            let spec = at_least_once(scope).key(KeySpec::message());
            assert_eq!(check(spec, ordered_as(ordering)).unwrap_err().codes(), UNMET);
        }
        assert!(check(plain(), ordered_as(ordering)).is_ok());
    }
    let partition = || ordered_as(|| Ordering::Partition(Support::Native("".into())));
    let keyed = at_least_once(OrderingScope::Key).key(KeySpec::message());
    assert_eq!(check(keyed.clone(), partition()).unwrap_err().codes(), UNMET);
    assert_eq!(check(at_least_once(OrderingScope::Destination), partition()).unwrap_err().codes(), UNMET);
    assert!(check(at_least_once(OrderingScope::Partition), partition()).is_ok());
    let destination = ordered_as(|| Ordering::Destination(Support::Native("".into())));
    assert!(check(keyed, destination).is_ok());
}

#[test]
fn a_refusal_reads_as_a_sentence_with_what_to_change() {
    let spec = at_least_once(OrderingScope::Key).key(KeySpec::message());
    let report = check(spec, ordered_as(|| Ordering::Unordered("Shared".into()))).unwrap_err();
    assert_eq!(
        report.to_string(),
        "error[CAPABILITY_UNAVAILABLE]: destination \"orders\": asks for the ordering KEY; transport \"main\" (fake) \
         orders nothing: Shared (ordering = KEY)\n  \
         help: use ordering = NONE, or another configuration of the destination"
    );
}

#[test]
fn a_confirmed_publish_needs_confirmation() {
    let refuse = without(Capability::PublishConfirmation);
    assert_eq!(refuse(plain()), UNMET);
    assert_eq!(refuse(at_most_once(OrderingScope::None)), UNMET);
    let unconfirmed = PublishSpec::default().confirmation(Confirm::None);
    assert_eq!(refuse(at_most_once(OrderingScope::None).publish(unconfirmed)), NOTHING);
}

#[test]
fn a_demand_is_met_by_the_strongest_evidence_or_refused() {
    let demand =
        |copies| plain().publish(PublishSpec::default().evidence(EvidenceSpec::default().copies(copies)));
    const THREE: Change = |able| {
        let min = NonZeroU16::new(3).unwrap();
        able.strongest_evidence(ConfirmationEvidence::new(
            Evidenced::observed(Copies::Quorum { min }),
            Evidenced::declared(Persistence::PageCache),
        ))
    };
    assert_eq!(unmet(demand(CopiesSpec::Leader), |able| able), NOTHING);
    assert_eq!(unmet(demand(CopiesSpec::QUORUM), |able| able), UNMET);
    assert_eq!(unmet(demand(CopiesSpec::QUORUM), THREE), NOTHING);
    assert_eq!(unmet(demand(CopiesSpec::Quorum(4)), THREE), UNMET);
    let flushed = EvidenceSpec::default().persistence(Persistence::Flushed);
    assert_eq!(unmet(plain().publish(PublishSpec::default().evidence(flushed)), THREE), UNMET);
}

#[test]
fn a_settlement_is_as_firm_as_is_asked() {
    let ask = |level| plain().consumer(ConsumerSpec::default().settlement(level));
    const PROCESSED: Change = |able| able.settlement_level(SettlementLevel::Processed);
    assert_eq!(unmet(ask(SettlementLevel::Committed), PROCESSED), UNMET);
    assert_eq!(unmet(ask(SettlementLevel::Processed), PROCESSED), NOTHING);
    assert_eq!(unmet(ask(SettlementLevel::Committed), |able| able), NOTHING);
    let silent = || {
        let capabilities = |_: &_| {
            Capability::ALL
                .into_iter()
                .fold(Capabilities::builder(Ordering::Unordered("".into())), |all, one| all.native(one, ""))
                .build()
        };
        Fake { capabilities: Box::new(capabilities), ..Fake::able() }
    };
    assert_eq!(check(plain(), silent()).unwrap_err().codes(), UNMET);
}

#[test]
fn several_handlers_at_once_need_settlement_one_by_one() {
    let refuse = without(Capability::IndividualSettlement);
    let concurrency =
        |spec: ProfileSpec, handlers| spec.consumer(ConsumerSpec::default().concurrency(handlers));
    assert_eq!(refuse(concurrency(plain(), 2)), UNMET);
    assert_eq!(refuse(concurrency(plain(), 1)), NOTHING);
    assert_eq!(refuse(concurrency(at_most_once(OrderingScope::None), 2)), NOTHING);
}

#[test]
fn a_redelivery_needs_redelivery_and_its_delay() {
    let (redelivery, delayed) = (without(Capability::Redelivery), without(Capability::DelayedRedelivery));
    assert_eq!(redelivery(retry(RetryStrategy::Redelivery)), UNMET);
    assert_eq!(redelivery(retry(RetryStrategy::InPlace)), NOTHING);
    assert_eq!(delayed(retry(RetryStrategy::Redelivery)), UNMET);
    assert_eq!(delayed(retry(RetryStrategy::BrokerDelayed)), UNMET);
    assert_eq!(delayed(retry(RetryStrategy::InPlace)), NOTHING);
    assert_eq!(redelivery(plain()), NOTHING);
}

#[test]
fn at_most_once_needs_a_firm_settlement_or_a_mark_on_what_comes_again() {
    const NEITHER: Change =
        |able| able.settlement_level(SettlementLevel::Processed).delivery_count(DeliveryCount::None);
    const MARKED: Change = |able| {
        able.settlement_level(SettlementLevel::Processed).delivery_count(DeliveryCount::RedeliveredMark)
    };
    const FIRM: Change =
        |able| able.settlement_level(SettlementLevel::Committed).delivery_count(DeliveryCount::None);
    assert_eq!(unmet(at_most_once(OrderingScope::None), NEITHER), UNMET);
    assert_eq!(unmet(at_most_once(OrderingScope::None), MARKED), NOTHING);
    assert_eq!(unmet(at_most_once(OrderingScope::None), FIRM), NOTHING);
    assert_eq!(unmet(plain(), NEITHER), NOTHING);
}

#[test]
fn what_is_taken_must_be_bounded() {
    assert_eq!(without(Capability::ConsumerFlowControl)(plain()), UNMET);
}

#[test]
fn a_message_must_fit_the_brokers_limit() {
    const SMALL: Change = |able| able.payload_limit(MaxPayload::new(1000).unwrap());
    let largest = |bytes| plain().publish(PublishSpec::default().max_payload(bytes));
    assert_eq!(unmet(largest(1001), SMALL), UNMET);
    assert_eq!(unmet(largest(1000), SMALL), NOTHING);
}

#[test]
fn a_redelivery_that_breaks_the_order_is_held_in_place_and_must_fit_the_deadline() {
    const REORDERS: Change = |able| able.redelivery_keeps_order(false);
    let held = |ordering, extend| {
        let consumer = ConsumerSpec::default().extend(extend).settlement_deadline(Duration::from_secs(90));
        at_least_once(ordering).consumer(consumer).retry(RetrySpec::new(RetryStrategy::Redelivery))
    };
    let exceeded = ["IN_PLACE_HOLD_EXCEEDS_SETTLEMENT_DEADLINE"];
    assert_eq!(unmet(held(OrderingScope::Partition, false), REORDERS), exceeded);
    assert_eq!(unmet(held(OrderingScope::Partition, true), REORDERS), NOTHING);
    assert_eq!(unmet(held(OrderingScope::None, false), REORDERS), NOTHING);
    assert_eq!(unmet(held(OrderingScope::Partition, false), |able| able), NOTHING);
}

#[test]
fn every_need_that_is_not_met_is_reported() {
    let nothing = Fake {
        capabilities: Box::new(|_| Capabilities::builder(Ordering::Unordered("".into())).build()),
        ..Fake::able()
    };
    let spec = at_least_once(OrderingScope::Partition)
        .publish(PublishSpec::default().evidence(EvidenceSpec::default().copies(CopiesSpec::Leader)))
        .retry(RetrySpec::new(RetryStrategy::Redelivery));
    let report = check(spec, nothing).unwrap_err();
    let first: Vec<_> = report.problems().iter().map(|problem| problem.fields()[0].0.as_str()).collect();
    assert_eq!(
        first,
        [
            "ordering",
            "publish.confirmation",
            "publish.evidence",
            "consumer.settlement",
            "consumer.concurrency",
            "retry.strategy",
            "retry.strategy",
            "consumer.concurrency"
        ]
    );
    assert!(report.codes().iter().all(|code| *code == "CAPABILITY_UNAVAILABLE"));
}

/// Plans an origin, its retry destination and its dead letter, of which one carries less.
fn narrowed(narrow: &'static str, change: Change) -> Vec<(String, String)> {
    let fake = Fake {
        capabilities: Box::new(move |setup| {
            let able = able(setup);
            if setup.name.as_str() == narrow { change(able).build() } else { able.build() }
        }),
        ..Fake::able()
    };
    let orders = plain().retry(RetrySpec::to("orders.retry")).dead_letter("orders.dead");
    let specs =
        ProfileSpecs::new().with("orders", orders).with("orders.retry", plain()).with("orders.dead", plain());
    let planned = consign_policy::plan(&specs, &catalog(fake));
    planned.err().map_or(Vec::new(), |report| {
        assert_eq!(report.codes(), UNMET, "{report}");
        assert_eq!(report.problems()[0].destination(), Some("orders"));
        report.problems()[0].fields().to_vec()
    })
}

#[test]
fn a_copy_loses_nothing() {
    let field = |field: &str, to: &str| vec![(field.to_owned(), to.to_owned())];
    for change in [
        (|able| able.tombstones(false)) as Change,
        |able| able.headers(HeaderModel::new(false, true, true)),
        |able| able.headers(HeaderModel::new(true, false, true)),
        |able| able.headers(HeaderModel::new(true, true, false)),
    ] {
        assert_eq!(narrowed("orders.dead", change), field("dead_letter", "orders.dead"));
        assert_eq!(narrowed("orders.retry", change), field("retry.destination", "orders.retry"));
        assert!(narrowed("orders", change).is_empty());
    }
}
