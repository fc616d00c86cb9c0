//! Revocation, loss, interruption, stop and the end of everything.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod consumer_support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use consign_core_api::settlement::SettledBecause::Handled;
use consign_core_api::spi::{Epoch, Event, UnitId};
use consign_core_api::time::Moment;
use consign_core_api::{BytesCodec, Failure, FailureCategory};
use consign_policy::ProfileSpecs;
use consign_runtime::consumer::{Cancellation, Delivery, HandlerContext, HandlerFailure, LeftBecause};
use consign_runtime::{Consumer, Messaging, Observed, Observer};
use consumer_support::{
    Answer, Bench, Fake, Verb, a_while, inbound, inbound_of, orders, profile, start, until,
};
use futures_util::FutureExt as _;
use tokio::sync::Semaphore;

/// A consumer whose handlers wait for a permit, and what they saw.
struct Gated {
    bench: Bench,
    consumer: Consumer,
    gate: Arc<Semaphore>,
    starts: Arc<Mutex<Vec<(String, u32, Cancellation)>>>,
    dropped: Arc<AtomicUsize>,
}

struct CountDrop(Arc<AtomicUsize>);

impl Drop for CountDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Gated {
    async fn on(profiles: &str) -> Self {
        let bench = start(profiles).await;
        let (gate, starts) = (Arc::new(Semaphore::new(0)), Arc::new(Mutex::new(Vec::new())));
        let dropped = Arc::new(AtomicUsize::new(0));
        let (waits, seen, drops) = (Arc::clone(&gate), Arc::clone(&starts), Arc::clone(&dropped));
        let handler = move |delivery: Delivery<Bytes>, context: HandlerContext| {
            let id = delivery.message_id().unwrap().to_string();
            seen.lock().unwrap().push((id, context.attempt().get(), context.cancellation()));
            let (waits, guard) = (Arc::clone(&waits), CountDrop(Arc::clone(&drops)));
            async move {
                let _guard = guard;
                waits.acquire().await?.forget();
                if context.is_cancelled() {
                    return Err(HandlerFailure::transient("CANCELLED", "noticed"));
                }
                Ok::<(), HandlerFailure>(())
            }
        };
        let consumer = bench.consume(handler).await;
        Self { bench, consumer, gate, starts, dropped }
    }

    fn started(&self) -> Vec<String> {
        self.starts.lock().unwrap().iter().map(|(id, attempt, _)| format!("{id} {attempt}")).collect()
    }

    fn is_cancelled(&self, index: usize) -> bool {
        self.starts.lock().unwrap()[index].2.is_cancelled()
    }
}

const ONE: UnitId = UnitId::new(1);

fn partitioned() -> String {
    profile("orders", "PARTITION", "")
}

#[tokio::test(start_paused = true)]
async fn a_revoked_unit_settles_what_runs_and_gives_back_the_rest() {
    let gated = Gated::on(&partitioned()).await;
    let fake = &gated.bench.fake;
    fake.tell(Event::Assigned(ONE, Epoch::new(1)));
    (1..=3).for_each(|tag| fake.deliver(inbound_of(1, 1, tag)));
    a_while().await;
    let drain_by = Moment::from_start(Duration::from_secs(3600));
    fake.tell(Event::Revoking { unit: ONE, epoch: Epoch::new(1), drain_by });
    a_while().await;
    assert_eq!(fake.verbs(), [Verb::Release(2), Verb::Release(3)]);
    assert!(!gated.is_cancelled(0), "what runs may finish");
    // What comes in spite of the revocation goes back at once.
    fake.deliver(inbound_of(1, 1, 4));
    gated.gate.add_permits(9);
    until("settled", || gated.consumer.counters().settled == 1).await;
    assert_eq!(gated.started(), ["m1 1"]);
    assert!(fake.verbs().contains(&Verb::Release(4)) && fake.verbs().contains(&Verb::Settle(1, Handled)));
    fake.tell(Event::Lost(ONE, Epoch::new(1)));

    // The unit comes back, and what was given back counts no attempt.
    fake.tell(Event::Assigned(ONE, Epoch::new(2)));
    fake.deliver(inbound_of(1, 2, 2));
    until("settled", || gated.consumer.counters().settled == 2).await;
    assert_eq!(gated.started(), ["m1 1", "m2 1"]);
}

