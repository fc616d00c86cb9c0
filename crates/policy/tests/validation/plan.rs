//! What a plan holds, and whom it asks.

use std::sync::{Arc, Mutex};

use consign_core_api::error::Phase;
use consign_core_api::spi::{DestinationSetup, RetryStrategy, TopologyMode};
use consign_core_api::{Code, MaxPayload, OrderingScope, Problem};
use consign_policy::{
    AdmissionSpec, ConsumerSpec, KeySource, KeySpec, MessageIdSource, ProfileSpec, ProfileSpecs, PublishSpec,
    RetrySpec,
};

use super::support::{Fake, able, at_least_once, catalog, codes, codes_of, name, plain, plan};

const NOTHING: [&str; 0] = [];
const MIB: u64 = 1 << 20;
const HEADERS: u64 = 4 << 10;

#[test]
fn a_minimal_profile_gets_every_default() {
    let plan = plan(&ProfileSpecs::new().with("orders", plain())).unwrap();
    let profile = plan.profile(&name("orders")).unwrap();
    let mut expected = DestinationSetup::new(
        name("orders"),
        consign_core_api::DeliveryGuarantee::AtLeastOnce,
        OrderingScope::None,
    );
    expected.topology = TopologyMode::Verify;
    assert_eq!(profile.setup(), &expected);
    assert_eq!((profile.key(), profile.message_id()), (&KeySource::None, &MessageIdSource::Generate));
    assert_eq!((profile.name().as_str(), profile.transport().as_str()), ("orders", "main"));
    assert_eq!(profile.dead_letter(), None);
    assert_eq!((plan.admission().in_flight().get(), plan.admission().bytes().get()), (4096, 256 << 20));
    assert!(plan.capabilities(&name("orders")).is_some());
    assert!(plan.profile(&name("other")).is_none() && plan.capabilities(&name("other")).is_none());
}

#[test]
fn profiles_come_in_the_order_of_their_names() {
    let specs = ["b", "a", "c.d", "c"].iter().fold(ProfileSpecs::new(), |all, name| all.with(*name, plain()));
    let plan = plan(&specs).unwrap();
    let names: Vec<_> = plan.profiles().map(|profile| profile.name().as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "c.d"]);
}

#[test]
fn what_is_written_reaches_the_adapter() {
    let spec = at_least_once(OrderingScope::Key)
        .key(KeySpec::json_pointer("/id"))
        .publish(PublishSpec::default().in_flight(7).max_payload(99))
        .consumer(ConsumerSpec::default().concurrency(3).extend(false))
        .retry(RetrySpec::new(RetryStrategy::Redelivery).max_attempts(4).jitter(0.5));
    let plan = plan(&ProfileSpecs::new().with("orders", spec)).unwrap();
    let profile = plan.profile(&name("orders")).unwrap();
    let setup = profile.setup();
    assert!(matches!(profile.key(), KeySource::JsonPointer(pointer) if pointer.as_str() == "/id"));
    assert_eq!((setup.publish.in_flight.get(), setup.publish.max_payload.get()), (7, 99));
    assert_eq!((setup.consumer.concurrency.get(), setup.consumer.extend), (3, false));
    assert_eq!(setup.retry.strategy, RetryStrategy::Redelivery);
    assert_eq!((setup.retry.max_attempts.unwrap().get(), setup.retry.jitter), (4, 0.5));
}

/// Writes down whom it was asked about.
fn listening(faulty: &'static str) -> (Fake, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (validated, negotiated) = (asked.clone(), asked.clone());
    let fake = Fake {
        faults: Box::new(move |setup| {
            validated.lock().unwrap().push(format!("validate {}", setup.name));
            let fault = || Problem::new(Phase::Broker, Code::new("FAKE_FAULT"), "no", "yes").at(&setup.name);
            if setup.name.as_str() == faulty { vec![fault(), fault()] } else { Vec::new() }
        }),
        capabilities: Box::new(move |setup| {
            negotiated.lock().unwrap().push(format!("capabilities {}", setup.name));
            able(setup).build()
        }),
        ..Fake::able()
    };
    (fake, asked)
}

#[test]
fn brokers_rules_look_at_legal_values_and_capabilities_at_what_they_found_no_fault_with() {
    let (fake, asked) = listening("faulty");
    let specs = ProfileSpecs::new()
        .with("faulty", plain())
        .with("fine", plain())
        .with("illegal", plain().publish(PublishSpec::default().in_flight(0)))
        .with("contradictory", at_least_once(OrderingScope::Key));
    let report = consign_policy::plan(&specs, &catalog(fake)).unwrap_err();
    assert_eq!(
        report.codes(),
        ["FIELD_OUT_OF_RANGE", "KEY_ORDERING_WITHOUT_KEY_RESOLVER", "FAKE_FAULT", "FAKE_FAULT"]
    );
    let mut asked = asked.lock().unwrap().clone();
    asked.sort();
    assert_eq!(
        asked,
        [
            "capabilities contradictory",
            "capabilities fine",
            "validate contradictory",
            "validate faulty",
            "validate fine"
        ]
    );
}

