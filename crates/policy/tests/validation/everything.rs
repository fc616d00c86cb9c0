//! Whatever is written, validation ends, does not panic, and its report is in order.

use std::time::Duration;

use consign_core_api::OrderingScope::{Destination, Key, None as Unordered, Partition};
use consign_core_api::spi::{Confirm, OrderImpact, RetryStrategy};
use consign_core_api::{DeliveryGuarantee, ExternalSideEffectGuarantee, SettlementLevel};
use consign_policy::{
    AdmissionSpec, ConsumerSpec, CopiesSpec, EvidenceSpec, KeySpec, Limit, MessageIdSpec, OnExhausted,
    ProfileSpec, ProfileSpecs, PublishSpec, RetrySpec,
};
use proptest::prelude::*;

use super::support::plan;

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::from_nanos(1)),
        Just(Duration::from_millis(1)),
        (1_u64..100_000).prop_map(Duration::from_millis),
        Just(consign_core_api::time::LONGEST),
        Just(Duration::MAX),
    ]
}

fn count() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        1_u64..10,
        Just(u64::from(u32::MAX)),
        Just(u64::from(u32::MAX) + 1),
        Just(u64::MAX),
        any::<u64>()
    ]
}

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![Just(Limit::Unlimited), count().prop_map(Limit::At)]
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        Just(0.5),
        Just(1.0),
        Just(1.0 + f64::EPSILON),
        Just(2.0),
        Just(f64::MAX),
        Just(f64::NAN),
        Just(f64::INFINITY),
        any::<f64>()
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![8 => "[a-d]", 1 => Just(String::new()), 1 => Just("a..b".to_owned()), 1 => ".{0,3}"]
}

fn publish() -> impl Strategy<Value = PublishSpec> {
    let copies = prop_oneof![Just(CopiesSpec::Leader), count().prop_map(CopiesSpec::Quorum)];
    let confirm = prop_oneof![3 => Just(Confirm::Required), 1 => Just(Confirm::None)];
    (confirm, duration(), prop::option::of(count()), count(), prop::option::of(copies)).prop_map(
        |(confirm, deadline, payload, in_flight, copies)| {
            let mut spec =
                PublishSpec::default().confirmation(confirm).deadline(deadline).in_flight(in_flight);
            spec.max_payload = payload;
            match copies {
                Some(copies) => spec.evidence(EvidenceSpec::default().copies(copies)),
                None => spec,
            }
        },
    )
}

fn consumer() -> impl Strategy<Value = ConsumerSpec> {
    let level = prop_oneof![Just(SettlementLevel::Processed), Just(SettlementLevel::Committed)];
    (prop::option::of(count()), count(), duration(), duration(), any::<bool>(), limit(), level).prop_map(
        |(concurrency, unit, timeout, deadline, extend, deliveries, level)| {
            let mut spec = ConsumerSpec::default()
                .max_in_flight_per_ordering_unit(unit)
                .handler_timeout(timeout)
                .settlement_deadline(deadline)
                .extend(extend)
                .max_deliveries(deliveries)
                .settlement(level);
            spec.concurrency = concurrency;
            spec
        },
    )
}

fn retry() -> impl Strategy<Value = RetrySpec> {
    let strategy = prop_oneof![
        Just(RetryStrategy::None),
        Just(RetryStrategy::InPlace),
        Just(RetryStrategy::Redelivery),
        Just(RetryStrategy::BrokerDelayed),
        Just(RetryStrategy::RetryDestination)
    ];
    let impact = prop_oneof![Just(OrderImpact::Preserve), Just(OrderImpact::AllowReorder)];
    let delays = (duration(), duration(), number(), number());
    (strategy, impact, prop::option::of(limit()), delays, prop::option::of(name())).prop_map(
        |(strategy, impact, attempts, (first, max, multiplier, jitter), destination)| {
            let mut spec = RetrySpec::new(strategy)
                .impact(impact)
                .first(first)
                .max(max)
                .multiplier(multiplier)
                .jitter(jitter);
            spec.max_attempts = attempts;
            spec.destination = destination;
            spec
        },
    )
}

fn profile() -> impl Strategy<Value = ProfileSpec> {
    let transport = prop_oneof![5 => Just("main".to_owned()), 1 => ".{0,3}"];
    let delivery = prop_oneof![Just(DeliveryGuarantee::AtMostOnce), Just(DeliveryGuarantee::AtLeastOnce)];
    let ordering = prop_oneof![Just(Unordered), Just(Destination), Just(Partition), Just(Key)];
    let effects = prop_oneof![
        Just(ExternalSideEffectGuarantee::None),
        Just(ExternalSideEffectGuarantee::InboxTransactional)
    ];
    let key = prop_oneof![
        Just(KeySpec::message()),
        ".{0,3}".prop_map(KeySpec::header),
        ".{0,3}".prop_map(KeySpec::json_pointer),
        ".{0,3}".prop_map(KeySpec::custom)
    ];
    let id = prop_oneof![
        Just(MessageIdSpec::Generate),
        Just(MessageIdSpec::None),
        ".{0,3}".prop_map(MessageIdSpec::Header)
    ];
    let end = prop_oneof![Just(OnExhausted::DeadLetter), Just(OnExhausted::Discard), Just(OnExhausted::Halt)];
    let asks = (transport, delivery, ordering, effects, prop::option::of(key), id);
    (asks, publish(), consumer(), retry(), prop::option::of(name()), prop::option::of(end)).prop_map(
        |((transport, delivery, ordering, effects, key, id), publish, consumer, retry, dead, end)| {
            let mut spec = ProfileSpec::new(transport, delivery, ordering)
                .side_effects(effects)
                .message_id(id)
                .publish(publish)
                .consumer(consumer)
                .retry(retry);
            (spec.key, spec.dead_letter, spec.on_exhausted) = (key, dead, end);
            spec
        },
    )
}

fn admission() -> impl Strategy<Value = AdmissionSpec> {
    let wild = (count(), count(), duration(), number()).prop_map(|(in_flight, bytes, wait, share)| {
        AdmissionSpec::default().in_flight(in_flight).bytes(bytes).wait(wait).internal_share(share)
    });
    prop_oneof![Just(AdmissionSpec::default()), wild]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn validation_never_panics_and_its_report_is_in_order(
        profiles in prop::collection::btree_map(name(), profile(), 0..5),
        admission in admission(),
    ) {
        let specs = profiles.into_iter().fold(ProfileSpecs::new(), |all, (name, spec)| all.with(name, spec));
        let planned = plan(&specs.admission(admission));
        if let Err(report) = planned {
            let order: Vec<_> = report
                .problems()
                .iter()
                .map(|problem| (problem.phase(), problem.destination().map(str::to_owned), problem.rank()))
                .collect();
            prop_assert!(order.is_sorted(), "{report}");
        }
    }

    #[test]
    fn extremes_of_one_profile_never_panic(spec in profile()) {
        let _ = plan(&ProfileSpecs::new().with("a", spec));
    }
}