#[tokio::test(start_paused = true)]
async fn a_success_after_the_loss_of_its_unit_is_unknown_and_reaches_no_broker() {
    let gated = Gated::on(&partitioned()).await;
    let fake = &gated.bench.fake;
    fake.tell(Event::Assigned(ONE, Epoch::new(1)));
    fake.deliver(inbound_of(1, 1, 1));
    fake.deliver(inbound_of(1, 1, 2));
    a_while().await;
    fake.tell(Event::Lost(ONE, Epoch::new(1)));
    // The same message comes again: it does not run beside its first run.
    fake.tell(Event::Assigned(ONE, Epoch::new(2)));
    fake.deliver(inbound_of(1, 2, 1));
    a_while().await;
    assert!(gated.is_cancelled(0));
    assert_eq!(gated.started(), ["m1 1"]);
    gated.gate.add_permits(1);
    a_while().await;
    assert_eq!(gated.started(), ["m1 1", "m1 1"], "the late failure counted no attempt");
    gated.gate.add_permits(1);
    until("settled", || gated.consumer.counters().settled == 1).await;
    assert_eq!(fake.verbs(), [Verb::Settle(1, Handled)], "only the second run is settled");
    assert_eq!(gated.consumer.counters().failed, 0);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_ignores_the_loss_is_told_as_unknown_once() {
    let bench = start(&orders("")).await;
    let gate = Arc::new(Semaphore::new(0));
    let waits = Arc::clone(&gate);
    let consumer = bench
        .consume(move |_: Delivery<Bytes>, _: HandlerContext| {
            let waits = Arc::clone(&waits);
            async move {
                waits.acquire().await?.forget();
                Ok(())
            }
        })
        .await;
    bench.fake.deliver(inbound(1));
    a_while().await;
    let broken = Failure::new(FailureCategory::TransientInfrastructure, "BROKEN".into(), "gone");
    bench.fake.tell(Event::Interrupted(broken));
    bench.fake.deliver(inbound_of(0, 2, 1));
    a_while().await;
    gate.add_permits(2);
    until("both", || consumer.counters().unknown == 1 && consumer.counters().settled == 1).await;
    let lines = bench.notes.lines();
    assert_eq!(lines.iter().filter(|line| *line == "unknown m1 STALE_SETTLEMENT").count(), 1, "{lines:?}");
    assert_eq!(bench.fake.verbs(), [Verb::Settle(1, Handled)]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_outlasts_the_drain_of_its_unit_is_cancelled() {
    let gated = Gated::on(&partitioned()).await;
    let fake = &gated.bench.fake;
    fake.tell(Event::Assigned(ONE, Epoch::new(1)));
    fake.deliver(inbound_of(1, 1, 1));
    a_while().await;
    let drain_by = Moment::from_start(Duration::from_secs(2));
    fake.tell(Event::Revoking { unit: ONE, epoch: Epoch::new(1), drain_by });
    a_while().await;
    assert!(!gated.is_cancelled(0));
    until("cancelled", || gated.is_cancelled(0)).await;
    gated.gate.add_permits(1);
    a_while().await;
    assert_eq!(fake.verbs(), []);
    assert_eq!(gated.consumer.counters().failed, 0);
}

#[tokio::test(start_paused = true)]
async fn deliveries_of_a_former_epoch_are_dropped() {
    let gated = Gated::on(&partitioned()).await;
    let fake = &gated.bench.fake;
    fake.tell(Event::Assigned(ONE, Epoch::new(2)));
    fake.deliver(inbound_of(1, 1, 1));
    a_while().await;
    assert_eq!(gated.started(), Vec::<String>::new());
    assert_eq!((gated.consumer.counters().released, fake.verbs().len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_revocation_overtakes_handlers_and_retries_that_never_end() {
    let retry =
        "retry = { strategy = \"IN_PLACE\", max_attempts = \"unlimited\", first = \"1s\", max = \"1s\" }";
    let bench = start(&profile("orders", "PARTITION", retry)).await;
    let consumer = bench
        .consume(|_: Delivery<Bytes>, _: HandlerContext| async {
            Err(HandlerFailure::transient("DOWN", "down"))
        })
        .await;
    bench.fake.tell(Event::Assigned(ONE, Epoch::new(1)));
    bench.fake.deliver(inbound_of(1, 1, 1));
    until("failed a few times", || consumer.counters().failed == 3).await;
    let drain_by = Moment::from_start(Duration::from_secs(3600));
    bench.fake.tell(Event::Revoking { unit: ONE, epoch: Epoch::new(1), drain_by });
    a_while().await;
    assert_eq!(bench.fake.verbs(), [Verb::Release(1)], "neither settled nor given up");
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert_eq!(consumer.counters().failed, 3);
}

#[tokio::test(start_paused = true)]
async fn a_stop_settles_what_finishes_and_gives_back_what_does_not() {
    let gated = Gated::on(&orders("consumer = { concurrency = 2 }")).await;
    let fake = &gated.bench.fake;
    (1..=4).for_each(|tag| fake.deliver(inbound(tag)));
    a_while().await;
    let began = tokio::time::Instant::now();
    gated.gate.add_permits(1);
    let report = gated.consumer.stop(Duration::from_secs(10)).await;
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(!report.timed_out && report.is_clean(), "{report}");
    assert_eq!(gated.consumer.counters().settled, 1);
    let left: Vec<_> = report.unsettled.iter().map(|left| left.id.clone().unwrap().to_string()).collect();
    assert_eq!(left, ["m3", "m4", "m2"]);
    assert!(report.unsettled.iter().all(|left| left.because == LeftBecause::Released));
    assert_eq!(fake.verbs().iter().filter(|verb| matches!(verb, Verb::Settle(..))).count(), 1);
    assert_eq!(gated.dropped.load(Ordering::SeqCst), 2, "no handler runs on");
    assert!(gated.is_cancelled(1) && !gated.is_cancelled(0));
    assert_eq!(fake.closed(), ["orders"]);
    let again = gated.consumer.stop(Duration::ZERO).await;
    assert_eq!(again.unsettled.len(), 3, "the second stop tells the same");
    assert_eq!(gated.consumer.counters().failed, 0);
}

#[tokio::test(start_paused = true)]
async fn a_stop_lists_settlements_without_proof_and_ends_by_its_deadline() {
    let gated = Gated::on(&orders("")).await;
    let fake = &gated.bench.fake;
    fake.answer_settlements([Answer::Hold, Answer::Hold]);
    gated.gate.add_permits(1);
    fake.deliver(inbound(1));
    fake.deliver(inbound(2));
    a_while().await;
    let began = tokio::time::Instant::now();
    let report = gated.consumer.stop(Duration::from_secs(4)).await;
    assert!(began.elapsed() <= Duration::from_secs(4));
    let mut left: Vec<_> = report.unsettled.iter().map(|left| left.because).collect();
    left.sort_by_key(|because| because.to_string());
    assert_eq!(left, [LeftBecause::Abandoned, LeftBecause::Unknown]);
    assert!(!report.is_clean());
    assert_eq!(gated.bench.notes.count("unknown m1 SETTLEMENT_TIMED_OUT"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stop_without_time_returns_at_once_and_settles_nothing() {
    let gated = Gated::on(&orders("")).await;
    gated.bench.fake.deliver(inbound(1));
    a_while().await;
    let began = tokio::time::Instant::now();
    let _report = gated.consumer.stop(Duration::ZERO).await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    until("ended", || !gated.consumer.health().running).await;
    assert!(gated.bench.fake.verbs().iter().all(|verb| matches!(verb, Verb::Release(_))));
    assert_eq!(gated.dropped.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stop_or_idle_that_is_dropped_after_any_poll_breaks_nothing() {
    for polls in 0..4 {
        let gated = Gated::on(&orders("")).await;
        gated.bench.fake.deliver(inbound(1));
        a_while().await;
        {
            let mut idle = Box::pin(gated.consumer.idle(Duration::from_secs(1)));
            let mut stop = Box::pin(gated.consumer.stop(Duration::from_secs(5)));
            for _ in 0..polls {
                assert!((&mut idle).now_or_never().is_none());
                assert!((&mut stop).now_or_never().is_none());
                tokio::task::yield_now().await;
            }
        }
        gated.gate.add_permits(9);
        until("settled", || gated.consumer.counters().settled == 1).await;
        a_while().await;
        assert_eq!(gated.consumer.health().running, polls == 0, "a stop that was polled goes on");
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_the_handle_detaches_and_dropping_everything_sends_nothing() {
    let gated = Gated::on(&orders("")).await;
    let Gated { bench, consumer, gate, dropped, .. } = gated;
    drop(consumer);
    bench.fake.deliver(inbound(1));
    gate.add_permits(1);
    until("settled without a handle", || bench.notes.count("settled m1") == 1).await;
    bench.fake.deliver(inbound(2));
    a_while().await;
    let Bench { fake, notes, messaging } = bench;
    drop(messaging);
    until("the handler is gone", || dropped.load(Ordering::SeqCst) == 2).await;
    assert_eq!(fake.verbs(), [Verb::Settle(1, Handled)]);
    assert_eq!(notes.count("released m2"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_stops_every_consumer_and_counts_what_is_without_proof() {
    let gated = Gated::on(&orders("")).await;
    gated.bench.fake.answer_settlements([Answer::Hold]);
    gated.bench.fake.deliver(inbound(1));
    gated.bench.fake.deliver(inbound(2));
    gated.gate.add_permits(2);
    a_while().await;
    let report = gated.bench.messaging.shutdown(Duration::from_secs(10)).await;
    assert_eq!((report.settled, report.unsettled.len()), (1, 1), "{report}");
    assert!(!gated.consumer.health().running);
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_panics_at_every_event_costs_no_message_and_no_other_observer_its_event() {
    struct Bomb;
    impl Observer for Bomb {
        fn observe(&self, _: &Observed<'_>) {
            panic!("an observer panics");
        }
    }
    let (fake, notes) = (consumer_support::Fake::default(), Arc::new(consumer_support::Notes::default()));
    let retry = "retry = { strategy = \"IN_PLACE\", max_attempts = 2, first = \"1s\", max = \"1s\" }";
    let messaging = Messaging::builder()
        .transport("main", fake.clone())
        .profiles(consign_policy::ProfileSpecs::from_toml(&orders(retry)).unwrap())
        .observer(Arc::new(Bomb))
        .observer(notes.clone())
        .build()
        .await
        .unwrap();
    let codec = consign_core_api::BytesCodec::new();
    let handler = |_: Delivery<Bytes>, context: HandlerContext| {
        let second = context.attempt().get() > 1;
        std::future::ready(if second { Ok(()) } else { Err(HandlerFailure::transient("DOWN", "down")) })
    };
    let consumer = messaging.consume_with("orders", "billing", codec, handler).await.unwrap();
    fake.deliver(inbound(1));
    until("settled", || consumer.counters().settled == 1).await;
    assert_eq!(notes.lines(), ["failed m1 1 DOWN", "retried m1 2 in place", "settled m1"]);
    assert!(consumer.health().running);
    assert!(consumer.stop(Duration::from_secs(1)).await.is_clean());
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_an_adapter_brings_down_keeps_nobody_waiting() {
    let gated = Gated::on(&orders("")).await;
    let Gated { bench, consumer, gate, .. } = gated;
    bench.fake.answer_settlements([Answer::Panic]);
    bench.fake.deliver(inbound(1));
    bench.fake.deliver(inbound(2));
    gate.add_permits(1);
    until("it ended", || !consumer.health().running).await;
    assert_eq!(consumer.idle(Duration::from_secs(1)).await.unwrap_err().code(), "CONSUMER_STOPPED");
    assert!(!consumer.stop(Duration::from_secs(1)).await.timed_out);
    assert_eq!(bench.notes.count("settled"), 0);
    assert_eq!(bench.notes.count("released m2"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_died_is_seen_in_the_health_until_somebody_stops_its_consumer() {
    let retry = "retry = { strategy = \"RETRY_DESTINATION\", impact = \"ALLOW_REORDER\", max_attempts = 2, \
                 destination = \"orders.retry\" }\non_exhausted = \"discard\"";
    for rung in [false, true] {
        let profiles = if rung { orders(retry) + &profile("orders.retry", "NONE", "") } else { orders("") };
        let gated = Gated::on(&profiles).await;
        let Gated { bench, consumer, gate, .. } = gated;
        assert!(bench.messaging.health().await.ready);
        bench.fake.answer_settlements([Answer::Panic]);
        bench.fake.deliver(inbound(1));
        gate.add_permits(1);
        until("its settlement was asked", || !bench.fake.verbs().is_empty()).await;
        a_while().await;
        let health = bench.messaging.health().await;
        assert!(!health.ready, "{health:?}");
        assert_eq!((consumer.health().running, consumer.health().halted_units), (rung, 1));
        let idle = consumer.idle(Duration::from_secs(1)).await.unwrap_err();
        assert_eq!(idle.code(), if rung { "UNIT_HALTED" } else { "CONSUMER_STOPPED" });
        assert!(!consumer.stop(Duration::from_secs(1)).await.timed_out);
        assert!(bench.messaging.health().await.ready, "it was stopped");
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_fails_while_its_unit_goes_or_all_stops_is_given_back_at_once() {
    let retry = "retry = { strategy = \"IN_PLACE\", max_attempts = 9, first = \"10m\", max = \"10m\" }";
    for stops in [true, false] {
        let bench = start(&profile("orders", "PARTITION", retry)).await;
        let consumer = bench
            .consume(|_: Delivery<Bytes>, _: HandlerContext| async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Err(HandlerFailure::transient("DOWN", "down"))
            })
            .await;
        bench.fake.tell(Event::Assigned(ONE, Epoch::new(1)));
        bench.fake.deliver(inbound_of(1, 1, 1));
        a_while().await;
        let began = tokio::time::Instant::now();
        if stops {
            consumer.stop(Duration::from_secs(60)).await;
        } else {
            let drain_by = Moment::from_start(Duration::from_secs(3600));
            bench.fake.tell(Event::Revoking { unit: ONE, epoch: Epoch::new(1), drain_by });
            until("given back", || !bench.fake.verbs().is_empty()).await;
        }
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        assert_eq!(bench.fake.verbs(), [Verb::Release(1)]);
    }
}

#[tokio::test(start_paused = true)]
async fn news_of_a_former_epoch_changes_nothing() {
    let gated = Gated::on(&partitioned()).await;
    let fake = &gated.bench.fake;
    fake.tell(Event::Assigned(ONE, Epoch::new(2)));
    fake.tell(Event::Assigned(ONE, Epoch::new(1)));
    let drain_by = Moment::from_start(Duration::ZERO);
    fake.tell(Event::Revoking { unit: ONE, epoch: Epoch::new(1), drain_by });
    fake.tell(Event::Lost(ONE, Epoch::new(1)));
    fake.tell(Event::Assigned(ONE, Epoch::new(2)));
    fake.tell(Event::Assigned(ONE, Epoch::new(1)));
    fake.deliver(inbound_of(1, 1, 7));
    a_while().await;
    fake.deliver(inbound_of(1, 2, 1));
    gated.gate.add_permits(2);
    until("settled", || gated.consumer.counters().settled == 1).await;
    assert_eq!(fake.verbs(), [Verb::Settle(1, Handled)]);
    assert_eq!(gated.started(), ["m1 1"]);
}

#[tokio::test(start_paused = true)]
async fn an_adapter_that_delivers_too_much_is_not_read_until_that_is_worked_off() {
    let gated = Gated::on(&orders("")).await;
    (0..1000).for_each(|tag| gated.bench.fake.deliver(inbound(tag)));
    a_while().await;
    let most = 2 * gated.bench.fake.spec("orders").outstanding.get();
    assert_eq!(gated.consumer.counters().received, most as u64);
    gated.gate.add_permits(1000);
    until("all", || gated.consumer.counters().settled == 1000).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_lost_before_it_was_begun_does_not_come_too_often() {
    let gated =
        Gated::on(&orders("consumer = { concurrency = 1, max_deliveries = 2 }\non_exhausted = \"discard\""))
            .await;
    let fake = &gated.bench.fake;
    let broken = || Failure::new(FailureCategory::TransientInfrastructure, "BROKEN".into(), "broken");
    fake.deliver(inbound(1).counted(1));
    a_while().await;
    for count in 1..=4 {
        fake.deliver(inbound(2).counted(count));
        a_while().await;
        fake.tell(Event::Interrupted(broken()));
        a_while().await;
    }
    fake.deliver(inbound(2).counted(5));
    gated.gate.add_permits(2);
    until("handled", || gated.consumer.counters().settled == 1).await;
    assert_eq!(gated.bench.notes.count("settled m2"), 1);
    assert_eq!(gated.bench.notes.count("discarded"), 0);
    // What was begun does count: its handler may be what broke the connection.
    for count in 1..=2 {
        fake.deliver(inbound(3).counted(count));
        a_while().await;
        fake.tell(Event::Interrupted(broken()));
        gated.gate.add_permits(1);
        a_while().await;
    }
    fake.deliver(inbound(3).counted(3));
    until("given up", || gated.bench.notes.count("discarded m3 MAX_DELIVERIES_EXCEEDED") == 1).await;
}

/// Drops the last handle of the library as soon as a delivery is told of.
struct LastHandle(Mutex<Option<Messaging>>);

impl Observer for LastHandle {
    fn observe(&self, event: &Observed<'_>) {
        if matches!(event, Observed::Received { .. }) {
            drop(self.0.lock().unwrap().take());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn at_most_once_begins_nothing_in_the_turn_in_which_the_last_handle_was_dropped() {
    let (fake, last) = (Fake::default(), Arc::new(LastHandle(Mutex::new(None))));
    let messaging = Messaging::builder()
        .transport("main", fake.clone())
        .profiles(ProfileSpecs::from_toml(&orders("").replace("AT_LEAST_ONCE", "AT_MOST_ONCE")).unwrap())
        .observer(last.clone())
        .build()
        .await
        .unwrap();
    let handled = |_: Delivery<Bytes>, _: HandlerContext| async { Ok(()) };
    let consumer = messaging.consume_with("orders", "billing", BytesCodec::new(), handled).await.unwrap();
    *last.0.lock().unwrap() = Some(messaging);
    fake.deliver(inbound(1));
    until("the consumer has ended", || !consumer.health().running).await;
    assert_eq!(fake.verbs(), []);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_drops_the_last_handle_settles_nothing() {
    let last = Arc::new(Mutex::new(None::<Messaging>));
    let bench = start(&orders("")).await;
    let held = Arc::clone(&last);
    let consumer = bench
        .consume(move |_: Delivery<Bytes>, _: HandlerContext| {
            drop(held.lock().unwrap().take());
            async { Ok(()) }
        })
        .await;
    let Bench { fake, messaging, .. } = bench;
    *last.lock().unwrap() = Some(messaging);
    fake.deliver(inbound(1));
    until("the consumer has ended", || !consumer.health().running).await;
    assert_eq!(fake.verbs(), []);
}
