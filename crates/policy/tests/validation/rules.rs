//! Each of the fifteen rules: what breaks it alone, and the nearest profile that does not.

use std::time::Duration;

use consign_core_api::ExternalSideEffectGuarantee::InboxTransactional;
use consign_core_api::OrderingScope::{Destination, Key, None as Unordered, Partition};
use consign_core_api::spi::RetryStrategy::{
    BrokerDelayed, InPlace, None as NoRetry, Redelivery, RetryDestination,
};
use consign_core_api::spi::{Confirm, OrderImpact};
use consign_policy::{
    ConsumerSpec, KeySpec, Limit, MessageIdSpec, ProfileSpec, ProfileSpecs, PublishSpec, RetrySpec,
};

use super::support::{alone, at_least_once, at_most_once, codes, plain};

const NOTHING: [&str; 0] = [];

fn retry(strategy: consign_core_api::spi::RetryStrategy) -> RetrySpec {
    RetrySpec::new(strategy)
}

fn with_rung(orders: ProfileSpec) -> Vec<&'static str> {
    codes(&ProfileSpecs::new().with("orders", orders).with("orders.retry", plain()))
}

#[test]
fn rule_1_a_key_order_needs_a_key() {
    assert_eq!(alone(at_least_once(Key)), ["KEY_ORDERING_WITHOUT_KEY_RESOLVER"]);
    for source in [
        KeySpec::message(),
        KeySpec::header("tenant"),
        KeySpec::json_pointer("/id"),
        KeySpec::custom("tenant"),
    ] {
        assert_eq!(alone(at_least_once(Key).key(source)), NOTHING);
    }
    assert_eq!(alone(at_least_once(Partition)), NOTHING);
}

#[test]
fn rule_2_an_order_forbids_a_retry_that_reorders() {
    let reordering = || retry(InPlace).impact(OrderImpact::AllowReorder);
    for ordering in [Destination, Partition] {
        assert_eq!(alone(at_least_once(ordering).retry(reordering())), ["ORDERED_WITH_REORDERING_RETRY"]);
    }
    let keyed = at_least_once(Key).key(KeySpec::message());
    assert_eq!(alone(keyed.retry(reordering())), ["ORDERED_WITH_REORDERING_RETRY"]);
    assert_eq!(alone(at_least_once(Unordered).retry(reordering())), NOTHING);
    assert_eq!(alone(at_least_once(Partition).retry(retry(InPlace))), NOTHING);
}

#[test]
fn rule_2_does_not_apply_without_a_strategy() {
    assert_eq!(
        alone(at_least_once(Partition).retry(retry(NoRetry).impact(OrderImpact::AllowReorder))),
        NOTHING
    );
}

#[test]
fn rule_3_publishing_again_preserves_no_order() {
    assert_eq!(alone(plain().retry(retry(BrokerDelayed))), ["PRESERVE_WITH_REPUBLISHING_RETRY"]);
    let copies = || retry(RetryDestination).destination("orders.retry");
    assert_eq!(with_rung(plain().retry(copies())), ["PRESERVE_WITH_REPUBLISHING_RETRY"]);
    assert_eq!(with_rung(plain().retry(copies().impact(OrderImpact::AllowReorder))), NOTHING);
    assert_eq!(alone(plain().retry(retry(BrokerDelayed).impact(OrderImpact::AllowReorder))), NOTHING);
    assert_eq!(alone(plain().retry(retry(Redelivery))), NOTHING);
}

#[test]
fn rule_4_a_retry_by_copies_names_a_destination() {
    let copies = retry(RetryDestination).impact(OrderImpact::AllowReorder);
    assert_eq!(alone(plain().retry(copies.clone())), ["RETRY_DESTINATION_MISSING"]);
    assert_eq!(with_rung(plain().retry(copies.destination("orders.retry"))), NOTHING);
}

#[test]
fn rule_5_a_retry_destination_is_used() {
    for strategy in [InPlace, Redelivery, NoRetry] {
        let unused = plain().retry(retry(strategy).destination("orders.retry"));
        assert_eq!(with_rung(unused), ["RETRY_DESTINATION_UNUSED"]);
    }
    assert_eq!(with_rung(plain().retry(RetrySpec::to("orders.retry"))), NOTHING);
}

#[test]
fn rule_6_attempts_and_strategy_agree() {
    let broken = ["RETRY_ATTEMPTS_CONTRADICT_STRATEGY"];
    assert_eq!(alone(plain().retry(retry(NoRetry).max_attempts(2))), broken);
    assert_eq!(alone(plain().retry(retry(NoRetry).max_attempts(Limit::Unlimited))), broken);
    assert_eq!(alone(plain().retry(retry(InPlace).max_attempts(1))), broken);
    assert_eq!(alone(plain().retry(retry(NoRetry).max_attempts(1))), NOTHING);
    assert_eq!(alone(plain().retry(retry(InPlace).max_attempts(2))), NOTHING);
    assert_eq!(alone(plain().retry(retry(InPlace).max_attempts(Limit::Unlimited))), NOTHING);
    assert_eq!(alone(plain().retry(retry(InPlace))), NOTHING);
}

#[test]
fn rule_7_delays_start_above_zero_and_do_not_shrink() {
    let second = Duration::from_secs(1);
    for wrong in [
        retry(InPlace).first(second + Duration::from_nanos(1)).max(second),
        retry(InPlace).first(Duration::ZERO),
        retry(InPlace).multiplier(0.99),
        retry(InPlace).multiplier(-2.0),
    ] {
        assert_eq!(alone(plain().retry(wrong.clone())), ["BACKOFF_INVALID"], "{wrong:?}");
    }
    for right in [
        retry(InPlace).first(second).max(second),
        retry(InPlace).first(Duration::from_nanos(1)),
        retry(InPlace).multiplier(1.0),
        retry(NoRetry).first(Duration::ZERO).multiplier(0.1),
    ] {
        assert_eq!(alone(plain().retry(right.clone())), NOTHING, "{right:?}");
    }
}

