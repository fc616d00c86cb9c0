use std::time::Duration;

use consign_core_api::OrderingScope;
use consign_core_api::outcome::Transmission;
use consign_core_api::spi::*;

use super::harness::*;
use crate::{Broker, HeldAt, PublishFault, Script, SettleFault, codes};

fn unknown_publish(reply: Option<PublishReply>) -> consign_core_api::Code {
    match reply {
        Some(PublishReply::Unknown(failure)) => failure.code(),
        other => panic!("not unknown: {other:?}"),
    }
}

fn not_transmitted(reply: Option<PublishReply>) -> consign_core_api::Code {
    match reply {
        Some(PublishReply::Refused(refusal)) => {
            let (transmission, failure) = refusal.into_parts();
            assert_eq!(transmission, Transmission::NotTransmitted);
            assert!(failure.category().is_transient());
            failure.code()
        }
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn an_interruption_redelivers_what_is_outstanding_in_order_under_a_new_epoch() {
    for ordering in [OrderingScope::None, OrderingScope::Partition] {
        let bench = Bench::new(ordering, 1).await;
        let mut subscription = bench.subscribe("g", 9).await;
        bench.publish_all(&["a", "b", "c"]);
        let before = read(&mut *subscription);
        assert!(is_settled(bench.settle(&*subscription, before.tokens()[1])));
        bench.broker.interrupt("orders");
        assert_eq!(unknown(bench.settle(&*subscription, before.tokens()[0])), codes::STALE_EPOCH);
        let after = read(&mut *subscription);
        assert_eq!(after.interrupted, [codes::IN_MEMORY_INTERRUPTED]);
        assert_eq!(after.lost, before.assigned);
        assert_eq!(after.texts, ["a", "c"]);
        assert_eq!(after.deliveries[0].token.epoch(), after.assigned[0].1);
    }
}

#[tokio::test]
async fn a_restart_interrupts_every_connection_and_makes_open_publishes_unknown() {
    let bench = Bench::new(OrderingScope::Partition, 1).await;
    let other = Bench::of(bench.broker.clone(), setup(OrderingScope::Partition, 1)).await;
    let (mut one, mut two) = (bench.subscribe("one", 9).await, other.subscribe("two", 9).await);
    bench.publish_all(&["a", "b"]);
    let seen = read(&mut *one);
    assert!(is_settled(bench.settle(&*one, seen.tokens()[0])));
    read(&mut *two);
    bench.broker.hold_confirms(true);
    let key = bench.send(message("c"));
    bench.broker.restart();
    assert_eq!(unknown_publish(bench.publishes.take(key)), codes::IN_MEMORY_RESTARTED);
    let (one, two) = (read(&mut *one), read(&mut *two));
    assert_eq!((one.interrupted.len(), two.interrupted.len()), (1, 1));
    assert_eq!(one.texts, ["b", "c"], "what was settled stays settled");
    assert_eq!(two.texts, ["a", "b", "c"]);
    bench.broker.hold_confirms(false);
    assert!(bench.publishes.take(key).is_none(), "there is no second answer");
}

#[tokio::test(start_paused = true)]
async fn a_restart_cuts_off_late_and_silent_answers() {
    let script = Script::on("orders")
        .publish(1, PublishFault::ConfirmedLate(Duration::from_secs(1)))
        .publish(2, PublishFault::NoReplyLost)
        .settle(1, SettleFault::NoReply);
    let bench = Bench::of(Broker::scripted(script), setup(OrderingScope::Partition, 1)).await;
    let mut subscription = bench.subscribe("g", 9).await;
    let keys = [bench.send(message("a")), bench.send(message("b"))];
    let token = read(&mut *subscription).tokens()[0];
    assert!(bench.settle(&*subscription, token).is_none());
    bench.broker.restart();
    for key in keys {
        assert_eq!(unknown_publish(bench.publishes.take(key)), codes::IN_MEMORY_RESTARTED);
    }
    // The late answer's time comes, and nothing is answered twice; the sink would fail.
    tokio::time::sleep(Duration::from_secs(2)).await;
}

#[tokio::test]
async fn while_it_is_down_nothing_is_sent_delivered_or_settled_and_afterwards_all_goes_on() {
    let bench = Bench::new(OrderingScope::Partition, 1).await;
    let mut subscription = bench.subscribe("g", 9).await;
    bench.publish_all(&["a"]);
    let token = read(&mut *subscription).tokens()[0];
    bench.broker.hold_confirms(true);
    let key = bench.send(message("b"));
    bench.broker.hold_publishes(Some(HeldAt::BeforeTransmission));
    let held = bench.send(message("c"));
    bench.broker.set_down(true);
    assert_eq!(unknown_publish(bench.publishes.take(key)), codes::IN_MEMORY_DOWN);
    bench.broker.hold_publishes(None);
    assert_eq!(not_transmitted(bench.publishes.take(held)), codes::IN_MEMORY_DOWN);
    let refused = bench.send(message("d"));
    assert!(!bench.publishes.was_handed_over(refused));
    assert_eq!(not_transmitted(bench.publishes.take(refused)), codes::IN_MEMORY_DOWN);
    assert_eq!(unknown(bench.settle(&*subscription, token)), codes::IN_MEMORY_DOWN);
    let seen = read(&mut *subscription);
    assert_eq!((seen.interrupted, seen.texts.len()), (vec![codes::IN_MEMORY_DOWN], 0));
    assert!(!bench.connection.health().await.is_up());
    assert!(matches!(connect(&bench.broker).await, Err(TransportError::Failed(_))));
    let waiting = tokio::spawn(async move { wait(&mut *subscription).await.texts });
    tokio::task::yield_now().await;
    bench.broker.set_down(false);
    assert_eq!(waiting.await.unwrap(), ["a", "b"]);
    assert!(bench.connection.health().await.is_up());
    assert_eq!(bench.stored(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn closing_waits_for_answers_that_come_and_no_longer_than_it_may() {
    let script = Script::on("orders")
        .publish(1, PublishFault::ConfirmedLate(Duration::from_secs(1)))
        .publish(2, PublishFault::ConfirmedLate(Duration::from_secs(9)));
    let bench = Bench::of(Broker::scripted(script), setup(OrderingScope::Partition, 1)).await;
    let keys = [bench.send(message("a")), bench.send(message("b"))];
    let start = tokio::time::Instant::now();
    bench.connection.close(Duration::from_secs(3)).await;
    assert!((Duration::from_secs(3)..Duration::from_secs(4)).contains(&start.elapsed()));
    assert!(matches!(bench.publishes.take(keys[0]), Some(PublishReply::Accepted(_))));
    assert_eq!(unknown_publish(bench.publishes.take(keys[1])), codes::TRANSPORT_CLOSED);
    assert_eq!(not_transmitted(bench.publish(message("c"))), codes::TRANSPORT_CLOSED);
    let again = tokio::time::Instant::now();
    tokio::join!(bench.connection.close(Duration::MAX), bench.connection.close(Duration::ZERO));
    assert!(again.elapsed().is_zero());
}

#[tokio::test(start_paused = true)]
async fn closing_ends_as_soon_as_the_last_answer_is_there() {
    let script = Script::on("orders").publish(1, PublishFault::ConfirmedLate(Duration::from_secs(1)));
    let bench = Bench::of(Broker::scripted(script), setup(OrderingScope::Partition, 1)).await;
    let key = bench.send(message("a"));
    let start = tokio::time::Instant::now();
    bench.connection.close(Duration::MAX).await;
    assert!(start.elapsed() < Duration::from_secs(2));
    assert!(matches!(bench.publishes.take(key), Some(PublishReply::Accepted(_))));
}

#[tokio::test(start_paused = true)]
async fn closing_refuses_what_was_held_and_gives_deliveries_back_and_leaves_other_connections_alone() {
    let bench = Bench::new(OrderingScope::Partition, 1).await;
    let other = Bench::of(bench.broker.clone(), setup(OrderingScope::Partition, 1)).await;
    let mut subscription = bench.subscribe("g", 9).await;
    bench.publish_all(&["a"]);
    let token = read(&mut *subscription).tokens()[0];
    bench.broker.hold_publishes(Some(HeldAt::BeforeTransmission));
    let (mine, others) = (bench.send(message("b")), other.send(message("c")));
    bench.connection.close(Duration::from_secs(1)).await;
    assert_eq!(not_transmitted(bench.publishes.take(mine)), codes::TRANSPORT_CLOSED);
    assert!(other.publishes.take(others).is_none());
    assert_eq!(unknown(bench.settle(&*subscription, token)), codes::STALE_EPOCH);
    assert_eq!(read(&mut *subscription).interrupted, [codes::TRANSPORT_CLOSED]);
    assert!(read(&mut *subscription).interrupted.is_empty(), "told once");
    bench.broker.hold_publishes(None);
    let mut next = other.subscribe("g", 9).await;
    assert_eq!(read(&mut *next).texts, ["a", "c"]);
    assert!(!bench.connection.health().await.is_up() && other.connection.health().await.is_up());
}

#[tokio::test]
async fn a_connection_that_is_forgotten_leaves_nothing_unanswered() {
    let bench = Bench::new(OrderingScope::Partition, 1).await;
    bench.broker.hold_confirms(true);
    let key = bench.send(message("a"));
    let Bench { connection, destination, publishes, broker, .. } = bench;
    drop((connection, destination));
    assert_eq!(unknown_publish(publishes.take(key)), codes::TRANSPORT_CLOSED);
    assert_eq!(broker.stored("orders").len(), 1);
}

#[test]
fn publishing_needs_no_runtime_and_a_late_answer_without_one_comes_at_once() {
    let script = Script::on("orders").publish(2, PublishFault::ConfirmedLate(Duration::from_secs(9)));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let mut made = std::pin::pin!(Bench::of(Broker::scripted(script), setup(OrderingScope::Partition, 1)));
    let std::task::Poll::Ready(bench) = made.as_mut().poll(&mut cx) else { panic!("connecting never waits") };
    bench.publish_all(&["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_accepted_while_closing_waits() {
    let script = Script::on("orders").publish(1, PublishFault::ConfirmedLate(Duration::from_secs(1)));
    let bench = Bench::of(Broker::scripted(script), setup(OrderingScope::Partition, 1)).await;
    let owed = bench.send(message("a"));
    let meanwhile = async {
        tokio::task::yield_now().await;
        not_transmitted(bench.publish(message("b")))
    };
    let ((), code) = tokio::join!(bench.connection.close(Duration::from_secs(9)), meanwhile);
    assert_eq!(code, codes::TRANSPORT_CLOSED);
    assert!(matches!(bench.publishes.take(owed), Some(PublishReply::Accepted(_))));
}

#[tokio::test]
async fn what_an_interruption_gives_back_comes_in_the_order_of_the_log() {
    for ordering in [OrderingScope::None, OrderingScope::Partition] {
        let bench = Bench::new(ordering, 1).await;
        let mut subscription = bench.subscribe("g", 3).await;
        bench.publish_all(&["a", "b", "c", "d"]);
        let first = read(&mut *subscription);
        assert!(is_settled(bench.settle(&*subscription, first.tokens()[0])));
        assert_eq!(read(&mut *subscription).texts, ["d"]);
        bench.broker.interrupt("orders");
        assert_eq!(read(&mut *subscription).texts, ["b", "c", "d"], "{ordering}");
    }
}

#[tokio::test(start_paused = true)]
async fn closing_cuts_off_only_what_is_owed_to_its_own_connection() {
    let script = Script::on("orders").publish(3, PublishFault::NoReplyLost);
    let bench = Bench::of(Broker::scripted(script), setup(OrderingScope::Partition, 1)).await;
    let other = Bench::of(bench.broker.clone(), setup(OrderingScope::Partition, 1)).await;
    bench.broker.hold_confirms(true);
    let mine = bench.send(message("a"));
    let others = [other.send(message("b")), other.send(message("c"))];
    bench.connection.close(Duration::from_secs(1)).await;
    assert_eq!(unknown_publish(bench.publishes.take(mine)), codes::TRANSPORT_CLOSED);
    assert!(others.iter().all(|key| other.publishes.take(*key).is_none()));
    bench.broker.release_confirms();
    assert!(matches!(other.publishes.take(others[0]), Some(PublishReply::Accepted(_))));
}
