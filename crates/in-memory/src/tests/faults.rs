use std::time::Duration;

use consign_core_api::outcome::Transmission;
use consign_core_api::spi::*;
use consign_core_api::{Code, OrderingScope};

use super::harness::*;
use crate::{Broker, Chaos, PublishFault, Script, Seed, SettleFault, codes};

#[derive(Debug, PartialEq, Clone, Copy)]
enum Ended {
    Accepted,
    Refused(Transmission, Code),
    Unknown(Code),
}

fn ended(reply: PublishReply) -> Ended {
    match reply {
        PublishReply::Accepted(_) => Ended::Accepted,
        PublishReply::Refused(refusal) => {
            let (transmission, failure) = refusal.into_parts();
            Ended::Refused(transmission, failure.code())
        }
        PublishReply::Unknown(failure) => Ended::Unknown(failure.code()),
    }
}

#[tokio::test(start_paused = true)]
async fn each_publish_fault_ends_as_it_says_and_stores_what_it_says() {
    let script = Script::on("orders")
        .publish(2, PublishFault::AmbiguousStored)
        .publish(3, PublishFault::AmbiguousLost)
        .publish(4, PublishFault::Refused)
        .publish(5, PublishFault::Unroutable)
        .publish(6, PublishFault::NoReplyStored)
        .publish(7, PublishFault::NoReplyLost)
        .publish(8, PublishFault::ConfirmedLate(Duration::from_secs(3)));
    let bench = Bench::of(Broker::scripted(script), setup(OrderingScope::Partition, 1)).await;
    let keys: Vec<_> = (1..=9).map(|n| bench.send(message(&n.to_string()))).collect();
    let replies: Vec<_> = keys.iter().map(|key| bench.publishes.take(*key).map(ended)).collect();
    let lost = Some(Ended::Unknown(codes::IN_MEMORY_REPLY_LOST));
    assert_eq!(
        replies,
        [
            Some(Ended::Accepted),
            lost,
            lost,
            Some(Ended::Refused(Transmission::RefusedByBroker, codes::IN_MEMORY_REFUSED)),
            Some(Ended::Refused(Transmission::Unroutable, codes::IN_MEMORY_UNROUTABLE)),
            None,
            None,
            None,
            Some(Ended::Accepted),
        ]
    );
    assert_eq!(bench.stored(), ["1", "2", "6", "8", "9"]);
    assert!(keys[5..8].iter().all(|key| bench.publishes.was_released(*key)));
    tokio::time::sleep(Duration::from_millis(2999)).await;
    assert!(bench.publishes.take(keys[7]).is_none());
    tokio::time::sleep(Duration::from_millis(2)).await;
    assert_eq!(bench.publishes.take(keys[7]).map(ended), Some(Ended::Accepted));
    assert!(bench.publishes.take(keys[5]).is_none() && bench.publishes.take(keys[6]).is_none());
}

#[tokio::test]
async fn only_publishes_that_reach_the_broker_are_counted() {
    let script = Script::on("orders").publish(2, PublishFault::Refused);
    let bench = Bench::of(Broker::scripted(script), setup(OrderingScope::Partition, 1)).await;
    let mut odd = message("odd");
    odd.set_partition(Some(9));
    bench.publish(odd);
    bench.publish_all(&["1"]);
    assert!(matches!(bench.publish(message("2")).map(ended), Some(Ended::Refused(..))));
    bench.publish_all(&["3"]);
}

