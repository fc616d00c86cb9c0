//! Tables, and properties over all combinations.

use std::num::NonZeroU32;

use consign_core_api::capability::Ordering;
use consign_core_api::spi::{OrderImpact, RetrySetup};
use consign_core_api::{Attempt, Capabilities, DestinationName, FailureCategory, OrderingScope, Support};
use proptest::prelude::*;

use super::*;

const CATEGORIES: [FailureCategory; 5] = [
    FailureCategory::Configuration,
    FailureCategory::PermanentBusiness,
    FailureCategory::TransientInfrastructure,
    FailureCategory::Capacity,
    FailureCategory::Security,
];
const STRATEGIES: [RetryStrategy; 5] = [
    RetryStrategy::None,
    RetryStrategy::InPlace,
    RetryStrategy::Redelivery,
    RetryStrategy::BrokerDelayed,
    RetryStrategy::RetryDestination,
];
const SCOPES: [OrderingScope; 4] =
    [OrderingScope::None, OrderingScope::Destination, OrderingScope::Partition, OrderingScope::Key];
const RULES: [OnExhausted; 3] = [OnExhausted::DeadLetter, OnExhausted::Discard, OnExhausted::Halt];
const FIRST: Duration = Duration::from_millis(100);

fn name(text: &str) -> DestinationName {
    DestinationName::new(text).unwrap()
}

fn attempt(number: u32) -> Attempt {
    Attempt::new(number).unwrap()
}

fn capabilities(redelivery: bool, keeps_order: bool) -> Capabilities {
    let mut builder = Capabilities::builder(Ordering::Destination(Support::Native("".into())));
    if redelivery {
        builder = builder.native(Capability::Redelivery, "").native(Capability::DelayedRedelivery, "");
    }
    builder.redelivery_keeps_order(keeps_order).build()
}

fn retry(strategy: RetryStrategy, most: Option<u32>) -> RetrySetup {
    let mut retry = RetrySetup::default();
    retry.strategy = strategy;
    retry.max_attempts = most.and_then(NonZeroU32::new);
    retry.jitter = 0.0;
    if strategy == RetryStrategy::RetryDestination {
        retry.destination = Some(name("orders.retry"));
        retry.impact = OrderImpact::AllowReorder;
    }
    retry
}

fn setup(ordering: OrderingScope, retry: RetrySetup) -> DestinationSetup {
    let mut setup = DestinationSetup::new(name("orders"), DeliveryGuarantee::AtLeastOnce, ordering);
    setup.retry = retry;
    setup
}

/// A first transient failure at the origin, with a dead letter, on a broker that redelivers out of order.
struct Case {
    origin: DestinationSetup,
    rung: Option<DestinationSetup>,
    dead_letter: Option<DestinationName>,
    on_exhausted: OnExhausted,
    capabilities: Capabilities,
    category: FailureCategory,
    attempt: u32,
    delivery_count: Option<u32>,
    elapsed: Duration,
}

impl Case {
    fn new(ordering: OrderingScope, strategy: RetryStrategy) -> Self {
        Self {
            origin: setup(ordering, retry(strategy, Some(5))),
            rung: None,
            dead_letter: Some(name("orders.dead")),
            on_exhausted: OnExhausted::DeadLetter,
            capabilities: capabilities(true, false),
            category: FailureCategory::TransientInfrastructure,
            attempt: 1,
            delivery_count: None,
            elapsed: Duration::ZERO,
        }
    }

    fn origin(&self) -> Origin<'_> {
        Origin::new(&self.origin, self.dead_letter.as_ref(), self.on_exhausted)
    }

    fn here(&self) -> &DestinationSetup {
        self.rung.as_ref().unwrap_or(&self.origin)
    }

    fn decide(&self) -> RetryDecision {
        decide(&Situation {
            category: self.category,
            attempt: attempt(self.attempt),
            delivery_count: self.delivery_count,
            elapsed: self.elapsed,
            origin: self.origin(),
            here: self.here(),
            capabilities: &self.capabilities,
            random: 0.5,
        })
    }

    fn dead(&self, reason: Reason) -> RetryDecision {
        RetryDecision::DeadLetter(self.dead_letter.clone().unwrap(), reason)
    }
}

#[test]
fn without_order_each_strategy_is_followed() {
    use RetryDecision::{Redeliver, Republish, RetryInPlace};
    for (strategy, expected) in [
        (RetryStrategy::InPlace, RetryInPlace(FIRST)),
        (RetryStrategy::Redelivery, Redeliver(FIRST)),
        (RetryStrategy::BrokerDelayed, Redeliver(FIRST)),
        (RetryStrategy::RetryDestination, Republish(name("orders.retry"), FIRST)),
    ] {
        assert_eq!(Case::new(OrderingScope::None, strategy).decide(), expected, "{strategy:?}");
    }
    let none = Case::new(OrderingScope::None, RetryStrategy::None);
    assert_eq!(none.decide(), none.dead(Reason::NoRetry));
}