#[test]
fn two_destinations_with_one_physical_name_collide() {
    let partitioned = |setup: &DestinationSetup| match setup.name.as_str() {
        "orders" => vec!["orders.p0".to_owned(), "orders.p1".to_owned()],
        _ => Vec::new(),
    };
    let fake = || Fake { names: Box::new(partitioned), ..Fake::able() };
    let specs = |other: &str| ProfileSpecs::new().with("orders", plain()).with(other, plain());
    let refused = consign_policy::plan(&specs("orders.p1"), &catalog(fake()));
    assert!(refused.as_ref().unwrap_err().to_string().contains("\"orders.p1\""));
    assert_eq!(codes_of(refused), ["PHYSICAL_NAME_COLLISION"]);
    assert!(consign_policy::plan(&specs("orders.p2"), &catalog(fake())).is_ok());
}

fn limited(bytes: u64) -> ProfileSpec {
    plain().publish(PublishSpec::default().max_payload(bytes))
}

fn payload(specs: &ProfileSpecs, of: &str) -> u64 {
    let plan = plan(specs).unwrap();
    plan.profile(&name(of)).unwrap().setup().publish.max_payload.get() as u64
}

#[test]
fn a_dead_letter_takes_its_largest_origins_messages_and_4_kib_of_headers() {
    let specs = |dead: ProfileSpec| {
        ProfileSpecs::new()
            .with("a", limited(MIB).dead_letter("z.dead"))
            .with("b", limited(2 * MIB).dead_letter("z.dead"))
            .with("c", limited(9).dead_letter("z.dead"))
            .with("z.dead", dead)
    };
    assert_eq!(payload(&specs(plain()), "z.dead"), 2 * MIB + HEADERS);
    assert_eq!(payload(&specs(limited(3 * MIB)), "z.dead"), 3 * MIB);
    assert_eq!(payload(&specs(limited(2 * MIB + HEADERS)), "z.dead"), 2 * MIB + HEADERS);
    let refused = plan(&specs(limited(2 * MIB + HEADERS - 1))).unwrap_err();
    assert_eq!(refused.codes(), ["FIELD_OUT_OF_RANGE"]);
    assert_eq!(
        (refused.problems()[0].destination(), refused.problems()[0].phase()),
        (Some("z.dead"), Phase::Topology)
    );
}

#[test]
fn copies_of_copies_fit_too_whatever_the_order_of_the_names() {
    let specs = ProfileSpecs::new()
        .with("z", limited(MIB).dead_letter("m"))
        .with("m", plain().dead_letter("a"))
        .with("a", plain());
    assert_eq!(payload(&specs, "m"), MIB + HEADERS);
    assert_eq!(payload(&specs, "a"), MIB + 2 * HEADERS);
    let rung = ProfileSpecs::new()
        .with("orders", limited(MIB).retry(RetrySpec::to("orders.retry")))
        .with("orders.retry", plain());
    assert_eq!(payload(&rung, "orders.retry"), MIB + HEADERS);
}

#[test]
fn a_brokers_limit_below_a_dead_letters_need_is_refused() {
    let fake = Fake {
        capabilities: Box::new(|setup| able(setup).payload_limit(MaxPayload::default()).build()),
        ..Fake::able()
    };
    let specs = ProfileSpecs::new().with("a", plain().dead_letter("a.dead")).with("a.dead", plain());
    let report = consign_policy::plan(&specs, &catalog(fake)).unwrap_err();
    assert_eq!(report.codes(), ["CAPABILITY_UNAVAILABLE"]);
    assert_eq!(report.problems()[0].destination(), Some("a.dead"));
}

#[test]
fn a_message_that_could_never_be_admitted_is_refused() {
    let admission = AdmissionSpec::default().bytes(10 * MIB).internal_share(0.0);
    let specs = |bytes| ProfileSpecs::new().with("orders", limited(bytes)).admission(admission);
    assert_eq!(codes(&specs(10 * MIB)), NOTHING);
    assert_eq!(codes(&specs(10 * MIB + 1)), ["FIELD_OUT_OF_RANGE"]);
    let reserved = specs(10 * MIB).admission(admission.internal_share(0.5));
    assert_eq!(codes(&reserved), ["FIELD_OUT_OF_RANGE"]);
}

#[test]
fn a_dead_letter_of_the_largest_message_would_be_too_large() {
    let admission = AdmissionSpec::default().bytes(4 << 30);
    let specs = ProfileSpecs::new()
        .with("a", limited(1 << 30).dead_letter("a.dead"))
        .with("a.dead", plain())
        .admission(admission);
    assert_eq!(codes(&specs), ["FIELD_OUT_OF_RANGE"]);
}
