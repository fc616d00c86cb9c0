//! Single values.

use std::time::Duration;

use consign_core_api::OrderingScope::{Destination, None as Unordered};
use consign_core_api::spi::{Confirm, RetryStrategy};
use consign_policy::{
    AdmissionSpec, ConsumerSpec, CopiesSpec, EvidenceSpec, KeySpec, Limit, MessageIdSpec, OnExhausted,
    ProfileSpec, ProfileSpecs, PublishSpec, RetrySpec,
};

use super::support::{alone, at_least_once, at_most_once, codes, name, plain, plan};

const NOTHING: [&str; 0] = [];
const REFUSED: [&str; 1] = ["FIELD_OUT_OF_RANGE"];
const LONGEST: Duration = consign_core_api::time::LONGEST;

fn publish(spec: PublishSpec) -> Vec<&'static str> {
    alone(plain().publish(spec))
}

fn consumer(spec: ConsumerSpec) -> Vec<&'static str> {
    alone(plain().consumer(spec))
}

fn retry(change: impl FnOnce(RetrySpec) -> RetrySpec) -> Vec<&'static str> {
    alone(plain().retry(change(RetrySpec::new(RetryStrategy::InPlace))))
}

#[test]
fn timeouts_are_1_ms_to_30_days() {
    for odd in [Duration::ZERO, Duration::from_nanos(1), LONGEST + Duration::from_nanos(1), Duration::MAX] {
        assert_eq!(publish(PublishSpec::default().deadline(odd)), REFUSED);
        assert_eq!(consumer(ConsumerSpec::default().handler_timeout(odd)), REFUSED);
        assert_eq!(consumer(ConsumerSpec::default().settlement_deadline(odd)), REFUSED);
    }
    for fine in [Duration::from_millis(1), LONGEST] {
        assert_eq!(publish(PublishSpec::default().deadline(fine)), NOTHING);
        assert_eq!(consumer(ConsumerSpec::default().handler_timeout(fine)), NOTHING);
    }
}

#[test]
fn counts_are_1_to_a_million() {
    for odd in [0, (1 << 20) + 1, u64::MAX] {
        assert_eq!(publish(PublishSpec::default().in_flight(odd)), REFUSED);
        assert_eq!(consumer(ConsumerSpec::default().concurrency(odd)), REFUSED);
        assert_eq!(consumer(ConsumerSpec::default().max_in_flight_per_ordering_unit(odd)), REFUSED);
    }
    for fine in [1, 1 << 20] {
        assert_eq!(publish(PublishSpec::default().in_flight(fine)), NOTHING);
        assert_eq!(consumer(ConsumerSpec::default().concurrency(fine)), NOTHING);
    }
}

#[test]
fn limits_are_at_least_1_or_none() {
    for odd in [Limit::At(0), Limit::At(1 << 32), Limit::At(u64::MAX)] {
        assert_eq!(consumer(ConsumerSpec::default().max_deliveries(odd)), REFUSED);
        assert_eq!(retry(|retry| retry.max_attempts(odd)), REFUSED);
    }
    for fine in [Limit::At(2), Limit::At(u32::MAX.into()), Limit::Unlimited] {
        assert_eq!(consumer(ConsumerSpec::default().max_deliveries(fine)), NOTHING);
        assert_eq!(retry(|retry| retry.max_attempts(fine)), NOTHING);
    }
}

#[test]
fn a_payload_limit_is_1_byte_to_1_gib() {
    let admission = AdmissionSpec::default().bytes(2 << 30);
    let limit = |bytes| {
        let spec = plain().publish(PublishSpec::default().max_payload(bytes));
        codes(&ProfileSpecs::new().with("orders", spec).admission(admission))
    };
    assert_eq!(limit(0), REFUSED);
    assert_eq!(limit((1 << 30) + 1), REFUSED);
    assert_eq!(limit(u64::MAX), REFUSED);
    assert_eq!(limit(1), NOTHING);
    assert_eq!(limit(1 << 30), NOTHING);
}