#[test]
fn an_ordered_destination_is_retried_in_place_unless_redelivery_keeps_the_order() {
    for scope in [OrderingScope::Destination, OrderingScope::Partition, OrderingScope::Key] {
        for strategy in STRATEGIES.into_iter().filter(|strategy| *strategy != RetryStrategy::None) {
            let mut case = Case::new(scope, strategy);
            assert_eq!(case.decide(), RetryDecision::RetryInPlace(FIRST), "{scope} {strategy:?}");
            case.capabilities = capabilities(true, true);
            let expected = match strategy {
                RetryStrategy::Redelivery => RetryDecision::Redeliver(FIRST),
                _ => RetryDecision::RetryInPlace(FIRST),
            };
            assert_eq!(case.decide(), expected, "{scope} {strategy:?}");
        }
    }
}

#[test]
fn what_another_attempt_cannot_mend_is_final_at_once() {
    for category in CATEGORIES {
        let mut case = Case::new(OrderingScope::None, RetryStrategy::InPlace);
        case.category = category;
        let expected = if category.is_transient() {
            RetryDecision::RetryInPlace(FIRST)
        } else {
            case.dead(Reason::NotRetryable(category))
        };
        assert_eq!(case.decide(), expected, "{category}");
    }
}

#[test]
fn the_limit_is_the_total_of_attempts_the_first_included() {
    let mut case = Case::new(OrderingScope::None, RetryStrategy::InPlace);
    let retried: Vec<_> = (1..=6)
        .map(|number| {
            case.attempt = number;
            case.decide().delay().is_some()
        })
        .collect();
    assert_eq!(retried, [true, true, true, true, false, false], "5 attempts are 4 retries");
    case.attempt = 5;
    assert_eq!(case.decide(), case.dead(Reason::AttemptsExhausted(attempt(5))));
    case.origin.retry.max_attempts = None;
    case.attempt = u32::MAX;
    assert_eq!(case.decide(), RetryDecision::RetryInPlace(case.origin.retry.max));
}

#[test]
fn a_final_failure_goes_where_the_profile_sends_it() {
    let reason = Reason::NotRetryable(FailureCategory::PermanentBusiness);
    for (rule, dead_letter, expected) in [
        (OnExhausted::DeadLetter, true, RetryDecision::DeadLetter(name("orders.dead"), reason)),
        (OnExhausted::DeadLetter, false, RetryDecision::Halt(reason)),
        (OnExhausted::Discard, false, RetryDecision::Discard(reason)),
        (OnExhausted::Halt, false, RetryDecision::Halt(reason)),
    ] {
        let mut case = Case::new(OrderingScope::None, RetryStrategy::InPlace);
        case.category = FailureCategory::PermanentBusiness;
        case.on_exhausted = rule;
        case.dead_letter = dead_letter.then(|| name("orders.dead"));
        assert_eq!(case.decide(), expected);
    }
}

#[test]
fn under_at_most_once_a_failure_is_discarded_whatever_else_is_said() {
    for strategy in STRATEGIES {
        for rule in RULES {
            for category in CATEGORIES {
                let mut case = Case::new(OrderingScope::None, strategy);
                case.origin.delivery = DeliveryGuarantee::AtMostOnce;
                (case.on_exhausted, case.category) = (rule, category);
                assert!(matches!(case.decide(), RetryDecision::Discard(_)));
            }
        }
    }
}

#[test]
fn a_rung_names_the_next_one_or_retries_by_itself_or_ends_the_message() {
    let rung = |strategy, destination: Option<&str>| {
        let mut retry = retry(strategy, None);
        retry.destination = destination.map(name);
        let mut setup = setup(OrderingScope::None, retry);
        setup.name = name("orders.retry-1");
        setup
    };
    let mut case = Case::new(OrderingScope::None, RetryStrategy::RetryDestination);
    case.attempt = 2;
    let after = 2 * FIRST;
    for (strategy, destination, expected) in [
        (
            RetryStrategy::RetryDestination,
            Some("orders.retry-2"),
            RetryDecision::Republish(name("orders.retry-2"), after),
        ),
        (RetryStrategy::InPlace, None, RetryDecision::RetryInPlace(after)),
        (RetryStrategy::Redelivery, None, RetryDecision::Redeliver(after)),
        (RetryStrategy::None, None, case.dead(Reason::NoRetry)),
    ] {
        case.rung = Some(rung(strategy, destination));
        assert_eq!(case.decide(), expected, "{strategy:?}");
    }
}

