//! Handlers, settlement and its evidence.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod consumer_support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use consign_core_api::settlement::SettledBecause::{BeforeHandling, Discarded, Handled};
use consign_core_api::{BytesCodec, Payload};
use consign_runtime::consumer::{Delivery, Handler, HandlerContext, HandlerFailure, idempotent};
use consumer_support::{Answer, Verb, a_while, id, inbound, keyed, orders, profile, start, until};
use tokio::sync::Semaphore;

type Handled_ = Result<(), HandlerFailure>;

#[tokio::test(start_paused = true)]
async fn a_message_is_settled_after_its_handler_and_not_before() {
    let bench = start(&orders("")).await;
    let gate = Arc::new(Semaphore::new(0));
    let waits = Arc::clone(&gate);
    let consumer = bench
        .consume(move |delivery: Delivery<Bytes>, _: HandlerContext| {
            let waits = Arc::clone(&waits);
            async move {
                assert_eq!(delivery.require()?, "value 1");
                waits.acquire().await?.forget();
                Ok(())
            }
        })
        .await;
    bench.fake.deliver(inbound(1));
    a_while().await;
    assert_eq!(bench.fake.verbs(), []);
    gate.add_permits(1);
    until("settled", || consumer.counters().settled == 1).await;
    assert_eq!(bench.fake.verbs(), [Verb::Settle(1, Handled)]);
    assert_eq!(bench.notes.lines(), ["settled m1"]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_fails_panics_or_never_returns_settles_nothing() {
    let bench = start(&orders("consumer = { handler_timeout = \"1s\" }")).await;
    let consumer = bench
        .consume(|delivery: Delivery<Bytes>, _: HandlerContext| async move {
            match delivery.message_id() {
                Some(first) if *first == id(1) => Err(HandlerFailure::transient("DOWN", "down")),
                Some(second) if *second == id(2) => panic!("boom"),
                _ => std::future::pending().await,
            }
        })
        .await;
    (1..=3).for_each(|tag| bench.fake.deliver(inbound(tag)));
    until("all failed", || consumer.counters().failed == 3).await;
    a_while().await;
    assert_eq!(bench.fake.verbs(), []);
    let lines = bench.notes.lines();
    for line in ["failed m1 1 DOWN", "failed m2 1 HANDLER_PANICKED", "failed m3 1 HANDLER_TIMED_OUT"] {
        assert!(lines.contains(&line.to_owned()), "{lines:?}");
    }
    assert!(consumer.is_halted());
    assert_eq!(consumer.health().halted_units, 3);
    assert!(!bench.messaging.health().await.ready);
}

#[tokio::test(start_paused = true)]
async fn a_panic_outside_the_future_is_caught_too() {
    struct Careless;
    impl Handler<Bytes> for Careless {
        #[allow(clippy::manual_async_fn, reason = "the panic is to happen before there is a future")]
        fn handle(&self, _: Delivery<Bytes>, _: HandlerContext) -> impl Future<Output = Handled_> + Send {
            assert!(std::hint::black_box(false), "before the future");
            async { Ok(()) }
        }
    }
    let bench = start(&orders("")).await;
    let consumer = bench.consume(Careless).await;
    bench.fake.deliver(inbound(1));
    until("failed", || consumer.counters().failed == 1).await;
    assert_eq!(bench.notes.count("failed m1 1 HANDLER_PANICKED"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_payload_that_cannot_be_decoded_is_not_retried() {
    let retry = "retry = { strategy = \"IN_PLACE\", max_attempts = 5 }\non_exhausted = \"discard\"";
    let bench = start(&orders(retry)).await;
    let called = Arc::new(AtomicUsize::new(0));
    let calls = Arc::clone(&called);
    let consumer = bench
        .messaging
        .consume("orders", "billing", move |_: Delivery<u32>, _: HandlerContext| {
            calls.fetch_add(1, Ordering::SeqCst);
            async { Ok(()) }
        })
        .await
        .unwrap();
    bench.fake.deliver(inbound(1));
    until("discarded", || consumer.counters().discarded == 1).await;
    until("settled", || consumer.counters().settled == 1).await;
    assert_eq!(called.load(Ordering::SeqCst), 0);
    assert_eq!(bench.fake.verbs(), [Verb::Settle(1, Discarded)]);
    assert_eq!(
        bench.notes.lines(),
        ["failed m1 1 DECODE_FAILED", "discarded m1 DECODE_FAILED", "settled m1"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_tombstone_never_reaches_the_codec() {
    let bench = start(&orders("")).await;
    let consumer = bench
        .messaging
        .consume("orders", "billing", |delivery: Delivery<u32>, _: HandlerContext| async move {
            assert!(delivery.value().is_none() && delivery.require().is_err());
            Ok(())
        })
        .await
        .unwrap();
    let mut tombstone = inbound(1);
    let (_, parts) = consign_core_api::Message::<()>::tombstone().into_parts();
    tombstone.message = consign_core_api::EncodedMessage::new(Payload::Tombstone, parts);
    bench.fake.deliver(tombstone);
    until("settled", || consumer.counters().settled == 1).await;
}

#[tokio::test(start_paused = true)]
async fn only_evidence_of_the_demanded_level_counts_as_settled() {
    let bench =
        start(&orders("consumer = { settlement = \"committed\", settlement_deadline = \"9s\" }")).await;
    let consumer = bench.consume(ok).await;
    let answers = [Answer::Yes, Answer::Processed, Answer::Unknown, Answer::Drop, Answer::Hold];
    for (tag, answer) in (1..).zip(answers) {
        bench.fake.answer_settlements([answer]);
        bench.fake.deliver(inbound(tag));
        a_while().await;
    }
    until("all concluded", || consumer.counters().unknown == 4).await;
    assert_eq!(consumer.counters().settled, 1);
    assert_eq!(
        bench.notes.lines(),
        [
            "settled m1",
            "unknown m2 SETTLEMENT_BELOW_DEMAND",
            "unknown m3 LOST",
            "unknown m4 COMPLETION_DROPPED",
            "unknown m5 SETTLEMENT_TIMED_OUT",
        ]
    );
    // The answer comes after all: it changes nothing, and is counted when the driver ends.
    bench.fake.settle_held();
    consumer.stop(Duration::from_secs(1)).await;
    assert_eq!((consumer.counters().settled, consumer.counters().late), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn no_more_handlers_run_at_once_than_the_profile_says() {
    let bench = start(&orders("consumer = { concurrency = 3 }")).await;
    let running = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let (now, gate) = (Arc::clone(&running), Arc::new(Semaphore::new(0)));
    let waits = Arc::clone(&gate);
    let consumer = bench
        .consume(move |_: Delivery<Bytes>, _: HandlerContext| {
            let (now, waits) = (Arc::clone(&now), Arc::clone(&waits));
            async move {
                now.1.fetch_max(now.0.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                waits.acquire().await?.forget();
                now.0.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            }
        })
        .await;
    (1..=20).for_each(|tag| bench.fake.deliver(inbound(tag)));
    a_while().await;
    assert_eq!(running.0.load(Ordering::SeqCst), 3);
    gate.add_permits(20);
    until("settled", || consumer.counters().settled == 20).await;
    assert_eq!(running.1.load(Ordering::SeqCst), 3);
    assert_eq!(bench.fake.spec("orders").outstanding.get(), 64);
}

#[tokio::test(start_paused = true)]
async fn one_key_is_handled_in_order_and_others_are_not_kept_waiting() {
    let bench = start(&profile("orders", "KEY", "")).await;
    let starts = Arc::new(Mutex::new(Vec::new()));
    let (seen, gate) = (Arc::clone(&starts), Arc::new(Semaphore::new(0)));
    let waits = Arc::clone(&gate);
    let consumer = bench
        .consume(move |delivery: Delivery<Bytes>, _: HandlerContext| {
            seen.lock().unwrap().push(delivery.message_id().unwrap().to_string());
            let waits = Arc::clone(&waits);
            async move {
                if delivery.key().is_some_and(|key| key == "a") {
                    waits.acquire().await?.forget();
                }
                Ok(())
            }
        })
        .await;
    for (tag, key) in [(1, "a"), (2, "a"), (3, "b"), (4, "a"), (5, "b")] {
        bench.fake.deliver(keyed(tag, key));
    }
    until("b is settled", || consumer.counters().settled == 2).await;
    assert_eq!(*starts.lock().unwrap(), ["m1", "m3", "m5"]);
    gate.add_permits(3);
    until("all", || consumer.counters().settled == 5).await;
    assert_eq!(*starts.lock().unwrap(), ["m1", "m3", "m5", "m2", "m4"]);
}

async fn ok(_: Delivery<Bytes>, _: HandlerContext) -> Handled_ {
    Ok(())
}

const AT_MOST_ONCE: &str =
    "[destinations.orders]\ntransport = \"main\"\ndelivery = \"AT_MOST_ONCE\"\nordering = \"NONE\"\n";

#[tokio::test(start_paused = true)]
async fn at_most_once_settles_first_and_handles_only_on_proof() {
    let bench = start(AT_MOST_ONCE).await;
    let handled = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&handled);
    let consumer = bench
        .consume(move |delivery: Delivery<Bytes>, _: HandlerContext| {
            seen.lock().unwrap().push(delivery.message_id().unwrap().to_string());
            async { Err(HandlerFailure::transient("DOWN", "down")) }
        })
        .await;
    bench.fake.answer_settlements([Answer::Hold]);
    bench.fake.deliver(inbound(1));
    a_while().await;
    assert_eq!(bench.fake.verbs(), [Verb::Settle(1, BeforeHandling)]);
    assert!(handled.lock().unwrap().is_empty(), "handled before the settlement was proven");
    bench.fake.settle_held();
    until("discarded", || consumer.counters().discarded == 1).await;

    bench.fake.answer_settlements([Answer::Unknown]);
    bench.fake.deliver(inbound(2));
    a_while().await;
    bench.fake.deliver(inbound(3).marked(true));
    until("both are through", || consumer.counters().settled == 2 && consumer.counters().unknown == 1).await;
    a_while().await;
    assert_eq!(*handled.lock().unwrap(), ["m1"], "neither the unproven nor the redelivered one is handled");
    assert_eq!(bench.notes.count("filtered m3"), 1);
    assert!(consumer.idle_within(Duration::from_secs(1), Duration::from_secs(9)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn at_most_once_nobody_is_told_to_expect_a_message_again_whose_handler_was_cut_short() {
    for stops in [true, false] {
        let bench = start(AT_MOST_ONCE).await;
        let consumer = bench.consume(|_: Delivery<Bytes>, _: HandlerContext| std::future::pending()).await;
        bench.fake.deliver(inbound(1));
        until("settled", || consumer.counters().settled == 1).await;
        if stops {
            drop(consumer.stop(Duration::ZERO).await);
            until("ended", || !consumer.health().running).await;
            assert!(consumer.stop(Duration::ZERO).await.unsettled.is_empty());
        } else {
            drop(bench.messaging);
            until("ended", || !consumer.health().running).await;
        }
        assert_eq!(bench.notes.lines(), ["settled m1", "discarded m1 HANDLER_CUT_SHORT"]);
        assert_eq!((consumer.counters().discarded, consumer.counters().released), (1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_came_too_often_is_ended_unhandled() {
    let bench = start(&orders("consumer = { max_deliveries = 3 }\non_exhausted = \"discard\"")).await;
    let called = Arc::new(AtomicUsize::new(0));
    let calls = Arc::clone(&called);
    let consumer = bench
        .consume(move |_: Delivery<Bytes>, _: HandlerContext| {
            calls.fetch_add(1, Ordering::SeqCst);
            async { Ok(()) }
        })
        .await;
    bench.fake.deliver(inbound(1).counted(3));
    bench.fake.deliver(inbound(2).counted(4));
    until("both", || consumer.counters().settled == 2).await;
    assert_eq!(called.load(Ordering::SeqCst), 1);
    assert_eq!(bench.notes.count("discarded m2 MAX_DELIVERIES_EXCEEDED"), 1);
}

#[tokio::test(start_paused = true)]
async fn deadlines_are_extended_while_a_message_is_handled_waits_or_backs_off() {
    let consumer =
        "consumer = { concurrency = 1, settlement_deadline = \"30s\", handler_timeout = \"100s\" }";
    let bench = start(&profile("orders", "KEY", consumer)).await;
    let _consumer = bench.consume(|_: Delivery<Bytes>, _: HandlerContext| std::future::pending()).await;
    bench.fake.deliver(keyed(1, "a"));
    bench.fake.deliver(keyed(2, "a"));
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(bench.fake.extended(), vec![vec![1, 2]; 3]);
}

#[tokio::test(start_paused = true)]
async fn without_extension_a_late_success_is_not_settled() {
    let more = "consumer = { extend = false, settlement_deadline = \"3s\", handler_timeout = \"9s\" }";
    let bench = start(&orders(more)).await;
    let consumer = bench
        .consume(|delivery: Delivery<Bytes>, _: HandlerContext| async move {
            let late = delivery.message_id() == Some(&id(1));
            tokio::time::sleep(Duration::from_secs(if late { 4 } else { 2 })).await;
            Ok(())
        })
        .await;
    bench.fake.deliver(inbound(1));
    bench.fake.deliver(inbound(2));
    until("both", || consumer.counters().settled + consumer.counters().unknown == 2).await;
    assert_eq!(bench.fake.verbs(), [Verb::Settle(2, Handled)]);
    assert_eq!(bench.notes.lines(), ["settled m2", "unknown m1 STALE_SETTLEMENT"]);
    assert_eq!(bench.fake.spec("orders").outstanding.get(), 8, "nothing waits here that is not extended");
}

#[tokio::test(start_paused = true)]
async fn side_effects_need_what_protects_them() {
    let idempotency = start(&orders("side_effects = \"IDEMPOTENCY_REQUIRED\"")).await;
    let consume =
        |handler| idempotency.messaging.consume_with("orders", "billing", BytesCodec::new(), handler);
    assert_eq!(consume(ok).await.unwrap_err().code(), "HANDLER_NOT_IDEMPOTENT");
    let inbox = start(&orders("side_effects = \"INBOX_TRANSACTIONAL\"")).await;
    assert_eq!(
        inbox.messaging.consume_with("orders", "b", BytesCodec::new(), ok).await.unwrap_err().code(),
        "INBOX_NOT_CONFIGURED"
    );

    let consumer = idempotency.consume(idempotent(ok)).await;
    let mut without_id = inbound(1);
    without_id.message.set_id(None);
    idempotency.fake.deliver(without_id);
    until("failed", || consumer.counters().failed == 1).await;
    assert_eq!(idempotency.notes.count("failed  1 MESSAGE_ID_MISSING"), 1);
}

#[tokio::test(start_paused = true)]
async fn idle_waits_for_quiet_and_tells_when_a_unit_stands_still() {
    let bench = start(&orders("")).await;
    let consumer = bench
        .consume(|delivery: Delivery<Bytes>, _: HandlerContext| async move {
            tokio::time::sleep(Duration::from_secs(3)).await;
            if delivery.message_id() == Some(&id(2)) {
                return Err(HandlerFailure::permanent("NO", "no"));
            }
            Ok(())
        })
        .await;
    let started = tokio::time::Instant::now();
    bench.fake.deliver(inbound(1));
    consumer.idle(Duration::from_secs(2)).await.unwrap();
    assert!(started.elapsed() >= Duration::from_secs(5), "three in the handler, two of quiet");
    bench.fake.deliver(inbound(2));
    let bounded = consumer.idle_within(Duration::from_secs(2), Duration::from_secs(1)).await;
    assert_eq!(bounded.unwrap_err().code(), "IDLE_TIMED_OUT");
    assert_eq!(consumer.idle(Duration::from_secs(2)).await.unwrap_err().code(), "UNIT_HALTED");
    consumer.stop(Duration::from_secs(1)).await;
    assert_eq!(consumer.idle(Duration::from_secs(2)).await.unwrap_err().code(), "CONSUMER_STOPPED");
}