#[test]
fn delays_and_factors_that_are_no_numbers_are_refused() {
    for odd in [LONGEST + Duration::from_nanos(1), Duration::MAX] {
        assert_eq!(retry(|retry| retry.first(odd).max(LONGEST)), REFUSED);
        assert_eq!(retry(|retry| retry.max(odd)), REFUSED);
    }
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(retry(|retry| retry.multiplier(odd)), REFUSED);
        assert_eq!(retry(|retry| retry.jitter(odd)), REFUSED);
    }
    for odd in [-0.1, 1.1] {
        assert_eq!(retry(|retry| retry.jitter(odd)), REFUSED);
    }
    for fine in [0.0, 1.0] {
        assert_eq!(retry(|retry| retry.jitter(fine)), NOTHING);
    }
    assert_eq!(retry(|retry| retry.multiplier(f64::MAX)), NOTHING);
}

#[test]
fn every_value_out_of_range_is_reported_in_the_order_in_which_profiles_are_written() {
    let spec = ProfileSpec::new("no such", consign_core_api::DeliveryGuarantee::AtLeastOnce, Unordered)
        .key(KeySpec::header(""))
        .message_id(MessageIdSpec::Header("consign-id".into()))
        .publish(PublishSpec::default().deadline(Duration::ZERO).max_payload(0).in_flight(0))
        .consumer(ConsumerSpec::default().concurrency(0).handler_timeout(Duration::MAX).max_deliveries(0))
        .retry(RetrySpec::new(RetryStrategy::InPlace).max_attempts(0).jitter(2.0))
        .on_exhausted(OnExhausted::DeadLetter);
    let report = plan(&ProfileSpecs::new().with("a..b", spec)).unwrap_err();
    assert!(report.problems().iter().all(|problem| problem.code() == "FIELD_OUT_OF_RANGE"), "{report}");
    let fields: Vec<_> = report.problems().iter().map(|problem| problem.fields()[0].0.as_str()).collect();
    assert_eq!(
        fields,
        [
            "name",
            "transport",
            "key.header",
            "message_id.header",
            "publish.deadline",
            "publish.max_payload",
            "publish.in_flight",
            "consumer.concurrency",
            "consumer.handler_timeout",
            "consumer.max_deliveries",
            "retry.max_attempts",
            "retry.jitter",
            "on_exhausted"
        ]
    );
}

#[test]
fn rules_that_read_a_refused_value_are_skipped_and_others_are_not() {
    let spec = at_most_once(Destination)
        .consumer(ConsumerSpec::default().concurrency(0).extend(false).handler_timeout(Duration::MAX))
        .retry(RetrySpec::new(RetryStrategy::InPlace).max_attempts(0).first(Duration::MAX));
    assert_eq!(
        alone(spec),
        [
            "FIELD_OUT_OF_RANGE",
            "FIELD_OUT_OF_RANGE",
            "FIELD_OUT_OF_RANGE",
            "FIELD_OUT_OF_RANGE",
            "AT_MOST_ONCE_WITH_RETRY"
        ]
    );
}

#[test]
fn a_quorum_is_two_copies_at_least_and_a_single_one_is_the_leader() {
    let copies = |copies| publish(PublishSpec::default().evidence(EvidenceSpec::default().copies(copies)));
    for odd in [0, 1, 65_536, u64::MAX] {
        assert_eq!(copies(CopiesSpec::Quorum(odd)), REFUSED);
    }
    assert_eq!(copies(CopiesSpec::Leader), NOTHING);
    // A legal value, which this transport cannot give.
    assert_eq!(copies(CopiesSpec::QUORUM), ["CAPABILITY_UNAVAILABLE"]);
}

#[test]
fn evidence_of_what_is_not_confirmed_is_refused() {
    let unconfirmed = PublishSpec::default().confirmation(Confirm::None);
    assert_eq!(alone(at_most_once(Unordered).publish(unconfirmed.clone())), NOTHING);
    let demanding = unconfirmed.evidence(EvidenceSpec::default().copies(CopiesSpec::Leader));
    assert_eq!(alone(at_most_once(Unordered).publish(demanding)), REFUSED);
}

#[test]
fn transports_and_key_resolvers_are_bound_in_code() {
    let unbound = ProfileSpec::new("elsewhere", consign_core_api::DeliveryGuarantee::AtLeastOnce, Unordered);
    assert_eq!(alone(unbound.clone()), ["TRANSPORT_UNBOUND"]);
    let report = plan(&ProfileSpecs::new().with("orders", unbound)).unwrap_err();
    assert!(report.problems()[0].help().contains("main"), "{report}");
    assert_eq!(alone(plain().key(KeySpec::custom("unknown"))), ["KEY_RESOLVER_UNREGISTERED"]);
    assert_eq!(alone(plain().key(KeySpec::custom("tenant"))), NOTHING);
}