#[test]
fn on_a_rung_the_limits_of_the_origin_hold() {
    let mut case = Case::new(OrderingScope::None, RetryStrategy::RetryDestination);
    let mut rung = setup(OrderingScope::None, retry(RetryStrategy::InPlace, Some(1000)));
    rung.name = name("orders.retry-1");
    case.rung = Some(rung);
    case.attempt = 4;
    assert!(case.decide().delay().is_some());
    case.attempt = 5;
    assert_eq!(case.decide(), case.dead(Reason::AttemptsExhausted(attempt(5))));
}

#[test]
fn a_rung_waits_as_its_own_set_up_says() {
    let mut case = Case::new(OrderingScope::None, RetryStrategy::RetryDestination);
    let mut retry = retry(RetryStrategy::InPlace, None);
    (retry.first, retry.max) = (Duration::from_secs(3), Duration::from_secs(4));
    case.rung = Some(setup(OrderingScope::None, retry));
    case.attempt = 2;
    assert_eq!(case.decide(), RetryDecision::RetryInPlace(Duration::from_secs(4)));
}

#[test]
fn a_message_is_handled_as_often_as_the_broker_may_count_and_not_once_more() {
    let mut case = Case::new(OrderingScope::None, RetryStrategy::Redelivery);
    case.origin.consumer.max_deliveries = NonZeroU32::new(3);
    let check = |case: &Case, count| check_delivery_count(count, case.origin(), case.here());
    assert_eq!(check(&case, Some(3)), None);
    assert_eq!(check(&case, Some(4)), Some(case.dead(Reason::DeliveriesExhausted(4))));
    assert_eq!(check(&case, None), None, "without a count there is no bound");
    case.origin.consumer.max_deliveries = None;
    assert_eq!(check(&case, Some(u32::MAX)), None);
    case.origin.consumer.max_deliveries = NonZeroU32::new(3);
    case.on_exhausted = OnExhausted::Halt;
    assert_eq!(check(&case, Some(4)), Some(RetryDecision::Halt(Reason::DeliveriesExhausted(4))));
}

#[test]
fn a_redelivery_that_would_not_be_handled_is_not_asked_for() {
    let mut case = Case::new(OrderingScope::None, RetryStrategy::Redelivery);
    case.origin.consumer.max_deliveries = NonZeroU32::new(3);
    case.delivery_count = Some(2);
    assert_eq!(case.decide(), RetryDecision::Redeliver(FIRST));
    case.delivery_count = Some(3);
    assert_eq!(case.decide(), case.dead(Reason::DeliveriesExhausted(3)));
    case.origin.retry.strategy = RetryStrategy::InPlace;
    assert_eq!(case.decide(), RetryDecision::RetryInPlace(FIRST), "in place the broker counts nothing");
}

#[test]
fn a_message_that_cannot_be_held_is_given_back_where_its_order_allows() {
    for (scope, expected) in [
        (OrderingScope::None, RetryDecision::Redeliver(FIRST)),
        (OrderingScope::Key, RetryDecision::DeadLetter(name("orders.dead"), Reason::HoldExhausted)),
    ] {
        let mut case = Case::new(scope, RetryStrategy::InPlace);
        let consumer = &mut case.origin.consumer;
        consumer.extend = false;
        let last = consumer.settlement_deadline - consumer.handler_timeout - FIRST;
        case.elapsed = last - Duration::from_nanos(1);
        assert_eq!(case.decide(), RetryDecision::RetryInPlace(FIRST));
        case.elapsed = last;
        assert_eq!(case.decide(), expected, "{scope}");
        case.origin.consumer.extend = true;
        assert_eq!(case.decide(), RetryDecision::RetryInPlace(FIRST), "an extended deadline does not end");
    }
}

#[test]
fn without_redelivery_a_retry_is_in_place() {
    for strategy in [RetryStrategy::Redelivery, RetryStrategy::BrokerDelayed] {
        let mut case = Case::new(OrderingScope::None, strategy);
        case.capabilities = capabilities(false, true);
        assert_eq!(case.decide(), RetryDecision::RetryInPlace(FIRST));
    }
}

fn wild() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>(),
        0.0..=1.0f64,
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        Just(0.0)
    ]
}

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (0..100_000u64).prop_map(Duration::from_millis),
        (any::<u64>(), 0..1_000_000_000u32).prop_map(|(secs, nanos)| Duration::new(secs, nanos)),
        Just(Duration::ZERO),
        Just(Duration::MAX)
    ]
}

