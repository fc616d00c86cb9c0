use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::time::Duration;

use consign_core_api::spi::*;
use consign_core_api::{DestinationName, GroupName, OrderingScope};

use super::harness::*;
use crate::{Broker, codes};

#[tokio::test]
async fn every_group_gets_everything_and_the_members_of_a_group_share() {
    for ordering in [OrderingScope::None, OrderingScope::Partition] {
        let bench = Bench::new(ordering, 4).await;
        let mut alone = bench.subscribe("alone", 100).await;
        let (mut left, mut right) = (bench.subscribe("pair", 4).await, bench.subscribe("pair", 4).await);
        let texts: Vec<_> = (0..8).map(|n| n.to_string()).collect();
        texts.iter().for_each(|text| bench.publish_all(&[text]));
        assert_eq!(read(&mut *alone).texts.len(), 8);
        let (left, right) = (read(&mut *left), read(&mut *right));
        assert_eq!((left.texts.len(), right.texts.len()), (4, 4), "{ordering}");
        let all: BTreeSet<_> = left.texts.into_iter().chain(right.texts).collect();
        assert_eq!(all, texts.into_iter().collect());
    }
}

#[tokio::test]
async fn a_new_group_starts_where_its_set_up_says_and_an_old_one_goes_on() {
    let bench = Bench::new(OrderingScope::Partition, 1).await;
    bench.publish_all(&["a"]);
    let mut latest = setup(OrderingScope::Partition, 1);
    latest.consumer.start = Start::Latest;
    let late = bench.connection.open(&latest).await.unwrap();
    let spec = SubscriptionSpec::new(GroupName::new("late").unwrap(), NonZeroUsize::MIN);
    let mut late = late.subscribe(spec).await.unwrap();
    let mut early = bench.subscribe("early", 9).await;
    bench.publish_all(&["b"]);
    assert_eq!(read(&mut *late).texts, ["b"]);
    let seen = read(&mut *early);
    assert_eq!(seen.texts, ["a", "b"]);
    assert!(is_settled(bench.settle(&*early, seen.tokens()[0])));
    early.close().await;
    let mut early = bench.subscribe("early", 9).await;
    assert_eq!(read(&mut *early).texts, ["b"]);
    assert!(bench.broker.settled("orders", "late").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_newcomer_gets_partitions_once_they_are_drained() {
    let bench = Bench::new(OrderingScope::Partition, 2).await;
    let mut old = bench.subscribe("g", 9).await;
    bench.publish_all(&["a", "b"]);
    let before = read(&mut *old);
    assert_eq!(before.assigned.len(), 2);
    let mut new = bench.subscribe("g", 9).await;
    let moving = read(&mut *old);
    let [(unit, epoch, drain_by)] = moving.revoking[..] else { panic!("{moving:?}") };
    assert_eq!(drain_by.since_start(), Duration::from_secs(5));
    assert!(moving.lost.is_empty() && read(&mut *new).assigned.is_empty());
    let mut message = message("c");
    message.set_partition(Some(unit.get()));
    bench.publish(message);
    assert!(read(&mut *old).texts.is_empty(), "a unit that is being revoked delivers nothing");
    let token = *before.tokens().iter().find(|t| t.unit() == unit).unwrap();
    assert!(is_settled(bench.settle(&*old, token)), "what is settled while draining counts");
    assert_eq!(read(&mut *old).lost, [(unit, epoch)]);
    let after = read(&mut *new);
    assert_eq!((after.assigned.len(), after.texts), (1, vec!["c".to_owned()]));
    assert_eq!(after.assigned[0].0, unit);
    assert!(after.assigned[0].1 > epoch);
}

#[tokio::test(start_paused = true)]
async fn a_unit_that_is_not_drained_in_time_is_lost_and_comes_again_to_its_heir() {
    let bench = Bench::new(OrderingScope::Partition, 1).await;
    let mut old = bench.subscribe("g", 9).await;
    bench.publish_all(&["a"]);
    let token = read(&mut *old).tokens()[0];
    let mut new = bench.subscribe("g", 9).await;
    bench.broker.revoke("orders", "g");
    // Only the heir waits: its own timer hands the unit on.
    let start = tokio::time::Instant::now();
    let seen = wait(&mut *new).await;
    assert!(start.elapsed() >= Duration::from_secs(5));
    assert_eq!(
        (seen.assigned.len(), seen.texts, seen.deliveries[0].delivery_count),
        (1, vec!["a".to_owned()], Some(2))
    );
    assert_eq!(unknown(bench.settle(&*old, token)), codes::STALE_EPOCH);
    let told = read(&mut *old);
    assert_eq!((told.revoking.len(), told.lost.len()), (1, 1));
    assert!(bench.broker.settled("orders", "g").is_empty());
    assert!(is_settled(bench.settle(&*new, seen.deliveries[0].token)));
}

#[tokio::test(start_paused = true)]
async fn a_late_settlement_is_stale_even_if_nobody_polled() {
    let bench = Bench::new(OrderingScope::Partition, 1).await;
    let mut subscription = bench.subscribe("g", 9).await;
    bench.publish_all(&["a"]);
    let token = read(&mut *subscription).tokens()[0];
    bench.broker.revoke("orders", "g");
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(unknown(bench.settle(&*subscription, token)), codes::STALE_EPOCH);
}

#[tokio::test]
async fn a_revocation_takes_the_units_and_gives_them_again_under_new_epochs() {
    for ordering in [OrderingScope::None, OrderingScope::Partition] {
        let bench = Bench::new(ordering, 1).await;
        let mut subscription = bench.subscribe("g", 9).await;
        bench.publish_all(&["a", "b"]);
        let before = read(&mut *subscription);
        bench.broker.revoke("orders", "g");
        bench.broker.revoke("orders", "g");
        let moving = read(&mut *subscription);
        assert_eq!((moving.revoking.len(), moving.lost.len(), moving.texts.len()), (1, 0, 0));
        assert!(is_settled(bench.settle(&*subscription, before.tokens()[0])));
        assert!(is_settled(bench.release(&*subscription, before.tokens()[1])));
        let after = read(&mut *subscription);
        assert_eq!((after.lost, &after.texts[..]), (before.assigned.clone(), &["b".to_owned()][..]));
        assert!(after.assigned[0].1 > before.assigned[0].1);
        bench.broker.revoke_within("orders", "g", Duration::ZERO);
        let at_once = read(&mut *subscription);
        assert_eq!((at_once.revoking.len(), at_once.lost.len(), at_once.assigned.len()), (1, 1, 1));
        assert_eq!(at_once.texts, ["b"]);
    }
}

#[tokio::test]
async fn units_move_to_the_next_member_on_revocation() {
    let bench = Bench::new(OrderingScope::Partition, 4).await;
    let (mut one, mut two) = (bench.subscribe("g", 9).await, bench.subscribe("g", 9).await);
    let units = |seen: Seen| seen.assigned.into_iter().map(|(unit, _)| unit).collect::<BTreeSet<_>>();
    read(&mut *one);
    let of_two = units(read(&mut *two));
    bench.broker.revoke("orders", "g");
    assert_eq!(units(read(&mut *one)), of_two);
}

#[tokio::test]
async fn dropping_a_subscription_gives_its_deliveries_to_the_others_at_once() {
    for ordering in [OrderingScope::None, OrderingScope::Partition] {
        let bench = Bench::new(ordering, 2).await;
        let (mut one, mut two) = (bench.subscribe("g", 2).await, bench.subscribe("g", 9).await);
        bench.publish_all(&["a", "b"]);
        let seen = read(&mut *one);
        let settler = one.settler();
        drop(one);
        assert_eq!(read(&mut *two).texts.len(), 2, "{ordering}");
        let (key, done) = bench.settlements.completion();
        settler.release(seen.tokens()[0], done);
        assert_eq!(unknown(bench.settlements.take(key)), codes::STALE_EPOCH);
        assert_eq!(bench.broker.outstanding("orders", "g").len(), 2);
    }
}

#[tokio::test]
async fn a_token_settles_nothing_through_another_member() {
    for ordering in [OrderingScope::None, OrderingScope::Partition] {
        let bench = Bench::new(ordering, 1).await;
        let mut one = bench.subscribe("g", 9).await;
        let two = bench.subscribe("g", 9).await;
        bench.publish_all(&["a"]);
        let token = read(&mut *one).tokens()[0];
        assert_eq!(unknown(bench.settle(&*two, token)), codes::STALE_EPOCH, "{ordering}");
        assert!(is_settled(bench.settle(&*one, token)));
    }
}

#[tokio::test]
async fn events_that_nobody_reads_do_not_pile_up() {
    for ordering in [OrderingScope::None, OrderingScope::Partition] {
        let bench = Bench::new(ordering, 2).await;
        let mut subscription = bench.subscribe("g", 9).await;
        for _ in 0..1000 {
            bench.broker.interrupt("orders");
            bench.broker.revoke("orders", "g");
        }
        let seen = read(&mut *subscription);
        assert_eq!(seen.interrupted.len(), 1);
        assert!(seen.assigned.len() <= 2 && seen.lost.is_empty() && seen.revoking.is_empty(), "{seen:?}");
    }
}

#[tokio::test]
async fn more_members_than_partitions_leave_some_without_and_they_take_over() {
    let bench = Bench::new(OrderingScope::Partition, 1).await;
    let one = bench.subscribe("g", 9).await;
    let mut two = bench.subscribe("g", 9).await;
    bench.publish_all(&["a"]);
    assert!(read(&mut *two).assigned.is_empty());
    drop(one);
    assert_eq!(read(&mut *two).texts, ["a"]);
}

#[tokio::test]
async fn what_exists_with_other_settings_is_refused() {
    let bench = Bench::new(OrderingScope::Partition, 2).await;
    for mode in [TopologyMode::Declare, TopologyMode::Verify, TopologyMode::Trust] {
        let mut other = setup(OrderingScope::Partition, 3);
        other.topology = mode;
        let problems = bench.connection.open(&other).await.err().unwrap();
        assert_eq!(problems[0].code(), codes::TOPOLOGY_MISMATCH);
        assert_eq!(problems[0].fields(), [("native.partitions".to_owned(), "3".to_owned())]);
    }
    let _member = bench.subscribe("g", 1).await;
    let other = bench.connection.open(&setup(OrderingScope::None, 2)).await.unwrap();
    let spec = SubscriptionSpec::new(GroupName::new("g").unwrap(), NonZeroUsize::MIN);
    let Err(TransportError::Refused(problems)) = other.subscribe(spec).await.map(|_| ()) else { panic!() };
    assert_eq!(problems[0].code(), codes::TOPOLOGY_MISMATCH);
}

#[tokio::test]
async fn wrong_native_settings_are_refused_by_the_validator_and_by_opening() {
    let broker = Broker::new();
    let mut odd = setup(OrderingScope::None, 0);
    odd.native = odd.native.with("unknown", 1);
    assert_eq!(broker.validate(&odd)[0].code(), codes::NATIVE_SETTINGS_INVALID);
    let connection = connect(&broker).await.unwrap();
    assert_eq!(connection.open(&odd).await.err().unwrap()[0].code(), codes::NATIVE_SETTINGS_INVALID);
    let _ = broker.capabilities(&odd);
    assert!(broker.stored("orders").is_empty() && broker.stored("a b").is_empty());
    assert!(DestinationName::new("a b").is_err());
}

#[tokio::test]
async fn clones_share_what_is_stored() {
    let bench = Bench::new(OrderingScope::None, 1).await;
    let other = Bench::of(bench.broker.clone(), setup(OrderingScope::None, 1)).await;
    bench.publish_all(&["a"]);
    assert_eq!(other.stored(), ["a"]);
    let mut subscription = other.subscribe("g", 1).await;
    assert_eq!(read(&mut *subscription).texts, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn an_heir_that_waits_already_learns_of_a_revocation_and_takes_over_in_time() {
    let bench = Bench::new(OrderingScope::Partition, 1).await;
    let mut old = bench.subscribe("g", 9).await;
    bench.publish_all(&["a"]);
    read(&mut *old);
    let mut new = bench.subscribe("g", 9).await;
    let waiting = tokio::spawn(async move { (wait(&mut *new).await, new) });
    tokio::task::yield_now().await;
    bench.broker.revoke("orders", "g");
    let (seen, _new) = tokio::time::timeout(Duration::from_secs(6), waiting).await.unwrap().unwrap();
    assert_eq!(seen.texts, ["a"]);
}

#[tokio::test]
async fn a_token_of_one_unit_with_the_tag_of_another_settles_nothing() {
    let bench = Bench::new(OrderingScope::Partition, 2).await;
    let mut subscription = bench.subscribe("g", 9).await;
    bench.publish_all(&["a", "b"]);
    let [one, two] = read(&mut *subscription).tokens()[..] else { panic!("two deliveries") };
    let mixed = DeliveryToken::new(one.unit(), one.epoch(), two.tag());
    assert_eq!(unknown(bench.settle(&*subscription, mixed)), codes::DELIVERY_NOT_OUTSTANDING);
    assert_eq!(bench.broker.outstanding("orders", "g").len(), 2);
}