#[test]
fn rule_8_what_is_handled_once_at_most_is_not_retried() {
    assert_eq!(alone(at_most_once(Unordered).retry(retry(InPlace))), ["AT_MOST_ONCE_WITH_RETRY"]);
    assert_eq!(alone(at_most_once(Unordered)), NOTHING);
    assert_eq!(alone(at_least_once(Unordered).retry(retry(InPlace))), NOTHING);
}

#[test]
fn rule_9_an_inbox_commits_before_the_settlement() {
    assert_eq!(alone(at_most_once(Unordered).side_effects(InboxTransactional)), ["AT_MOST_ONCE_WITH_INBOX"]);
    assert_eq!(alone(at_least_once(Unordered).side_effects(InboxTransactional)), NOTHING);
    let idempotent = consign_core_api::ExternalSideEffectGuarantee::IdempotencyRequired;
    assert_eq!(alone(at_most_once(Unordered).side_effects(idempotent)), NOTHING);
}

#[test]
fn rule_10_what_is_never_lost_is_confirmed() {
    let unconfirmed = || PublishSpec::default().confirmation(Confirm::None);
    let broken = ["AT_LEAST_ONCE_WITHOUT_CONFIRMATION"];
    assert_eq!(alone(at_least_once(Unordered).publish(unconfirmed())), broken);
    assert_eq!(alone(at_most_once(Unordered).publish(unconfirmed())), NOTHING);
}

#[test]
fn rules_11_and_12_are_a_pair_of_which_each_stands_alone() {
    let consumer = |concurrency, unit| {
        ConsumerSpec::default().concurrency(concurrency).max_in_flight_per_ordering_unit(unit)
    };
    let destination =
        |concurrency, unit| alone(at_least_once(Destination).consumer(consumer(concurrency, unit)));
    assert_eq!(destination(4, 1), ["DESTINATION_ORDERING_WITH_CONCURRENCY"]);
    assert_eq!(destination(1, 2), ["ORDERED_WITH_UNIT_CONCURRENCY"]);
    assert_eq!(destination(2, 2), ["DESTINATION_ORDERING_WITH_CONCURRENCY", "ORDERED_WITH_UNIT_CONCURRENCY"]);
    assert_eq!(destination(1, 1), NOTHING);
    assert_eq!(alone(at_least_once(Partition).consumer(consumer(4, 1))), NOTHING);
    assert_eq!(alone(at_least_once(Partition).consumer(consumer(4, 2))), ["ORDERED_WITH_UNIT_CONCURRENCY"]);
    assert_eq!(alone(at_least_once(Unordered).consumer(consumer(4, 2))), NOTHING);
}

#[test]
fn a_minimal_profile_of_every_order_is_legal() {
    assert_eq!(alone(at_least_once(Destination)), NOTHING);
    assert_eq!(alone(at_least_once(Partition)), NOTHING);
    assert_eq!(alone(at_least_once(Key).key(KeySpec::message())), NOTHING);
}

#[test]
fn rule_13_a_hold_in_place_ends_before_the_settlement_deadline() {
    // Three attempts of one second, and delays of 1 s and 2 s: 6 s.
    let held = |deadline, extend, strategy| {
        let consumer = ConsumerSpec::default()
            .handler_timeout(Duration::from_secs(1))
            .settlement_deadline(deadline)
            .extend(extend);
        alone(plain().consumer(consumer).retry(retry(strategy).max_attempts(3).first(Duration::from_secs(1))))
    };
    let (six, more) = (Duration::from_secs(6), Duration::from_nanos(6_000_000_001));
    assert_eq!(held(six, false, InPlace), ["IN_PLACE_HOLD_EXCEEDS_SETTLEMENT_DEADLINE"]);
    assert_eq!(held(more, false, InPlace), NOTHING);
    assert_eq!(held(six, true, InPlace), NOTHING);
    assert_eq!(held(six, false, Redelivery), NOTHING);
}

#[test]
fn rule_13_attempts_without_end_need_extension() {
    let endless = retry(InPlace).max_attempts(Limit::Unlimited);
    let profile = |extend| plain().retry(endless.clone()).consumer(ConsumerSpec::default().extend(extend));
    assert_eq!(alone(profile(false)), ["IN_PLACE_HOLD_EXCEEDS_SETTLEMENT_DEADLINE"]);
    assert_eq!(alone(profile(true)), NOTHING);
}

#[test]
fn rule_14_an_inbox_needs_message_ids() {
    let inbox = |id| plain().side_effects(InboxTransactional).message_id(id);
    assert_eq!(alone(inbox(MessageIdSpec::None)), ["INBOX_WITHOUT_MESSAGE_IDENTITY"]);
    for id in [MessageIdSpec::Generate, MessageIdSpec::Native, MessageIdSpec::Header("order-id".into())] {
        assert_eq!(alone(inbox(id)), NOTHING);
    }
    assert_eq!(alone(plain().message_id(MessageIdSpec::None)), NOTHING);
}

#[test]
fn rule_15_what_is_handled_once_at_most_has_no_dead_letter() {
    let with_dead = |orders: ProfileSpec| {
        codes(
            &ProfileSpecs::new()
                .with("orders", orders.dead_letter("orders.dead"))
                .with("orders.dead", plain()),
        )
    };
    assert_eq!(with_dead(at_most_once(Unordered)), ["AT_MOST_ONCE_WITH_DEAD_LETTER"]);
    assert_eq!(with_dead(at_least_once(Unordered)), NOTHING);
}
