//! Profiles from text.

use std::time::Duration;

use consign_core_api::OrderingScope::Destination;
use consign_core_api::error::Phase;
use consign_core_api::outcome::{Basis, Persistence};
use consign_core_api::spi::{Confirm, NativeSettings, OrderImpact, RetryStrategy, Start, TopologyMode};
use consign_core_api::{DeliveryGuarantee, ExternalSideEffectGuarantee, OrderingScope, SettlementLevel};
use consign_policy::{
    AdmissionSpec, ConsumerSpec, CopiesSpec, EvidenceSpec, KeySpec, Limit, MessageIdSpec, OnExhausted,
    ProfileSpec, ProfileSpecs, PublishSpec, RetrySpec,
};

use super::support::{at_least_once, codes, plain};

const WHOLE: &str = r#"
[admission]
in_flight = 4096
bytes = "256MiB"
wait = "1s"
internal_share = 0.1

[destinations.orders]
transport = "main"
topology = "declare"
delivery = "AT_LEAST_ONCE"
ordering = "KEY"
side_effects = "IDEMPOTENCY_REQUIRED"
key = { from = "message" }
message_id = { header = "order-id" }
publish  = { confirmation = "required", deadline = "2s", max_payload = "512KiB", in_flight = 10, evidence = { copies = "quorum", persistence = "flushed", basis = "observed" } }
consumer = { concurrency = 3, max_in_flight_per_ordering_unit = 1, handler_timeout = "10s", settlement_deadline = "2m", extend = false, start = "latest", max_deliveries = "unlimited", settlement = "committed" }
retry    = { strategy = "IN_PLACE", impact = "PRESERVE", max_attempts = 4, first = "10ms", max = "1s", multiplier = 1.5, jitter = 0.0 }
dead_letter = "orders.dead"
on_exhausted = "dead_letter"
[destinations.orders.native]
stream = "ORDERS"
partitions = 4
nested = { list = [1, 2.5, true], at = 2026-11-30 }

[destinations."orders.dead"]
transport = "main"
delivery = "AT_LEAST_ONCE"
ordering = "NONE"
"#;

fn whole_in_code() -> ProfileSpecs {
    let nested = serde_json::json!({ "list": [1, 2.5, true], "at": "2026-11-30" });
    let evidence = EvidenceSpec::default()
        .copies(CopiesSpec::QUORUM)
        .persistence(Persistence::Flushed)
        .basis(Basis::Observed);
    let orders = ProfileSpec::new("main", DeliveryGuarantee::AtLeastOnce, OrderingScope::Key)
        .topology(TopologyMode::Declare)
        .side_effects(ExternalSideEffectGuarantee::IdempotencyRequired)
        .key(KeySpec::message())
        .message_id(MessageIdSpec::Header("order-id".into()))
        .publish(
            PublishSpec::default()
                .confirmation(Confirm::Required)
                .deadline(Duration::from_secs(2))
                .max_payload(512 << 10)
                .in_flight(10)
                .evidence(evidence),
        )
        .consumer(
            ConsumerSpec::default()
                .concurrency(3)
                .max_in_flight_per_ordering_unit(1)
                .handler_timeout(Duration::from_secs(10))
                .settlement_deadline(Duration::from_secs(120))
                .extend(false)
                .start(Start::Latest)
                .max_deliveries(Limit::Unlimited)
                .settlement(SettlementLevel::Committed),
        )
        .retry(
            RetrySpec::new(RetryStrategy::InPlace)
                .impact(OrderImpact::Preserve)
                .max_attempts(4)
                .first(Duration::from_millis(10))
                .max(Duration::from_secs(1))
                .multiplier(1.5)
                .jitter(0.0),
        )
        .dead_letter("orders.dead")
        .on_exhausted(OnExhausted::DeadLetter)
        .native(
            NativeSettings::default().with("stream", "ORDERS").with("partitions", 4).with("nested", nested),
        );
    ProfileSpecs::new()
        .with("orders", orders)
        .with("orders.dead", plain())
        .admission(AdmissionSpec::default())
}

#[test]
fn every_field_that_can_be_written_is_read_as_if_written_in_code() {
    assert_eq!(ProfileSpecs::from_toml(WHOLE).unwrap(), whole_in_code());
}

fn one(fields: &str) -> Result<ProfileSpecs, consign_core_api::ConfigurationError> {
    ProfileSpecs::from_toml(&format!(
        "[destinations.orders]\ntransport = \"main\"\ndelivery = \"AT_LEAST_ONCE\"\nordering = \"DESTINATION\"\n{fields}\n"
    ))
}

#[test]
fn three_fields_are_a_profile_with_every_default() {
    let specs = one("").unwrap();
    assert_eq!(specs, ProfileSpecs::new().with("orders", at_least_once(Destination)));
    assert!(codes(&specs).is_empty());
}

#[test]
fn no_text_is_no_destination() {
    assert_eq!(ProfileSpecs::from_toml("").unwrap(), ProfileSpecs::new());
}

#[test]
fn copies_are_written_in_three_ways() {
    for (text, copies) in [
        ("\"leader\"", CopiesSpec::Leader),
        ("\"quorum\"", CopiesSpec::Quorum(2)),
        ("{ quorum = 3 }", CopiesSpec::Quorum(3)),
    ] {
        let specs = one(&format!("publish = {{ evidence = {{ copies = {text} }} }}")).unwrap();
        assert_eq!(specs.get("orders").unwrap().publish.evidence.copies, Some(copies));
    }
    for odd in ["\"all\"", "3", "{ quorum = 3, more = 1 }", "{ majority = 3 }", "{ quorum = -1 }", "{}"] {
        assert!(one(&format!("publish = {{ evidence = {{ copies = {odd} }} }}")).is_err(), "{odd}");
    }
}

