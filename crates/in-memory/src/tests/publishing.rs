use std::time::Duration;

use bytes::Bytes;
use consign_core_api::outcome::{Duplicate, Transmission};
use consign_core_api::spi::*;
use consign_core_api::{Code, EncodedMessage, FailureCategory, Headers, MessageId, OrderingScope, Payload};

use super::harness::*;
use crate::{Broker, HeldAt, codes};

fn accepted(reply: Option<PublishReply>) -> (consign_core_api::MessagePosition, Duplicate) {
    match reply {
        Some(PublishReply::Accepted(acceptance)) => {
            let (evidence, position, duplicate) = acceptance.into_parts();
            assert_eq!(evidence, crate::outcome::EVIDENCE);
            (position.unwrap(), duplicate)
        }
        other => panic!("not accepted: {other:?}"),
    }
}

fn refused(reply: Option<PublishReply>) -> (Transmission, FailureCategory, Code) {
    match reply {
        Some(PublishReply::Refused(refusal)) => {
            let (transmission, failure) = refusal.into_parts();
            (transmission, failure.category(), failure.code())
        }
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn a_publish_is_answered_at_once_with_its_position_and_stored_as_it_is() {
    let bench = Bench::new(OrderingScope::Partition, 1).await;
    let mut full = message("one");
    *full.headers_mut() = Headers::from_iter([("a", Bytes::from_static(&[0, 255])), ("a", Bytes::new())]);
    full.set_key(Some(Bytes::new()));
    let mut tombstone = EncodedMessage::new(Payload::Tombstone, Default::default());
    tombstone.set_partition(Some(0));
    for (n, message) in [full, tombstone].into_iter().enumerate() {
        assert_eq!(accepted(bench.publish(message.clone())), (offset(0, n as u64), Duplicate::No));
        let stored = &bench.broker.stored("orders")[n];
        assert_eq!((stored.message(), stored.position()), (&message, offset(0, n as u64)));
    }
}

#[tokio::test]
async fn keys_choose_their_partition_and_the_rest_goes_round() {
    let bench = Bench::new(OrderingScope::Key, 10).await;
    assert_eq!(accepted(bench.publish(keyed("a", "wu"))).0, offset(0, 0));
    let mut explicit = keyed("b", "wu");
    explicit.set_partition(Some(7));
    assert_eq!(accepted(bench.publish(explicit)).0, offset(7, 0));
    for n in 0..20 {
        assert_eq!(
            accepted(bench.publish(message("c"))).0,
            offset(n % 10, u64::from(n / 10) + u64::from(n % 10 == 0 || n % 10 == 7))
        );
    }
}

#[tokio::test]
async fn a_partition_that_does_not_exist_is_refused_by_name_before_the_hand_over() {
    let bench = Bench::new(OrderingScope::Partition, 4).await;
    let mut odd = message("a");
    odd.set_partition(Some(4));
    let key = bench.send(odd);
    assert!(!bench.publishes.was_handed_over(key));
    let reply = bench.publishes.take(key);
    assert!(format!("{reply:?}").contains("partition 4 does not exist"));
    let expected =
        (Transmission::NotTransmitted, FailureCategory::PermanentBusiness, codes::PARTITION_NOT_CARRIED);
    assert_eq!(refused(reply), expected);
}

#[tokio::test]
async fn a_publish_that_was_given_up_is_not_stored() {
    let bench = Bench::new(OrderingScope::None, 1).await;
    let (key, done) = bench.publishes.completion();
    bench.publishes.give_up(key);
    bench.destination.publish(PublishRequest::new(message("a"), consign_core_api::time::Moment::NEVER), done);
    assert!(bench.stored().is_empty());
}

#[tokio::test]
async fn a_full_destination_refuses_until_every_group_has_settled_something() {
    let mut setup = setup(OrderingScope::Partition, 1);
    setup.native = NativeSettings::default().with("capacity", 2);
    let bench = Bench::of(Broker::new(), setup).await;
    bench.publish_all(&["a", "b"]);
    let full = (Transmission::RefusedByBroker, FailureCategory::Capacity, codes::IN_MEMORY_FULL);
    assert_eq!(refused(bench.publish(message("c"))), full);
    let (mut one, mut two) = (bench.subscribe("one", 9).await, bench.subscribe("two", 9).await);
    let (first, second) = (read(&mut *one), read(&mut *two));
    assert!(is_settled(bench.settle(&*one, first.tokens()[0])));
    assert_eq!(refused(bench.publish(message("c"))), full, "the other group needs it");
    assert!(is_settled(bench.settle(&*two, second.tokens()[1])));
    assert_eq!(refused(bench.publish(message("c"))), full, "it is not the oldest");
    assert!(is_settled(bench.settle(&*two, second.tokens()[0])));
    assert_eq!(accepted(bench.publish(message("c"))).0, offset(0, 2));
    assert_eq!(bench.stored(), ["b", "c"]);
    assert_eq!(bench.broker.settled("orders", "two"), [offset(0, 1)]);
}

#[tokio::test(start_paused = true)]
async fn an_id_is_stored_once_within_the_window_and_again_after_it() {
    let mut setup = setup(OrderingScope::Partition, 1);
    setup.native = NativeSettings::default().with("deduplication_window", "1s");
    let bench = Bench::of(Broker::new(), setup).await;
    assert_eq!(accepted(bench.publish(message("a"))), (offset(0, 0), Duplicate::No));
    assert_eq!(accepted(bench.publish(message("b"))), (offset(0, 1), Duplicate::No));
    tokio::time::advance(Duration::from_millis(999)).await;
    assert_eq!(accepted(bench.publish(message("a"))), (offset(0, 0), Duplicate::Deduplicated));
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(accepted(bench.publish(message("a"))), (offset(0, 2), Duplicate::No));
    let nameless = EncodedMessage::new("x", Default::default());
    bench.publish(nameless.clone());
    bench.publish(nameless);
    assert_eq!(bench.stored(), ["a", "b", "a", "x", "x"]);
}

#[tokio::test(start_paused = true)]
async fn no_id_is_forgotten_before_its_window_ends() {
    let mut setup = setup(OrderingScope::Partition, 1);
    setup.native = NativeSettings::default().with("deduplication_window", "1s").with("capacity", 2);
    let bench = Bench::of(Broker::new(), setup).await;
    let mut subscription = bench.subscribe("g", 9).await;
    bench.publish_all(&["a", "b"]);
    for token in read(&mut *subscription).tokens() {
        assert!(is_settled(bench.settle(&*subscription, token)));
    }
    assert_eq!(refused(bench.publish(message("c"))).2, codes::IN_MEMORY_FULL);
    assert_eq!(accepted(bench.publish(message("a"))).1, Duplicate::Deduplicated);
    tokio::time::advance(Duration::from_secs(1)).await;
    bench.publish_all(&["c", "a"]);
}

#[tokio::test]
async fn held_confirmations_come_in_order_when_they_are_released_and_refusals_are_not_held() {
    let mut setup = setup(OrderingScope::Partition, 1);
    setup.native = NativeSettings::default().with("capacity", 2);
    let bench = Bench::of(Broker::new(), setup).await;
    bench.broker.hold_confirms(true);
    let keys = [bench.send(message("a")), bench.send(message("b"))];
    assert_eq!(bench.stored(), ["a", "b"]);
    assert!(
        keys.iter().all(|key| bench.publishes.was_released(*key) && bench.publishes.take(*key).is_none())
    );
    assert_eq!(refused(bench.publish(message("c"))).0, Transmission::NotTransmitted, "the queue is bounded");
    bench.broker.release_confirms();
    for (n, key) in keys.into_iter().enumerate() {
        assert_eq!(accepted(bench.publishes.take(key)).0, offset(0, n as u64));
    }
    assert_eq!(refused(bench.publish(message("c"))).2, codes::IN_MEMORY_FULL);
}

#[tokio::test]
async fn confirmations_are_held_until_holding_ends() {
    let bench = Bench::new(OrderingScope::None, 1).await;
    bench.broker.hold_confirms(true);
    let first = bench.send(message("a"));
    bench.broker.release_confirms();
    accepted(bench.publishes.take(first));
    let second = bench.send(message("b"));
    assert!(bench.publishes.take(second).is_none());
    bench.broker.hold_confirms(false);
    accepted(bench.publishes.take(second));
    accepted(bench.publish(message("c")));
}

#[tokio::test]
async fn a_publish_that_was_not_transmitted_can_be_withdrawn_and_never_comes() {
    let bench = Bench::new(OrderingScope::None, 1).await;
    bench.broker.hold_publishes(Some(HeldAt::BeforeTransmission));
    let keys = [bench.send(message("a")), bench.send(message("b")), bench.send(message("c"))];
    assert!(keys.iter().all(|key| bench.publishes.was_handed_over(*key)));
    assert!(bench.stored().is_empty());
    assert_eq!(bench.destination.withdraw(keys[1]), Withdrawal::Withdrawn);
    assert_eq!(bench.destination.withdraw(keys[1]), Withdrawal::TooLate);
    bench.broker.hold_publishes(None);
    assert_eq!(bench.destination.withdraw(keys[0]), Withdrawal::TooLate);
    assert_eq!(bench.stored(), ["a", "c"]);
    assert!(bench.publishes.take(keys[1]).is_none(), "the runtime has answered it");
}

#[tokio::test]
async fn a_publish_that_is_given_up_while_it_is_queued_is_not_transmitted() {
    let bench = Bench::new(OrderingScope::None, 1).await;
    bench.broker.hold_publishes(Some(HeldAt::BeforeHandOver));
    let keys = [bench.send(message("a")), bench.send(message("b"))];
    bench.publishes.give_up(keys[0]);
    bench.broker.hold_publishes(None);
    assert_eq!(bench.stored(), ["b"]);
    assert!(!bench.publishes.was_handed_over(keys[0]));
}

#[tokio::test]
async fn the_queue_of_held_publishes_is_bounded() {
    let mut setup = setup(OrderingScope::Partition, 1);
    setup.native = NativeSettings::default().with("capacity", 1);
    let bench = Bench::of(Broker::new(), setup).await;
    bench.broker.hold_publishes(Some(HeldAt::BeforeHandOver));
    bench.send(message("a"));
    let (transmission, category, _) = refused(bench.publish(message("b")));
    assert_eq!((transmission, category), (Transmission::NotTransmitted, FailureCategory::Capacity));
}

#[tokio::test]
async fn a_lookup_answers_absent_only_where_nothing_was_forgotten_and_nothing_can_still_come() {
    let mut setup = setup(OrderingScope::Partition, 1);
    setup.native = NativeSettings::default().with("capacity", 1);
    let bench = Bench::of(Broker::new(), setup).await;
    let look = async |id: &str| bench.destination.lookup(&MessageId::new(id).unwrap()).await.unwrap();
    bench.publish_all(&["a"]);
    assert_eq!(look("a").await, Lookup::Found(offset(0, 0)));
    assert_eq!(look("b").await, Lookup::Absent);
    bench.broker.hold_publishes(Some(HeldAt::BeforeTransmission));
    bench.send(message("b"));
    assert_eq!(look("b").await, Lookup::Unknown, "it is on its way");
    let mut subscription = bench.subscribe("g", 1).await;
    let seen = read(&mut *subscription);
    assert!(is_settled(bench.settle(&*subscription, seen.tokens()[0])));
    bench.broker.hold_publishes(None);
    assert_eq!(look("a").await, Lookup::Unknown, "it was forgotten");
    assert_eq!(look("b").await, Lookup::Found(offset(0, 1)));
    bench.broker.set_down(true);
    assert_eq!(look("b").await, Lookup::Unknown);
}