prop_compose! {
    fn any_retry()(
        strategy in prop::sample::select(STRATEGIES.to_vec()),
        most in prop::option::of(1..9u32),
        first in duration(),
        max in duration(),
        multiplier in wild(),
        jitter in wild(),
        named in any::<bool>(),
    ) -> RetrySetup {
        let mut retry = retry(strategy, most);
        (retry.first, retry.max, retry.multiplier, retry.jitter) = (first, max, multiplier, jitter);
        retry.destination = named.then(|| name("next"));
        retry
    }
}

prop_compose! {
    fn any_setup()(
        retry in any_retry(),
        ordering in prop::sample::select(SCOPES.to_vec()),
        once in prop::bool::weighted(0.2),
        extend in any::<bool>(),
        most in prop::option::of(1..9u32),
        deadline in duration(),
        timeout in duration(),
    ) -> DestinationSetup {
        let mut setup = setup(ordering, retry);
        if once {
            setup.delivery = DeliveryGuarantee::AtMostOnce;
        }
        setup.consumer.extend = extend;
        setup.consumer.max_deliveries = most.and_then(NonZeroU32::new);
        (setup.consumer.settlement_deadline, setup.consumer.handler_timeout) = (deadline, timeout);
        setup
    }
}

prop_compose! {
    fn any_case()(
        origin in any_setup(),
        rung in prop::option::of(any_setup()),
        dead_letter in any::<bool>(),
        on_exhausted in prop::sample::select(RULES.to_vec()),
        (redelivery, keeps) in any::<(bool, bool)>(),
        category in prop::sample::select(CATEGORIES.to_vec()),
        attempt in prop_oneof![1..12u32, Just(u32::MAX)],
        delivery_count in prop::option::of(0..12u32),
        elapsed in duration(),
    ) -> Case {
        Case {
            origin,
            rung,
            dead_letter: dead_letter.then(|| name("orders.dead")),
            on_exhausted,
            capabilities: capabilities(redelivery, keeps),
            category,
            attempt,
            delivery_count,
            elapsed,
        }
    }
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { origin, rung, on_exhausted, capabilities, category, .. } = self;
        write!(f, "{origin:?}\n{rung:?}\n{on_exhausted:?} {capabilities:?} {category}")?;
        write!(f, " attempt {} count {:?} elapsed {:?}", self.attempt, self.delivery_count, self.elapsed)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_situation_the_decision_keeps_the_promises(case in any_case(), random in wild()) {
        let situation = Situation {
            category: case.category,
            attempt: attempt(case.attempt),
            delivery_count: case.delivery_count,
            elapsed: case.elapsed,
            origin: case.origin(),
            here: case.here(),
            capabilities: &case.capabilities,
            random,
        };
        let decision = decide(&situation);
        prop_assert_eq!(decision.delay().is_some(), decision.reason().is_none());
        if let Some(delay) = decision.delay() {
            prop_assert!(delay <= case.here().retry.max, "{:?}", delay);
            prop_assert!(case.category.is_transient());
            prop_assert!(case.origin.retry.max_attempts.is_none_or(|most| case.attempt < most.get()));
            prop_assert_eq!(case.origin.delivery, DeliveryGuarantee::AtLeastOnce);
        }
        if case.origin.ordering.is_ordered() || case.here().ordering.is_ordered() {
            let reorders = match &decision {
                RetryDecision::Redeliver(_) => !case.capabilities.redelivery_keeps_order(),
                RetryDecision::Republish(..) => true,
                _ => false,
            };
            prop_assert!(!reorders, "{:?}", decision);
        }
        match &decision {
            RetryDecision::Redeliver(_) => prop_assert!(case.capabilities.has(Capability::Redelivery)),
            RetryDecision::DeadLetter(..) => prop_assert!(case.on_exhausted == OnExhausted::DeadLetter),
            RetryDecision::Discard(_) => prop_assert!(
                case.on_exhausted == OnExhausted::Discard
                    || case.origin.delivery == DeliveryGuarantee::AtMostOnce
            ),
            _ => {}
        }
        // The same situation is decided the same way.
        prop_assert_eq!(decide(&situation), decision);
    }

    #[test]
    fn a_message_that_always_fails_is_attempted_exactly_as_often_as_allowed(
        most in 1..30u32,
        strategy in prop::sample::select(STRATEGIES[1..].to_vec()),
        scope in prop::sample::select(SCOPES.to_vec()),
    ) {
        let mut case = Case::new(scope, strategy);
        case.origin.retry.max_attempts = NonZeroU32::new(most);
        let mut handled = 0;
        loop {
            handled += 1;
            case.attempt = handled;
            if case.decide().delay().is_none() {
                break;
            }
        }
        prop_assert_eq!(handled, most);
    }
}