#[test]
fn keys_and_ids_are_written_in_every_way() {
    for (text, key) in [
        ("{ from = \"message\" }", KeySpec::message()),
        ("{ header = \"x\" }", KeySpec::header("x")),
        ("{ json_pointer = \"/id\" }", KeySpec::json_pointer("/id")),
        ("{ custom = \"tenant\" }", KeySpec::custom("tenant")),
    ] {
        assert_eq!(one(&format!("key = {text}")).unwrap().get("orders").unwrap().key, Some(key));
    }
    for (text, id) in [
        ("\"generate\"", MessageIdSpec::Generate),
        ("\"native\"", MessageIdSpec::Native),
        ("\"none\"", MessageIdSpec::None),
        ("{ header = \"x\" }", MessageIdSpec::Header("x".into())),
    ] {
        assert_eq!(one(&format!("message_id = {text}")).unwrap().get("orders").unwrap().message_id, id);
    }
}

/// Asserts that a text is refused with the line alone.
fn refused_at(text: &str, line: &str) {
    let report = ProfileSpecs::from_toml(text).unwrap_err();
    let [problem] = report.problems() else { panic!("{report}") };
    assert_eq!((problem.code().as_str(), problem.phase()), ("PROFILE_SYNTAX", Phase::Syntax));
    assert_eq!(problem.fields(), [("line".to_owned(), line.to_owned())], "{report}");
}

#[test]
fn what_does_not_exist_is_refused_with_its_line_alone() {
    let head =
        "[destinations.orders]\ntransport = \"main\"\ndelivery = \"AT_LEAST_ONCE\"\nordering = \"NONE\"\n";
    for odd in [
        "colour = \"red\"",
        "publish = { colour = \"red\" }",
        "publish = { evidence = { colour = \"red\" } }",
        "consumer = { concurency = 1 }",
        "retry = { attempts = 3 }",
        "key = { colour = \"red\" }",
        "key = { from = \"nowhere\" }",
        "key = { header = \"a\", custom = \"b\" }",
        "message_id = \"random\"",
        "on_exhausted = \"retry\"",
        "side_effects = \"EXACTLY_ONCE\"",
        "retry = { strategy = \"in_place\" }",
        "retry = { max_attempts = \"many\" }",
        "retry = { max_attempts = -1 }",
        "publish = { deadline = 5 }",
        "publish = { deadline = \"5\" }",
        "publish = { in_flight = -1 }",
        "publish = { in_flight = 1.5 }",
        "publish = { max_payload = \"much\" }",
        "native = { share = nan }",
        "native = 5",
    ] {
        refused_at(&format!("{head}{odd}\n"), "5");
    }
    for (text, line) in [
        ("\n\n[transports.main]\nkind = \"nats\"", "3"),
        ("[admission]\nbites = 1", "2"),
        ("[destinations.orders]\ndelivery = \"EXACTLY_ONCE\"", "2"),
        ("[destinations.orders]\ntransport = \"main\"\nordering = \"GLOBAL\"", "3"),
        ("[destinations.orders]\ntransport = \"main\"\ntransport = \"other\"", "3"),
        ("[destinations.orders]\n[destinations.orders]", "2"),
        ("ok = [1, 2\n", "1"),
    ] {
        refused_at(text, line);
    }
}

#[test]
fn what_has_no_default_is_required() {
    for missing in ["transport", "delivery", "ordering"] {
        let text: String = ["transport = \"main\"", "delivery = \"AT_LEAST_ONCE\"", "ordering = \"NONE\""]
            .iter()
            .filter(|line| !line.starts_with(missing))
            .fold("[destinations.orders]\n".to_owned(), |text, line| text + line + "\n");
        let report = ProfileSpecs::from_toml(&text).unwrap_err();
        assert!(report.to_string().contains(missing), "{report}");
        refused_at(&text, "1");
    }
}

#[test]
fn a_text_cut_anywhere_is_read_or_refused_with_a_line() {
    for end in (0..WHOLE.len()).filter(|end| WHOLE.is_char_boundary(*end)) {
        if let Err(report) = ProfileSpecs::from_toml(&WHOLE[..end]) {
            let [problem] = report.problems() else { panic!("{report}") };
            assert_eq!(problem.code(), "PROFILE_SYNTAX");
            let line: usize = problem.fields()[0].1.parse().unwrap();
            assert!(line >= 1 && line <= 1 + WHOLE[..end].matches('\n').count(), "{report}");
        }
    }
}

#[test]
fn numbers_beyond_every_range_are_read_or_refused_and_then_reported() {
    for number in ["0", "1", "9223372036854775807"] {
        let fields = format!(
            "publish = {{ in_flight = {number}, max_payload = {number}, deadline = \"{number}ns\" }}\n\
             consumer = {{ concurrency = {number}, max_in_flight_per_ordering_unit = {number}, \
             max_deliveries = {number}, handler_timeout = \"{number}ns\", settlement_deadline = \"{number}ns\" }}\n\
             retry = {{ max_attempts = {number}, first = \"{number}ns\", max = \"{number}ns\", multiplier = {number}.0, \
             jitter = {number}.0 }}"
        );
        assert!(!codes(&one(&fields).unwrap()).is_empty());
    }
}
