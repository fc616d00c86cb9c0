//! Profiles that are wrong in many ways at once, and what the report looks like.

use std::time::Duration;

use consign_core_api::ExternalSideEffectGuarantee::InboxTransactional;
use consign_core_api::OrderingScope::{Destination, Key};
use consign_core_api::error::Phase;
use consign_core_api::spi::{Confirm, OrderImpact, RetryStrategy};
use consign_policy::{ConsumerSpec, MessageIdSpec, ProfileSpec, ProfileSpecs, PublishSpec, RetrySpec};

use super::support::{at_least_once, at_most_once, codes, plain, plan};

/// Breaks the eleven rules that can be broken together.
fn eleven() -> ProfileSpec {
    at_most_once(Destination)
        .side_effects(InboxTransactional)
        .message_id(MessageIdSpec::None)
        .dead_letter("other")
        .consumer(
            ConsumerSpec::default()
                .concurrency(4)
                .max_in_flight_per_ordering_unit(2)
                .extend(false)
                .settlement_deadline(Duration::from_secs(30)),
        )
        .retry(
            RetrySpec::new(RetryStrategy::InPlace)
                .impact(OrderImpact::AllowReorder)
                .max_attempts(1)
                .first(Duration::ZERO)
                .destination("other"),
        )
}

const ELEVEN: [&str; 11] = [
    "ORDERED_WITH_REORDERING_RETRY",
    "RETRY_DESTINATION_UNUSED",
    "RETRY_ATTEMPTS_CONTRADICT_STRATEGY",
    "BACKOFF_INVALID",
    "AT_MOST_ONCE_WITH_RETRY",
    "AT_MOST_ONCE_WITH_INBOX",
    "DESTINATION_ORDERING_WITH_CONCURRENCY",
    "ORDERED_WITH_UNIT_CONCURRENCY",
    "IN_PLACE_HOLD_EXCEEDS_SETTLEMENT_DEADLINE",
    "INBOX_WITHOUT_MESSAGE_IDENTITY",
    "AT_MOST_ONCE_WITH_DEAD_LETTER",
];

#[test]
fn eleven_contradictions_of_one_profile_are_reported_in_the_order_of_the_rules() {
    assert_eq!(codes(&ProfileSpecs::new().with("orders", eleven()).with("other", plain())), ELEVEN);
}

#[test]
fn all_fifteen_are_reported_over_three_profiles_by_name_and_rule() {
    let third_and_fourth = plain().retry(RetrySpec::new(RetryStrategy::RetryDestination));
    let first_and_tenth = at_least_once(Key).publish(PublishSpec::default().confirmation(Confirm::None));
    let specs = ProfileSpecs::new()
        .with("b", eleven())
        .with("other", plain())
        .with("a", third_and_fourth)
        .with("c", first_and_tenth);
    let mut expected = vec!["PRESERVE_WITH_REPUBLISHING_RETRY", "RETRY_DESTINATION_MISSING"];
    expected.extend(ELEVEN);
    expected.extend(["KEY_ORDERING_WITHOUT_KEY_RESOLVER", "AT_LEAST_ONCE_WITHOUT_CONFIRMATION"]);
    assert_eq!(codes(&specs), expected);
    let mut all = expected.clone();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 15);
}

#[test]
fn problems_come_by_phase_then_destination_then_rule() {
    let specs = ProfileSpecs::new()
        .with("z", plain().publish(PublishSpec::default().in_flight(0)).dead_letter("nowhere"))
        .with("a", eleven())
        .with("other", at_least_once(Key));
    let report = plan(&specs).unwrap_err();
    let order: Vec<_> =
        report.problems().iter().map(|p| (p.phase(), p.destination().unwrap_or(""), p.rank())).collect();
    let mut sorted = order.clone();
    sorted.sort();
    assert_eq!(order, sorted);
    assert_eq!(order.first().map(|first| (first.0, first.1)), Some((Phase::Fields, "z")));
    assert_eq!(order.last().map(|last| last.0), Some(Phase::Topology));
}

#[test]
fn every_problem_names_its_fields_with_their_values_and_says_what_to_change() {
    let specs = ProfileSpecs::new().with("orders", eleven()).with("other", plain());
    for problem in plan(&specs).unwrap_err().problems() {
        assert!(!problem.fields().is_empty(), "{problem}");
        assert!(!problem.help().is_empty(), "{problem}");
        assert_eq!(problem.destination(), Some("orders"));
    }
}

#[test]
fn a_problem_reads_as_it_was_written() {
    let copies = RetrySpec::new(RetryStrategy::RetryDestination).destination("orders.retry");
    let specs = ProfileSpecs::new().with("orders", plain().retry(copies)).with("orders.retry", plain());
    assert_eq!(
        plan(&specs).unwrap_err().to_string(),
        "error[PRESERVE_WITH_REPUBLISHING_RETRY]: destination \"orders\": the order is to be preserved and the \
         message is published again behind others (retry.impact = PRESERVE, retry.strategy = RETRY_DESTINATION)\n  \
         help: IN_PLACE keeps the order; or accept reordering with impact = ALLOW_REORDER and ordering = NONE"
    );
}

#[test]
fn codes_are_unique_and_each_has_cause_and_fix() {
    let table = consign_policy::codes::TABLE;
    let mut names: Vec<_> = table.iter().map(|entry| entry.code.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), table.len());
    assert!(table.iter().all(|entry| !entry.cause.is_empty() && !entry.fix.is_empty()));
}
