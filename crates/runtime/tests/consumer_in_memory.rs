//! Consumers on the embedded broker: a real one as far as groups, partitions, redelivery and revocation go.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use consign_core_api::{Message, PublishOutcome};
use consign_in_memory::{Broker, Chaos, Script, Seed, SettleFault};
use consign_policy::ProfileSpecs;
use consign_runtime::consumer::{Delivery, HandlerContext, HandlerFailure};
use consign_runtime::{Consumer, Messaging, RedriveOptions};

const QUIET: Duration = Duration::from_secs(3);
const BOUND: Duration = Duration::from_secs(600);

fn profile(name: &str, ordering: &str, more: &str) -> String {
    let key = if ordering == "KEY" { "key = { from = \"message\" }" } else { "" };
    format!(
        "[destinations.\"{name}\"]\ntransport = \"main\"\ndelivery = \"AT_LEAST_ONCE\"\n\
         ordering = \"{ordering}\"\n{key}\n{more}\n"
    )
}

async fn start(broker: &Broker, profiles: &str) -> Messaging {
    Messaging::builder()
        .transport("main", broker.clone())
        .profiles(ProfileSpecs::from_toml(profiles).unwrap())
        .build()
        .await
        .unwrap_or_else(|error| panic!("{error}"))
}

async fn publish(messaging: &Messaging, numbers: impl IntoIterator<Item = u64>) -> BTreeSet<u64> {
    let orders = messaging.publisher::<u64>("orders").unwrap();
    let mut confirmed = BTreeSet::new();
    for number in numbers {
        let message = Message::new(number).key((number % 4).to_string());
        if let PublishOutcome::Confirmed(_) = orders.publish(message).await {
            confirmed.insert(number);
        }
    }
    confirmed
}

type Log = Arc<Mutex<Vec<(u64, u32)>>>;