#[tokio::test]
async fn each_settle_fault_is_unknown_and_redelivers_or_settles_as_it_says() {
    let script = Script::on("orders")
        .settle(1, SettleFault::ReplyLost)
        .settle(2, SettleFault::ReplyLostSettled)
        .settle(3, SettleFault::NoReply);
    for ordering in [OrderingScope::None, OrderingScope::Partition] {
        let bench = Bench::of(Broker::scripted(script.clone()), setup(ordering, 1)).await;
        let mut subscription = bench.subscribe("g", 9).await;
        bench.publish_all(&["a", "b", "c"]);
        let seen = read(&mut *subscription);
        assert_eq!(unknown(bench.settle(&*subscription, seen.tokens()[0])), codes::IN_MEMORY_REPLY_LOST);
        assert_eq!(unknown(bench.settle(&*subscription, seen.tokens()[0])), codes::DELIVERY_NOT_OUTSTANDING);
        assert_eq!(unknown(bench.settle(&*subscription, seen.tokens()[1])), codes::IN_MEMORY_REPLY_LOST);
        assert!(bench.settle(&*subscription, seen.tokens()[2]).is_none());
        let again = read(&mut *subscription);
        assert_eq!(again.texts, ["a", "c"]);
        assert_eq!(bench.broker.settled("orders", "g"), [offset(0, 1)]);
        for token in again.tokens() {
            assert!(is_settled(bench.settle(&*subscription, token)));
        }
    }
}

#[tokio::test]
async fn a_script_with_a_mistake_does_not_start() {
    let broker = Broker::scripted(Script::on("orders").publish(0, PublishFault::Refused));
    assert_eq!(broker.validate(&setup(OrderingScope::None, 1))[0].code(), codes::SCRIPT_INVALID);
    assert!(matches!(connect(&broker).await, Err(TransportError::Refused(problems)) if problems.len() == 1));
}

/// Publishes and consumes until nothing is left, and returns everything that was seen.
async fn run(chaos: Chaos, ordering: OrderingScope) -> (Vec<Ended>, Vec<String>, Vec<String>, Vec<String>) {
    let bench = Bench::of(Broker::chaotic(chaos), setup(ordering, 1)).await;
    let mut subscription = bench.subscribe("g", 4).await;
    let publishes = (0..300).map(|n| bench.publish(message(&n.to_string())).map(ended).unwrap()).collect();
    let (mut delivered, mut settled) = (Vec::new(), Vec::new());
    loop {
        let seen = read(&mut *subscription);
        if seen.deliveries.is_empty() {
            break;
        }
        delivered.extend(seen.texts.clone());
        for (text, token) in seen.texts.iter().zip(seen.tokens()) {
            if is_settled(bench.settle(&*subscription, token)) {
                settled.push(text.clone());
            }
        }
    }
    assert!(bench.broker.outstanding("orders", "g").is_empty());
    (publishes, bench.stored(), delivered, settled)
}

#[tokio::test]
async fn chaos_is_the_same_for_the_same_seed_and_loses_nothing_that_is_stored() {
    let chaos = |seed| {
        Chaos::new(Seed(seed))
            .ambiguous(0.1)
            .and_then(|c| c.rejected(0.1))
            .and_then(|c| c.redelivered(0.1))
            .and_then(|c| c.interrupted(0.02))
            .and_then(|c| c.settle_reply_lost(0.1))
            .unwrap()
    };
    for ordering in [OrderingScope::None, OrderingScope::Partition] {
        let first = run(chaos(42), ordering).await;
        assert_eq!(run(chaos(42), ordering).await, first);
        assert_ne!(run(chaos(43), ordering).await, first);
        let (publishes, stored, delivered, mut settled) = first;
        let confirmed = publishes.iter().filter(|p| **p == Ended::Accepted).count();
        assert!(
            confirmed < stored.len() && stored.len() < 300,
            "some ambiguous ones are stored, some are not"
        );
        assert!(delivered.len() > stored.len(), "some came again");
        let mut seen = std::collections::BTreeSet::new();
        let first_times = delivered.iter().filter(|text| seen.insert(text.as_str()));
        assert!(first_times.map(|text| text.parse::<u32>().unwrap()).is_sorted(), "{ordering}");
        settled.sort_unstable();
        let mut all = stored;
        all.sort_unstable();
        assert_eq!(settled, all, "each is settled exactly once");
    }
}

