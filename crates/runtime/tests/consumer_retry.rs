//! What becomes of a message whose handler failed: in place, redelivery, copies, dead letters, halts.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod consumer_support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use consign_core_api::EncodedMessage;
use consign_core_api::settlement::SettledBecause::{Copied, Handled};
use consign_runtime::consumer::{Delivery, HandlerContext, HandlerFailure};
use consumer_support::{
    Answer, Fake, Verb, a_while, id, inbound, keyed, orders, profile, sequence_of, start, start_on, until,
};

const IN_PLACE: &str =
    "retry = { strategy = \"IN_PLACE\", max_attempts = 3, first = \"1s\", max = \"1s\", jitter = 0.0 }";

/// Notes each start as `id attempt`, and fails the messages with an even number.
fn failing_evens(
    starts: &Arc<Mutex<Vec<String>>>,
) -> impl Fn(Delivery<Bytes>, HandlerContext) -> std::future::Ready<Result<(), HandlerFailure>> + use<> {
    let starts = Arc::clone(starts);
    move |delivery, context| {
        let id = delivery.message_id().unwrap().to_string();
        let even = id.trim_start_matches('m').parse::<u64>().unwrap().is_multiple_of(2);
        starts.lock().unwrap().push(format!("{id} {}", context.attempt()));
        std::future::ready(if even {
            Err(HandlerFailure::transient("DOWN", "no route to it"))
        } else {
            Ok(())
        })
    }
}

fn header<'a>(message: &'a EncodedMessage, name: &str) -> Option<&'a str> {
    message.headers().first(name).and_then(|header| header.text())
}

