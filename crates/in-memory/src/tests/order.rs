use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use consign_core_api::OrderingScope;
use consign_core_api::spi::*;

use super::harness::*;
use crate::codes;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn deliveries_of_a_partition_come_in_order_and_no_more_than_may_be_outstanding() {
    let bench = Bench::new(OrderingScope::Partition, 1).await;
    let mut subscription = bench.subscribe("g", 2).await;
    bench.publish_all(&["a", "b", "c", "d"]);
    let seen = read(&mut *subscription);
    assert_eq!(seen.texts, ["a", "b"]);
    assert_eq!(bench.broker.outstanding("orders", "g"), [offset(0, 0), offset(0, 1)]);
    assert!(is_settled(bench.settle(&*subscription, seen.tokens()[1])));
    assert_eq!(bench.broker.settled("orders", "g"), [offset(0, 1)], "out of order");
    assert_eq!(read(&mut *subscription).texts, ["c"]);
    assert!(is_settled(bench.settle(&*subscription, seen.tokens()[0])));
    assert_eq!(read(&mut *subscription).texts, ["d"]);
}

#[tokio::test]
async fn a_batch_is_no_larger_than_asked() {
    let bench = Bench::new(OrderingScope::None, 1).await;
    let mut subscription = bench.subscribe("g", 9).await;
    bench.publish_all(&["a", "b", "c"]);
    let batch = subscription.next(2.try_into().unwrap()).await;
    assert_eq!(batch.iter().filter(|e| matches!(e, Event::Delivery(_))).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn in_an_ordered_partition_what_comes_back_holds_later_messages_until_its_delay_is_over() {
    let bench = Bench::new(OrderingScope::Partition, 1).await;
    let mut subscription = bench.subscribe("g", 2).await;
    bench.publish_all(&["a", "b", "c"]);
    let seen = read(&mut *subscription);
    assert!(is_settled(bench.redeliver(&*subscription, seen.tokens()[0], SECOND)));
    assert!(is_settled(bench.settle(&*subscription, seen.tokens()[1])));
    assert!(read(&mut *subscription).texts.is_empty());
    let start = tokio::time::Instant::now();
    let again = wait(&mut *subscription).await;
    assert!(start.elapsed() >= SECOND && start.elapsed() <= SECOND + Duration::from_millis(2));
    assert_eq!(again.texts, ["a", "c"]);
    assert_eq!((again.deliveries[0].delivery_count, again.deliveries[0].redelivered), (Some(2), Some(true)));
    assert_eq!(again.deliveries[1].delivery_count, Some(1));
}

#[tokio::test(start_paused = true)]
async fn competing_members_go_on_with_other_messages_during_the_delay() {
    let bench = Bench::new(OrderingScope::None, 1).await;
    let mut subscription = bench.subscribe("g", 1).await;
    bench.publish_all(&["a", "b"]);
    let seen = read(&mut *subscription);
    assert!(is_settled(bench.redeliver(&*subscription, seen.tokens()[0], SECOND)));
    let seen = read(&mut *subscription);
    assert_eq!(seen.texts, ["b"]);
    assert!(is_settled(bench.settle(&*subscription, seen.tokens()[0])));
    assert_eq!(wait(&mut *subscription).await.texts, ["a"]);
}

#[tokio::test]
async fn a_message_that_comes_back_again_and_again_starves_no_other() {
    let bench = Bench::new(OrderingScope::None, 1).await;
    let mut subscription = bench.subscribe("g", 1).await;
    bench.publish_all(&["poison", "fine"]);
    let mut order = Vec::new();
    for _ in 0..4 {
        let seen = read(&mut *subscription);
        order.extend(seen.texts.clone());
        assert!(is_settled(match seen.texts[0].as_str() {
            "poison" => bench.redeliver(&*subscription, seen.tokens()[0], Duration::ZERO),
            _ => bench.settle(&*subscription, seen.tokens()[0]),
        }));
    }
    assert!(order.iter().any(|text| text == "fine"), "{order:?}");
}

#[tokio::test]
async fn a_release_comes_again_at_once_and_counts_as_a_delivery() {
    let bench = Bench::new(OrderingScope::Partition, 1).await;
    let mut subscription = bench.subscribe("g", 9).await;
    bench.publish_all(&["a"]);
    for count in 1..4 {
        let seen = read(&mut *subscription);
        assert_eq!(seen.deliveries[0].delivery_count, Some(count));
        assert!(is_settled(bench.release(&*subscription, seen.tokens()[0])));
    }
}

#[tokio::test]
async fn a_second_settlement_is_unknown_and_has_no_effect() {
    let bench = Bench::new(OrderingScope::Partition, 1).await;
    let mut subscription = bench.subscribe("g", 9).await;
    bench.publish_all(&["a", "b"]);
    let seen = read(&mut *subscription);
    assert!(is_settled(bench.settle(&*subscription, seen.tokens()[0])));
    assert_eq!(unknown(bench.settle(&*subscription, seen.tokens()[0])), codes::DELIVERY_NOT_OUTSTANDING);
    let again = bench.redeliver(&*subscription, seen.tokens()[0], Duration::ZERO);
    assert_eq!(unknown(again), codes::DELIVERY_NOT_OUTSTANDING);
    assert!(is_settled(bench.release(&*subscription, seen.tokens()[1])));
    assert_eq!(read(&mut *subscription).texts, ["b"], "only what was given back comes again");
    assert_eq!(unknown(bench.settle(&*subscription, seen.tokens()[1])), codes::DELIVERY_NOT_OUTSTANDING);
}

#[tokio::test(start_paused = true)]
async fn extreme_delays_do_not_panic() {
    for ordering in [OrderingScope::None, OrderingScope::Partition] {
        let bench = Bench::new(ordering, 1).await;
        let mut subscription = bench.subscribe("g", 9).await;
        bench.publish_all(&["a", "b"]);
        let tokens = read(&mut *subscription).tokens();
        assert!(is_settled(bench.redeliver(&*subscription, tokens[0], Duration::MAX)));
        assert!(is_settled(bench.redeliver(&*subscription, tokens[1], Duration::from_nanos(1))));
        bench.broker.revoke_within("orders", "g", Duration::MAX);
    }
}

#[tokio::test]
async fn a_paused_unit_delivers_nothing_until_it_is_resumed() {
    for ordering in [OrderingScope::None, OrderingScope::Partition] {
        let bench = Bench::new(ordering, 1).await;
        let mut subscription = bench.subscribe("g", 9).await;
        let unit = read(&mut *subscription).assigned[0].0;
        let settler = subscription.settler();
        settler.pause(unit);
        settler.pause(unit);
        bench.publish_all(&["a"]);
        assert!(read(&mut *subscription).texts.is_empty(), "{ordering}");
        let mut next = pin!(subscription.next(MANY));
        let woken = Arced::waker();
        assert!(next.as_mut().poll(&mut Context::from_waker(&woken.1)).is_pending());
        settler.resume(unit);
        assert!(woken.0.was_woken());
        assert!(next.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    }
}

/// A waker that remembers.
struct Arced(std::sync::atomic::AtomicUsize);

impl Arced {
    fn waker() -> (std::sync::Arc<Self>, Waker) {
        let this = std::sync::Arc::new(Self(0.into()));
        (std::sync::Arc::clone(&this), Waker::from(this))
    }
    fn was_woken(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::Relaxed) > 0
    }
}

impl std::task::Wake for Arced {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_wait_that_is_dropped_after_each_poll_loses_no_message_and_no_wake() {
    for ordering in [OrderingScope::None, OrderingScope::Partition] {
        let bench = Bench::new(ordering, 1).await;
        let mut subscription = bench.subscribe("g", 3).await;
        let mut seen = Vec::new();
        read(&mut *subscription);
        for n in 0..50 {
            let woken = Arced::waker();
            // A wait that is dropped before anything comes, and one that is dropped after the wake and before the poll.
            for _ in 0..2 {
                let mut next = pin!(subscription.next(MANY));
                assert!(next.as_mut().poll(&mut Context::from_waker(&woken.1)).is_pending());
            }
            bench.publish_all(&[&n.to_string()]);
            assert!(woken.0.was_woken(), "{ordering}");
            let mut next = subscription.next(MANY);
            let polled = next.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            drop(next);
            let Poll::Ready(batch) = polled else { panic!("the message is there") };
            for event in batch {
                let Event::Delivery(inbound) = event else { continue };
                seen.push(text(&inbound.message));
            }
            let tokens = bench.broker.outstanding("orders", "g");
            assert_eq!(tokens.len(), seen.len());
            if seen.len() == 3 {
                bench.broker.interrupt("orders");
                let again = read(&mut *subscription);
                assert_eq!(again.texts.len(), 3);
                for token in again.tokens() {
                    assert!(is_settled(bench.settle(&*subscription, token)));
                }
                seen.clear();
            }
        }
    }
}

#[tokio::test]
async fn a_member_at_its_limit_is_woken_by_its_own_settlement() {
    let bench = Bench::new(OrderingScope::Partition, 1).await;
    let mut subscription = bench.subscribe("g", 1).await;
    bench.publish_all(&["a", "b"]);
    let token = read(&mut *subscription).tokens()[0];
    let settler = subscription.settler();
    let mut next = pin!(subscription.next(MANY));
    let woken = Arced::waker();
    assert!(next.as_mut().poll(&mut Context::from_waker(&woken.1)).is_pending());
    let (_, done) = bench.settlements.completion();
    let state = consign_core_api::settlement::state::Received::new(token);
    settler.settle(state.decode().decoded().succeed().settle().1, done);
    assert!(woken.0.was_woken());
    assert!(next.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
}

#[tokio::test]
async fn partitions_take_turns() {
    let bench = Bench::new(OrderingScope::Partition, 3).await;
    let mut subscription = bench.subscribe("g", 6).await;
    for n in 0..9 {
        let mut message = message(&n.to_string());
        message.set_partition(Some(n / 3));
        bench.publish(message);
    }
    assert_eq!(read(&mut *subscription).texts, ["0", "3", "6", "1", "4", "7"]);
}