#[tokio::test]
async fn an_interruption_by_chaos_follows_the_delivery_that_it_befell() {
    let chaos = Chaos::new(Seed(1)).interrupted(1.0).unwrap();
    let bench = Bench::of(Broker::chaotic(chaos), setup(OrderingScope::Partition, 1)).await;
    let mut subscription = bench.subscribe("g", 4).await;
    read(&mut *subscription);
    bench.publish_all(&["a"]);
    let batch = subscription.next(MANY).await;
    assert!(
        matches!(
            &batch[..],
            [Event::Delivery(_), Event::Interrupted(_), Event::Lost(..), Event::Assigned(..)]
        ),
        "{batch:?}"
    );
    let seen = read(&mut *subscription);
    assert_eq!((seen.texts, seen.deliveries[0].delivery_count), (vec!["a".to_owned()], Some(2)));
}

#[tokio::test]
async fn publishes_and_settlements_without_an_answer_are_bounded_and_the_oldest_becomes_unknown() {
    let chaos = Chaos::new(Seed(1)).no_reply(1.0).unwrap();
    let mut small = setup(OrderingScope::Partition, 1);
    small.native = small.native.with("capacity", 2);
    let bench = Bench::of(Broker::chaotic(chaos), small.clone()).await;
    let keys = [bench.send(message("a")), bench.send(message("b")), bench.send(message("c"))];
    assert_eq!(bench.publishes.take(keys[0]).map(ended), Some(Ended::Unknown(codes::IN_MEMORY_REPLY_LOST)));
    assert!(bench.publishes.take(keys[1]).is_none() && bench.publishes.take(keys[2]).is_none());

    let script = (1..4).fold(Script::on("orders"), |script, n| script.settle(n, SettleFault::NoReply));
    let bench = Bench::of(Broker::scripted(script), small).await;
    let mut subscription = bench.subscribe("g", 1).await;
    bench.publish_all(&["a"]);
    let mut settle = || {
        let token = read(&mut *subscription).tokens()[0];
        let (key, done) = bench.settlements.completion();
        let state = consign_core_api::settlement::state::Received::new(token);
        subscription.settler().settle(state.decode().decoded().succeed().settle().1, done);
        key
    };
    let keys = [settle(), settle(), settle()];
    assert_eq!(unknown(bench.settlements.take(keys[0])), codes::IN_MEMORY_REPLY_LOST);
    assert!(bench.settlements.take(keys[1]).is_none() && bench.settlements.take(keys[2]).is_none());
}

#[tokio::test]
async fn a_settlement_that_was_given_up_is_not_applied() {
    let bench = Bench::new(OrderingScope::Partition, 1).await;
    let mut subscription = bench.subscribe("g", 9).await;
    bench.publish_all(&["a"]);
    let token = read(&mut *subscription).tokens()[0];
    let (key, done) = bench.settlements.completion();
    bench.settlements.give_up(key);
    subscription.settler().release(token, done);
    assert_eq!(bench.broker.outstanding("orders", "g").len(), 1);
}

#[tokio::test]
async fn subscribing_fails_while_the_broker_is_down_and_once_the_connection_is_closed() {
    let bench = Bench::new(OrderingScope::Partition, 1).await;
    let spec = || {
        let group = consign_core_api::GroupName::new("g").unwrap();
        SubscriptionSpec::new(group, std::num::NonZeroUsize::MIN)
    };
    bench.broker.set_down(true);
    let Err(TransportError::Failed(failure)) = bench.destination.subscribe(spec()).await.map(|_| ()) else {
        panic!("it is down")
    };
    assert_eq!(failure.code(), codes::IN_MEMORY_DOWN);
    bench.broker.set_down(false);
    bench.connection.close(Duration::ZERO).await;
    let Err(TransportError::Failed(failure)) = bench.destination.subscribe(spec()).await.map(|_| ()) else {
        panic!("it is closed")
    };
    assert_eq!(failure.code(), codes::TRANSPORT_CLOSED);
}