#[test]
fn a_name_that_was_added_twice_is_a_collision() {
    let specs = ProfileSpecs::new().with("orders", plain()).with("orders", at_least_once(Destination));
    assert_eq!(codes(&specs), ["PHYSICAL_NAME_COLLISION"]);
}

#[test]
fn the_end_of_a_message_follows_from_dead_letter_and_guarantee() {
    use OnExhausted::{DeadLetter, Discard, Halt};
    let ends = |orders: ProfileSpec| {
        let specs = ProfileSpecs::new().with("orders", orders).with("orders.dead", plain());
        plan(&specs).map(|plan| plan.profile(&name("orders")).unwrap().on_exhausted()).map_err(|r| r.codes())
    };
    let named = || plain().dead_letter("orders.dead");
    assert_eq!(ends(plain()), Ok(Halt));
    assert_eq!(ends(plain().on_exhausted(Halt)), Ok(Halt));
    assert_eq!(ends(plain().on_exhausted(Discard)), Ok(Discard));
    assert_eq!(ends(named()), Ok(DeadLetter));
    assert_eq!(ends(named().on_exhausted(DeadLetter)), Ok(DeadLetter));
    assert_eq!(ends(at_most_once(Unordered)), Ok(Discard));
    assert_eq!(ends(at_most_once(Unordered).on_exhausted(Discard)), Ok(Discard));
    for wrong in [
        plain().on_exhausted(DeadLetter),
        named().on_exhausted(Halt),
        named().on_exhausted(Discard),
        at_most_once(Unordered).on_exhausted(Halt),
        at_most_once(Unordered).on_exhausted(DeadLetter),
    ] {
        assert_eq!(ends(wrong).unwrap_err(), REFUSED);
    }
}

#[test]
fn a_retry_destination_names_none_of_what_its_origin_governs() {
    let rung = |rung: ProfileSpec| {
        let orders = plain().retry(RetrySpec::to("orders.retry")).dead_letter("orders.dead");
        let specs = ProfileSpecs::new().with("orders", orders).with("orders.retry", rung);
        codes(&specs.with("orders.dead", plain()))
    };
    assert_eq!(rung(plain()), NOTHING);
    assert_eq!(rung(plain().retry(RetrySpec::new(RetryStrategy::InPlace))), NOTHING);
    assert_eq!(rung(plain().dead_letter("orders.dead")), REFUSED);
    assert_eq!(rung(plain().on_exhausted(OnExhausted::Halt)), REFUSED);
    assert_eq!(rung(plain().retry(RetrySpec::new(RetryStrategy::InPlace).max_attempts(3))), REFUSED);
    assert_eq!(rung(at_most_once(Unordered)), REFUSED);
}

#[test]
fn a_dead_letter_confirms_its_copies() {
    let dead = |confirm| {
        let dead = at_most_once(Unordered).publish(PublishSpec::default().confirmation(confirm));
        codes(
            &ProfileSpecs::new().with("orders", plain().dead_letter("orders.dead")).with("orders.dead", dead),
        )
    };
    assert_eq!(dead(Confirm::Required), NOTHING);
    assert_eq!(dead(Confirm::None), REFUSED);
}

#[test]
fn shared_limits_are_checked_one_by_one_and_together() {
    let shared = |spec| codes(&ProfileSpecs::new().admission(spec));
    let usual = AdmissionSpec::default;
    assert_eq!(shared(usual()), NOTHING);
    for odd in [
        usual().in_flight(0),
        usual().in_flight(u64::MAX),
        usual().bytes(0),
        usual().bytes(u64::MAX),
        usual().wait(Duration::MAX),
        usual().internal_share(-0.1),
        usual().internal_share(1.0),
        usual().internal_share(f64::NAN),
        usual().in_flight(1).internal_share(0.5),
    ] {
        assert_eq!(shared(odd), REFUSED, "{odd:?}");
    }
    assert_eq!(shared(usual().in_flight(0).bytes(0).wait(Duration::MAX).internal_share(2.0)).len(), 4);
    assert_eq!(shared(usual().wait(Duration::ZERO).internal_share(0.0)), NOTHING);
}