/// Notes each start; fails while `fails` says so.
async fn consume(
    messaging: &Messaging,
    group: &str,
    log: &Log,
    fails: impl Fn(u64, u32) -> bool + Send + Sync + 'static,
) -> Consumer {
    let log = Arc::clone(log);
    let handler = move |delivery: Delivery<u64>, context: HandlerContext| {
        let (number, attempt) = (*delivery.require().unwrap(), context.attempt().get());
        log.lock().unwrap().push((number, attempt));
        let failed = fails(number, attempt);
        async move {
            tokio::time::sleep(Duration::from_millis(number % 7)).await;
            if failed { Err(HandlerFailure::transient("DOWN", "down")) } else { Ok(()) }
        }
    };
    messaging.consume("orders", group, handler).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn each_group_gets_every_message_once_and_settles_it() {
    let broker = Broker::new();
    let messaging = start(&broker, &profile("orders", "NONE", "")).await;
    let (billing, audit) = (Log::default(), Log::default());
    let one = consume(&messaging, "billing", &billing, |_, _| false).await;
    let other = consume(&messaging, "audit", &audit, |_, _| false).await;
    assert_eq!(publish(&messaging, 0..50).await.len(), 50);
    for (consumer, log) in [(one, billing), (other, audit)] {
        consumer.idle_within(QUIET, BOUND).await.unwrap();
        let mut numbers: Vec<_> = log.lock().unwrap().iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..50).collect::<Vec<_>>());
        assert_eq!((consumer.counters().settled, consumer.counters().received), (50, 50));
    }
    assert_eq!(broker.settled("orders", "billing").len(), 50);
    assert!(broker.outstanding("orders", "billing").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_lost_settlement_reply_is_unknown_and_the_message_may_come_again() {
    let broker = Broker::scripted(Script::on("orders").settle(1, SettleFault::ReplyLost));
    let messaging = start(&broker, &profile("orders", "NONE", "")).await;
    let log = Log::default();
    let consumer = consume(&messaging, "billing", &log, |_, _| false).await;
    publish(&messaging, [1]).await;
    consumer.idle_within(QUIET, BOUND).await.unwrap();
    assert_eq!(consumer.counters().unknown, 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_message_goes_over_its_rungs_to_the_dead_letter_and_back() {
    let retry = "retry = { strategy = \"RETRY_DESTINATION\", impact = \"ALLOW_REORDER\", max_attempts = 3, \
                 destination = \"orders.retry\", first = \"5s\", max = \"5s\" }\ndead_letter = \"orders.dead\"";
    let rung = "retry = { strategy = \"IN_PLACE\", first = \"1s\", max = \"1s\" }";
    let profiles = profile("orders", "NONE", retry)
        + &profile("orders.retry", "NONE", rung)
        + &profile("orders.dead", "NONE", "");
    let broker = Broker::new();
    let messaging = start(&broker, &profiles).await;
    let (log, other) = (Log::default(), Log::default());
    let healed = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let heals = Arc::clone(&healed);
    let ill = move |number, _| number == 1 && !heals.load(std::sync::atomic::Ordering::SeqCst);
    let billing = consume(&messaging, "billing", &log, ill).await;
    let audit = consume(&messaging, "audit", &other, |_, _| false).await;
    publish(&messaging, 0..4).await;
    billing.idle_within(QUIET, BOUND).await.unwrap();
    audit.idle_within(QUIET, BOUND).await.unwrap();
    let of_one: Vec<_> = log.lock().unwrap().iter().filter(|(number, _)| *number == 1).copied().collect();
    assert_eq!(of_one, [(1, 1), (1, 2), (1, 3)]);
    assert_eq!(broker.stored("orders.dead").len(), 1);
    assert_eq!(billing.counters().dead_lettered, 1);
    assert_eq!(audit.counters().filtered, 1, "the retry copy of the other group");

    healed.store(true, std::sync::atomic::Ordering::SeqCst);
    let looked = messaging.redrive("orders.dead", RedriveOptions::dry_run()).await.unwrap();
    assert_eq!((looked.messages.len(), looked.returned()), (1, 0));
    let report = messaging.redrive("orders.dead", RedriveOptions::new()).await.unwrap();
    assert_eq!(report.returned(), 1, "{report}");
    billing.idle_within(QUIET, BOUND).await.unwrap();
    audit.idle_within(QUIET, BOUND).await.unwrap();
    assert_eq!(log.lock().unwrap().last(), Some(&(1, 1)), "a redriven message starts anew");
    assert_eq!(other.lock().unwrap().len(), 4, "and only in the group that failed");
    assert_eq!(audit.counters().filtered, 2);
    let again = messaging.redrive("orders.dead", RedriveOptions::new()).await.unwrap();
    assert!(again.messages.is_empty(), "{again}");
}

#[tokio::test(start_paused = true)]
async fn what_a_stop_gave_back_is_handled_by_the_next_consumer() {
    let broker = Broker::new();
    let messaging = start(&broker, &profile("orders", "KEY", "")).await;
    let slow = messaging
        .consume("orders", "billing", |_: Delivery<u64>, _: HandlerContext| async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            Ok(())
        })
        .await
        .unwrap();
    publish(&messaging, 0..20).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let report = slow.stop(Duration::from_millis(200)).await;
    assert!(!report.unsettled.is_empty() && !report.timed_out, "{report}");
    assert!(broker.settled("orders", "billing").is_empty());
    let log = Log::default();
    let next = consume(&messaging, "billing", &log, |_, _| false).await;
    next.idle_within(QUIET, BOUND).await.unwrap();
    assert_eq!(next.counters().settled, 20);
    assert!(log.lock().unwrap().iter().all(|(_, attempt)| *attempt == 1));
}

/// Everything that can go wrong at once, for many seeds: what is CONFIRMED is handled, keys keep their order, and in
/// the end everything is settled.
#[tokio::test(start_paused = true)]
async fn under_chaos_nothing_confirmed_is_missed_and_keys_keep_their_order() {
    for seed in 0..12 {
        chaos(seed).await;
    }
}

async fn chaos(seed: u64) {
    let chaos = Chaos::new(Seed(seed)).ambiguous(0.05).unwrap().rejected(0.05).unwrap();
    let broker = Broker::chaotic(chaos.redelivered(0.05).unwrap().settle_reply_lost(0.05).unwrap());
    let more = "retry = { strategy = \"IN_PLACE\", max_attempts = \"unlimited\", first = \"10ms\", max = \"50ms\" }\n\
                consumer = { max_deliveries = \"unlimited\", settlement_deadline = \"20s\" }\n\
                native = { partitions = 3 }";
    let messaging = start(&broker, &profile("orders", "KEY", more)).await;
    let log = Log::default();
    let fails = move |number: u64, attempt: u32| (number + seed).is_multiple_of(5) && attempt == 1;
    let one = consume(&messaging, "billing", &log, fails).await;
    let other = consume(&messaging, "billing", &log, fails).await;
    let disturb = async {
        for round in 0..6_u64 {
            tokio::time::sleep(Duration::from_millis(20 + 7 * ((seed + round) % 5))).await;
            match (seed + round) % 3 {
                0 => broker.revoke("orders", "billing"),
                1 => broker.interrupt("orders"),
                _ => broker.revoke_within("orders", "billing", Duration::ZERO),
            }
        }
    };
    let (confirmed, ()) = tokio::join!(publish(&messaging, 0..120), disturb);
    one.idle_within(QUIET, BOUND).await.unwrap();
    other.idle_within(QUIET, BOUND).await.unwrap();
    assert!(broker.outstanding("orders", "billing").is_empty(), "seed {seed}");

    let log = log.lock().unwrap();
    let handled: BTreeSet<u64> = log.iter().map(|(number, _)| *number).collect();
    let missed: Vec<_> = confirmed.difference(&handled).collect();
    assert!(missed.is_empty(), "seed {seed}: confirmed and never handled: {missed:?}");
    let mut latest: BTreeMap<u64, u64> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for (number, _) in log.iter().filter(|(number, _)| seen.insert(*number)) {
        let before = latest.insert(number % 4, *number);
        assert!(before.is_none_or(|before| before < *number), "seed {seed}: {number} after {before:?}");
    }
    let stored = broker.stored("orders").len();
    assert_eq!(broker.settled("orders", "billing").len(), stored, "seed {seed}");
}