#[tokio::test(start_paused = true)]
async fn a_retry_in_place_keeps_the_order_of_its_key_and_gives_up_its_slot() {
    let more = format!("{IN_PLACE}\non_exhausted = \"discard\"\nconsumer = {{ concurrency = 1 }}");
    let bench = start(&profile("orders", "KEY", &more)).await;
    let starts = Arc::new(Mutex::new(Vec::new()));
    let consumer = bench.consume(failing_evens(&starts)).await;
    for (tag, key) in [(2, "a"), (3, "a"), (5, "b")] {
        bench.fake.deliver(keyed(tag, key));
    }
    a_while().await;
    assert_eq!(*starts.lock().unwrap(), ["m2 1", "m5 1"], "the only slot is free for b, not for 3");
    until("all", || consumer.counters().settled == 3).await;
    assert_eq!(*starts.lock().unwrap(), ["m2 1", "m5 1", "m2 2", "m2 3", "m3 1"]);
    assert_eq!(consumer.counters().retried, 2);
    assert_eq!(bench.notes.count("retried m2"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_lane_that_backs_off_pauses_its_unit_when_it_is_full_and_resumes_it() {
    let retry = "retry = { strategy = \"IN_PLACE\", max_attempts = 2, first = \"9s\", max = \"9s\" }";
    let more = format!("{retry}\non_exhausted = \"discard\"");
    let bench = start(&profile("orders", "KEY", &more)).await;
    let starts = Arc::new(Mutex::new(Vec::new()));
    let consumer = bench.consume(failing_evens(&starts)).await;
    bench.fake.deliver(keyed(2, "a"));
    for tag in 0..40 {
        bench.fake.deliver(keyed(2 * tag + 11, "a"));
    }
    until("paused", || bench.fake.verbs().contains(&Verb::Pause(0))).await;
    until("all", || consumer.counters().settled == 41).await;
    let flow: Vec<_> = bench
        .fake
        .verbs()
        .into_iter()
        .filter(|verb| matches!(verb, Verb::Pause(_) | Verb::Resume(_)))
        .collect();
    assert_eq!(flow, [Verb::Pause(0), Verb::Resume(0)]);
}

#[tokio::test(start_paused = true)]
async fn a_redelivery_counts_an_attempt_that_is_known_when_it_comes_again() {
    let retry =
        "retry = { strategy = \"REDELIVERY\", max_attempts = 2, first = \"2s\", max = \"2s\", jitter = 0.0 }";
    let bench = start(&orders(&format!("{retry}\non_exhausted = \"discard\""))).await;
    let starts = Arc::new(Mutex::new(Vec::new()));
    let consumer = bench.consume(failing_evens(&starts)).await;
    bench.fake.deliver(inbound(2));
    until("given back", || !bench.fake.verbs().is_empty()).await;
    assert_eq!(bench.fake.verbs(), [Verb::Redeliver(2, Duration::from_secs(2))]);
    bench.fake.deliver(inbound(2).counted(2));
    until("discarded", || consumer.counters().settled == 1).await;
    assert_eq!(*starts.lock().unwrap(), ["m2 1", "m2 2"]);
}

#[tokio::test(start_paused = true)]
async fn an_ordered_redelivery_takes_those_behind_it_with_it() {
    let retry =
        "retry = { strategy = \"REDELIVERY\", max_attempts = 2, first = \"2s\", max = \"2s\", jitter = 0.0 }";
    let more = format!("{retry}\non_exhausted = \"discard\"");
    let bench = start(&profile("orders", "PARTITION", &more)).await;
    let starts = Arc::new(Mutex::new(Vec::new()));
    let consumer = bench.consume(failing_evens(&starts)).await;
    [2, 3, 5].into_iter().for_each(|tag| bench.fake.deliver(inbound(tag)));
    until("given back", || bench.fake.verbs().len() == 3).await;
    let delay = Duration::from_secs(2);
    assert_eq!(bench.fake.verbs(), [Verb::Redeliver(2, delay), Verb::Release(3), Verb::Release(5)]);
    assert_eq!(*starts.lock().unwrap(), ["m2 1"]);
    assert_eq!(consumer.counters().released, 2);
}

fn with_dead_letter(more: &str) -> String {
    orders(&format!("dead_letter = \"orders.dead\"\n{more}")) + &profile("orders.dead", "NONE", "")
}

#[tokio::test(start_paused = true)]
async fn the_source_is_terminated_only_after_its_copy_is_confirmed() {
    let bench = start(&with_dead_letter("")).await;
    let consumer = bench.consume(failing_evens(&Arc::default())).await;
    bench.fake.answer_publishes([Answer::Hold]);
    let mut source = inbound(2);
    source.message.headers_mut().push("x", "1");
    source.message.headers_mut().push("x", "2");
    bench.fake.deliver(source);
    until("the copy is sent", || bench.fake.published().len() == 1).await;
    a_while().await;
    assert_eq!(bench.fake.verbs(), []);
    bench.fake.accept_held_publishes();
    until("settled", || consumer.counters().settled == 1).await;
    assert_eq!(bench.fake.verbs(), [Verb::Terminate(2, Copied)]);
    assert_eq!(bench.notes.lines(), ["failed m2 1 DOWN", "dead m2 orders.dead", "settled m2"]);
    assert_eq!(consumer.counters().dead_lettered, 1);

    let (to, copy) = &bench.fake.published()[0];
    assert_eq!((to.as_str(), copy.id()), ("orders.dead", Some(&id(2))));
    assert_eq!(copy.payload().as_bytes().unwrap(), "value 2");
    let doubled: Vec<_> = copy.headers().all("x").map(|header| header.text().unwrap()).collect();
    assert_eq!(doubled, ["1", "2"]);
    for (name, value) in [
        ("consign-origin", "orders"),
        ("consign-group", "billing"),
        ("consign-position", "offset:0:2"),
        ("consign-attempt", "1"),
        ("consign-failure-code", "DOWN"),
        ("consign-failure-category", "TRANSIENT_INFRASTRUCTURE"),
        ("consign-failure-text", "no route to it"),
    ] {
        assert_eq!(header(copy, name), Some(value), "{name}");
    }
    assert_eq!(header(copy, "consign-not-before"), None);
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_is_never_confirmed_halts_and_leaves_the_source_unsettled() {
    let bench = start(&with_dead_letter("")).await;
    let consumer = bench.consume(failing_evens(&Arc::default())).await;
    bench.fake.answer_publishes([Answer::No, Answer::Unknown, Answer::No, Answer::Drop, Answer::No]);
    bench.fake.deliver(inbound(2));
    until("halted", || consumer.is_halted()).await;
    assert_eq!(bench.fake.verbs(), []);
    assert_eq!(bench.fake.published().len(), 5);
    assert_eq!(bench.notes.count("halted m2 COPY_NOT_CONFIRMED"), 1);
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert!(
        bench.fake.extended().last().is_some_and(|tags| tags == &[2]),
        "held, not given back to fail again"
    );
    assert_eq!(bench.fake.published().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_is_confirmed_at_the_second_try_ends_the_source_once() {
    let bench = start(&with_dead_letter("")).await;
    let consumer = bench.consume(failing_evens(&Arc::default())).await;
    bench.fake.answer_publishes([Answer::Unknown]);
    bench.fake.deliver(inbound(2));
    until("settled", || consumer.counters().settled == 1).await;
    assert_eq!(bench.fake.verbs(), [Verb::Terminate(2, Copied)]);
    assert_eq!(bench.fake.published().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_the_broker_takes_for_an_earlier_message_is_no_proof_of_itself() {
    let window = Duration::from_secs(60);
    let bench = start_on(Fake::deduplicating(window), &with_dead_letter("")).await;
    let consumer = bench.consume(failing_evens(&Arc::default())).await;
    bench.fake.answer_publishes([Answer::Deduplicated]);
    let started = tokio::time::Instant::now();
    bench.fake.deliver(inbound(2));
    a_while().await;
    assert_eq!(bench.fake.verbs(), []);
    until("settled", || consumer.counters().settled == 1).await;
    assert!(started.elapsed() >= window, "it is stored once the broker has forgotten the id");

    // Where an earlier sending of the copy had no answer, it is what the broker remembers.
    bench.fake.answer_publishes([Answer::Drop, Answer::Deduplicated]);
    let started = tokio::time::Instant::now();
    bench.fake.deliver(inbound(4));
    until("settled", || consumer.counters().settled == 2).await;
    assert!(started.elapsed() < window);
}

#[tokio::test(start_paused = true)]
async fn what_stands_where_the_source_stands_is_no_copy_of_it_whatever_was_sent_before() {
    let window = Duration::from_secs(60);
    let bench = start_on(Fake::deduplicating(window), &with_dead_letter("")).await;
    let consumer = bench.consume(failing_evens(&Arc::default())).await;
    // The dead letter shares the source's stream. The first sending of the copy has no answer; it was refused as the
    // source's duplicate just like the second.
    bench.fake.answer_publishes([Answer::Unknown, Answer::DeduplicatedAs(7)]);
    let started = tokio::time::Instant::now();
    let mut source = inbound(2);
    source.position = Some(sequence_of(7));
    bench.fake.deliver(source);
    until("settled", || consumer.counters().settled == 1).await;
    assert!(started.elapsed() >= window, "the source was ended without a copy");
    // At a later place, it is the copy.
    bench.fake.answer_publishes([Answer::Unknown, Answer::DeduplicatedAs(9)]);
    let started = tokio::time::Instant::now();
    let mut source = inbound(4);
    source.position = Some(sequence_of(8));
    bench.fake.deliver(source);
    until("settled", || consumer.counters().settled == 2).await;
    assert!(started.elapsed() < window);
}

fn with_rung(more: &str) -> String {
    let retry = "retry = { strategy = \"RETRY_DESTINATION\", impact = \"ALLOW_REORDER\", max_attempts = 2, \
                 destination = \"orders.retry\", first = \"5s\", max = \"5s\", jitter = 0.0 }";
    with_dead_letter(&format!("{retry}\n{more}")) + &profile("orders.retry", "NONE", "")
}

#[tokio::test(start_paused = true)]
async fn a_rung_is_read_in_the_same_group_and_never_before_its_time() {
    let bench = start(&with_rung("")).await;
    let starts = Arc::new(Mutex::new(Vec::new()));
    let consumer = bench.consume(failing_evens(&starts)).await;
    assert_eq!(bench.fake.spec("orders.retry").group.as_str(), "billing");
    bench.fake.deliver(inbound(2));
    until("copied", || consumer.counters().settled == 1).await;
    let (to, copy) = bench.fake.published().remove(0);
    assert_eq!((to.as_str(), header(&copy, "consign-attempt")), ("orders.retry", Some("1")));

    let mut on_rung = inbound(2);
    on_rung.message = copy;
    let came = tokio::time::Instant::now();
    bench.fake.deliver_on("orders.retry", on_rung);
    until("second attempt", || starts.lock().unwrap().len() == 2).await;
    assert!(came.elapsed() >= Duration::from_secs(4), "{:?}", came.elapsed());
    assert_eq!(*starts.lock().unwrap(), ["m2 1", "m2 2"]);
    // Two attempts are all that the origin allows, and its dead letter governs the rung.
    until("dead", || consumer.counters().dead_lettered == 1).await;
    let (to, copy) = bench.fake.published().remove(1);
    assert_eq!((to.as_str(), header(&copy, "consign-origin")), ("orders.dead", Some("orders")));
    assert_eq!(header(&copy, "consign-attempt"), Some("2"));
}

#[tokio::test(start_paused = true)]
async fn copies_of_other_groups_are_settled_unhandled_and_strange_headers_block_nothing() {
    let bench = start(&with_rung("")).await;
    let starts = Arc::new(Mutex::new(Vec::new()));
    let consumer = bench.consume(failing_evens(&starts)).await;
    let copy = |tag: u64, headers: &[(&'static str, &'static str)]| {
        let mut inbound = inbound(tag);
        for (name, value) in headers {
            inbound.message.headers_mut().push(*name, *value);
        }
        inbound
    };
    let origin = ("consign-origin", "orders");
    let foreign = [origin, ("consign-group", "audit"), ("consign-attempt", "1")];
    bench.fake.deliver_on("orders.retry", copy(3, &foreign));
    let redriven = [origin, ("consign-group", "audit"), ("consign-redrive", "1")];
    bench.fake.deliver(copy(5, &redriven));
    until("both settled", || consumer.counters().settled == 2).await;
    assert!(starts.lock().unwrap().is_empty());
    assert_eq!(consumer.counters().filtered, 2);

    let far = [origin, ("consign-not-before", "9999999999999")];
    let came = tokio::time::Instant::now();
    bench.fake.deliver_on("orders.retry", copy(7, &far));
    bench.fake.deliver_on("orders.retry", copy(9, &[origin, ("consign-not-before", "tomorrow")]));
    until("both handled", || consumer.counters().settled == 4).await;
    assert!(came.elapsed() <= Duration::from_secs(6), "a wait is never longer than retry.max");
    assert_eq!(*starts.lock().unwrap(), ["m9 1", "m7 1"]);
    assert_eq!(consumer.counters().filtered, 3);
}

#[tokio::test(start_paused = true)]
async fn a_rung_cannot_be_consumed_by_itself() {
    let bench = start(&with_rung("")).await;
    let handler = |_: Delivery<Bytes>, _: HandlerContext| async { Ok(()) };
    let codec = consign_core_api::BytesCodec::new();
    let refused = bench.messaging.consume_with("orders.retry", "billing", codec, handler).await;
    assert_eq!(refused.unwrap_err().code(), "RUNG_NOT_CONSUMABLE");
}

#[tokio::test(start_paused = true)]
async fn a_handler_whose_own_publish_is_not_confirmed_leaves_its_message_unsettled() {
    let bench = start(&(orders(IN_PLACE) + &profile("receipts", "NONE", ""))).await;
    let consumer = bench
        .consume(|_: Delivery<Bytes>, context: HandlerContext| async move {
            let receipt = consign_core_api::Message::new(7_u32);
            context.publisher::<u32>("receipts")?.publish(receipt).await.into_result()?;
            Ok(())
        })
        .await;
    bench.fake.answer_publishes([Answer::Unknown]);
    bench.fake.deliver(inbound(1));
    a_while().await;
    assert_eq!(bench.fake.verbs(), []);
    assert_eq!(bench.notes.lines(), ["failed m1 1 LOST", "retried m1 2 in place"]);
    until("settled", || consumer.counters().settled == 1).await;
    assert_eq!(bench.fake.verbs(), [Verb::Settle(1, Handled)]);
}

#[tokio::test(start_paused = true)]
async fn a_settled_message_is_forgotten_so_that_its_id_starts_anew() {
    let more = format!("{IN_PLACE}\non_exhausted = \"discard\"");
    let bench = start(&orders(&more)).await;
    let starts = Arc::new(Mutex::new(Vec::new()));
    let consumer = bench.consume(failing_evens(&starts)).await;
    let mut nowhere = inbound(2);
    nowhere.position = None;
    bench.fake.answer_settlements([Answer::Unknown]);
    for settled in 0..3_u64 {
        bench.fake.deliver(nowhere.clone());
        let through = || consumer.counters().settled + consumer.counters().unknown > settled;
        until("discarded", through).await;
    }
    let lines = starts.lock().unwrap().clone();
    // After the settlement of unknown end it is the same message; after the proven one, a new one.
    assert_eq!(lines, ["m2 1", "m2 2", "m2 3", "m2 4", "m2 1", "m2 2", "m2 3"]);
}
