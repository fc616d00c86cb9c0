//! The one verdict where the other side misbehaves: answers in the wrong moment, panics, runtimes that are gone.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

mod support;

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use consign_core_api::{Message, PublishOutcome};
use consign_policy::ProfileSpecs;
use consign_runtime::{Messaging, Observed, Observer, Publisher};
use serde_json::{Value, json};
use support::{Bench, Manual, Notes, PLAIN, accepted, id, start, unknown};
use tokio::time::Instant;

fn message() -> Message<Value> {
    Message::new(json!({"n": 1})).id(id("m-1"))
}

fn publisher(bench: &Bench) -> Publisher<Value> {
    bench.messaging.publisher("d").unwrap()
}

async fn in_flight(bench: &Bench) -> (u64, u64) {
    let health = bench.messaging.health().await;
    (health.publishes_in_flight, health.bytes_in_flight)
}

fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

fn deduplicating() -> Manual {
    Manual { window: Some(Duration::from_secs(120)), ..Manual::default() }
}

fn hour() -> String {
    PLAIN.replace("\"2s\"", "\"1h\"")
}

#[tokio::test(start_paused = true)]
async fn a_receipt_that_is_polled_again_after_its_outcome_takes_no_outcome_of_another_publish() {
    let bench = start(Manual::default(), PLAIN).await;
    let publish = publisher(&bench);
    let mut first = publish.submit(message()).await.unwrap();
    bench.manual.next().1.resolve(accepted());
    assert!(poll_once(&mut first).is_ready());
    let mut second = publish.submit(message()).await.unwrap();
    bench.manual.next().1.resolve(unknown());
    assert!(poll_once(&mut first).is_pending());
    let Poll::Ready(outcome) = poll_once(&mut second) else { panic!("its outcome went elsewhere") };
    assert!(outcome.is_ambiguous());
}

#[tokio::test(start_paused = true)]
async fn bytes_released_before_the_deadline_are_not_charged_after_it() {
    let bench = start(Manual::default(), PLAIN).await;
    let receipt = publisher(&bench).submit(message()).await.unwrap();
    let (_, completion) = bench.manual.next();
    assert!(completion.hand_over());
    completion.sink().released(completion.key());
    assert!(receipt.await.is_ambiguous());
    assert_eq!(in_flight(&bench).await, (0, 0));
    completion.resolve(accepted());
    assert_eq!(bench.notes.lines()[1..], ["late, id known: false"]);
}

#[tokio::test(start_paused = true)]
async fn a_release_before_an_answer_of_unknown_end_says_nothing_of_the_next_attempt() {
    let bench = start(deduplicating(), PLAIN).await;
    let receipt = publisher(&bench).submit(message()).await.unwrap();
    let (_, completion) = bench.manual.next();
    assert!(completion.hand_over());
    completion.sink().released(completion.key());
    completion.resolve(unknown());
    while bench.manual.waiting() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (_, completion) = bench.manual.next();
    assert!(completion.hand_over());
    assert!(receipt.await.is_ambiguous());
    assert!(in_flight(&bench).await.1 > 0, "the client holds the second attempt's bytes");
    drop(completion);
    assert_eq!(in_flight(&bench).await, (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_publish_answered_with_an_unknown_end_while_it_is_given_up_at_shutdown_has_a_verdict_and_is_listed()
{
    let bench = start(deduplicating(), &hour()).await;
    let mut receipt = publisher(&bench).submit(message()).await.unwrap();
    let (_, completion) = bench.manual.next();
    assert!(completion.hand_over());
    bench.manual.while_withdrawing(move || completion.resolve(unknown()));
    let report = bench.messaging.shutdown(Duration::from_secs(1)).await;
    let Poll::Ready(outcome) = poll_once(&mut receipt) else { panic!("no verdict") };
    assert!(outcome.is_ambiguous());
    assert_eq!((report.ambiguous.len(), report.unsent.len()), (1, 0));
    assert_eq!(in_flight(&bench).await, (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_publish_that_is_withdrawn_while_somebody_else_gives_it_up_leaves_no_bytes_charged() {
    let bench = start(Manual::default(), &PLAIN.replace("\"2s\"", "\"50ms\"")).await;
    let receipt = publisher(&bench).submit(message()).await.unwrap();
    let (_, completion) = bench.manual.next();
    assert!(completion.hand_over());
    bench.manual.withdrawn.store(true, Ordering::SeqCst);
    let (asked, asking) = tokio::sync::oneshot::channel();
    let (done, given_up) = mpsc::channel();
    bench.manual.while_withdrawing(move || {
        asked.send(()).unwrap();
        given_up.recv_timeout(Duration::from_secs(10)).unwrap();
    });
    asking.await.unwrap();
    let report = bench.messaging.shutdown(Duration::ZERO).await;
    assert_eq!(report.ambiguous.len(), 1);
    assert!(in_flight(&bench).await.1 > 0);
    done.send(()).unwrap();
    assert!(receipt.await.is_ambiguous());
    // The adapter forgot the completion when it answered `Withdrawn`.
    let _ = completion.into_raw();
    let back = async {
        while in_flight(&bench).await != (0, 0) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), back).await.expect("bytes stay charged");
}

#[tokio::test(start_paused = true)]
async fn a_completion_that_is_never_answered_does_not_keep_a_dropped_library_and_its_connection_alive() {
    let Bench { manual, messaging, .. } = start(Manual::default(), PLAIN).await;
    let publish: Publisher<Value> = messaging.publisher("d").unwrap();
    let receipt = publish.submit(message()).await.unwrap();
    let (_, completion) = manual.next();
    assert!(completion.hand_over());
    assert!(receipt.await.is_ambiguous());
    let alive = Arc::downgrade(&manual.closed);
    drop((publish, messaging, manual));
    tokio::task::yield_now().await;
    assert_eq!(alive.strong_count(), 0);
    drop(completion);
}

/// Panics at every outcome.
struct Hostile;

impl Observer for Hostile {
    fn observe(&self, event: &Observed<'_>) {
        assert!(!matches!(event, Observed::Outcome { .. }), "an observer that panics");
    }
}

async fn start_observed(
    manual: &Manual,
    observer: Arc<dyn Observer>,
    profiles: &str,
) -> (Messaging, Arc<Notes>) {
    let notes = Arc::new(Notes::default());
    let messaging = Messaging::builder()
        .transport("main", manual.clone())
        .profiles(ProfileSpecs::from_toml(profiles).unwrap())
        .observer(observer)
        .observer(notes.clone())
        .build();
    (messaging.await.unwrap(), notes)
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_panics_costs_nobody_a_verdict() {
    let manual = Manual::default();
    let (messaging, notes) = start_observed(&manual, Arc::new(Hostile), PLAIN).await;
    let publish: Publisher<Value> = messaging.publisher("d").unwrap();
    for _ in 0..3 {
        let receipt = publish.submit(message()).await.unwrap();
        let outcome = tokio::time::timeout(Duration::from_secs(3), receipt).await;
        assert!(outcome.expect("no verdict").is_rejected());
    }
    let receipts = [publish.submit(message()).await.unwrap(), publish.submit(message()).await.unwrap()];
    let mut batch = Vec::new();
    let mut sink = None;
    for (_, completion) in std::iter::from_fn(|| manual.queue.lock().unwrap().pop_front()) {
        sink = Some(Arc::clone(completion.sink()));
        completion.into_batch(accepted(), &mut batch);
    }
    sink.unwrap().resolve(&mut batch);
    for receipt in receipts {
        assert!(receipt.await.is_confirmed());
    }
    assert_eq!(notes.lines().iter().filter(|line| !line.starts_with("late")).count(), 5);
    let health = messaging.health().await;
    assert_eq!((health.publishes_in_flight, health.bytes_in_flight), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_adapter_that_panics_when_it_is_asked_for_a_publish_costs_no_other_publish_its_verdict() {
    let bench = start(Manual::default(), PLAIN).await;
    let publish = publisher(&bench);
    bench.manual.while_withdrawing(|| panic!("an adapter that panics"));
    for _ in 0..2 {
        let receipt = publish.submit(message()).await.unwrap();
        let (_, completion) = bench.manual.next();
        assert!(completion.hand_over());
        let outcome = tokio::time::timeout(Duration::from_secs(3), receipt).await;
        assert!(outcome.expect("no verdict").is_ambiguous());
    }
}

#[test]
fn publishes_have_a_verdict_after_the_runtime_that_built_the_library_is_gone() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let first = runtime();
    let bench = first.block_on(start(Manual::default(), &hour()));
    let publish = publisher(&bench);
    let mut before = first.block_on(publish.submit(message())).unwrap();
    drop(first);
    assert!(poll_once(&mut before).is_ready(), "nobody would tell its deadline");
    let outcome = runtime()
        .block_on(async { tokio::time::timeout(Duration::from_secs(10), publish.publish(message())).await });
    assert_eq!(outcome.expect("no verdict").failure().unwrap().code(), "SHUTTING_DOWN");
}

/// Stops a publish between admission and its slot until the test lets it go.
struct Gatekeeper(Mutex<mpsc::Receiver<()>>);

impl Observer for Gatekeeper {
    fn observe(&self, event: &Observed<'_>) {
        if matches!(event, Observed::Admitted { .. }) {
            self.0.lock().unwrap().recv_timeout(Duration::from_secs(10)).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_publish_that_reaches_its_adapter_while_the_connections_close_has_a_verdict_and_is_listed() {
    let (open, gate) = mpsc::channel();
    let manual = Manual { never_closes: true, ..Manual::default() };
    let (messaging, _) = start_observed(&manual, Arc::new(Gatekeeper(Mutex::new(gate))), &hour()).await;
    let publish: Publisher<Value> = messaging.publisher("d").unwrap();
    let task = tokio::spawn(async move { publish.publish(message()).await });
    while messaging.health().await.publishes_in_flight == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let queue = Arc::clone(&manual.queue);
    manual.while_closing(move || {
        open.send(()).unwrap();
        let taken = std::iter::repeat_with(|| {
            std::thread::yield_now();
            queue.lock().unwrap().pop_front()
        });
        let (_, completion) = taken.flatten().next().unwrap();
        assert!(completion.hand_over());
        // It is never answered.
        let _ = completion.into_raw();
    });
    let report = messaging.shutdown(Duration::from_millis(500)).await;
    let outcome = tokio::time::timeout(Duration::from_secs(10), task).await.expect("no verdict").unwrap();
    assert!(outcome.is_ambiguous(), "{outcome}");
    assert_eq!(report.ambiguous.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_with_an_earlier_deadline_hastens_the_one_that_runs() {
    let bench = start(Manual { never_closes: true, ..Manual::default() }, &hour()).await;
    let receipt = publisher(&bench).submit(message()).await.unwrap();
    let (_, completion) = bench.manual.next();
    assert!(completion.hand_over());
    let started = Instant::now();
    let mut slow = pin!(bench.messaging.shutdown(Duration::MAX));
    assert!(poll_once(&mut slow).is_pending());
    // It is in the middle of waiting by now.
    tokio::time::sleep(Duration::from_millis(1)).await;
    let quick = bench.messaging.shutdown(Duration::from_secs(1)).await;
    let slow = slow.await;
    assert!(started.elapsed() <= Duration::from_millis(1002), "{:?}", started.elapsed());
    for report in [slow, quick] {
        assert_eq!(report.ambiguous.len(), 1);
        assert!(report.timed_out);
    }
    assert!(receipt.await.is_ambiguous());
}

#[tokio::test(start_paused = true)]
async fn a_library_that_is_shutting_down_is_not_ready() {
    let bench = start(Manual::default(), &hour()).await;
    let _receipt = publisher(&bench).submit(message()).await.unwrap();
    assert!(bench.messaging.health().await.ready);
    let mut shutdown = pin!(bench.messaging.shutdown(Duration::from_secs(5)));
    assert!(poll_once(&mut shutdown).is_pending());
    tokio::task::yield_now().await;
    let health = bench.messaging.health().await;
    assert!(!health.ready && health.live);
    assert_eq!(shutdown.await.unsent.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_panics_as_it_closes_leaves_the_report_whole() {
    let bench = start(Manual::default(), &hour()).await;
    let _receipt = publisher(&bench).submit(message()).await.unwrap();
    bench.manual.while_closing(|| panic!("a connection that panics"));
    let report = bench.messaging.shutdown(Duration::from_secs(1)).await;
    assert_eq!(report.unsent.len(), 1);
    assert!(!bench.messaging.health().await.live);
}

#[tokio::test(start_paused = true)]
async fn a_batch_far_larger_than_what_may_be_in_flight_is_not_refused_by_its_own_speed() {
    let profiles =
        format!("[admission]\nin_flight = 2\n{}", PLAIN.replace("\"2s\"", "\"2s\", in_flight = 9000"));
    let bench = start(Manual::default(), &profiles).await;
    let queue = Arc::clone(&bench.manual.queue);
    let answering = tokio::spawn(async move {
        loop {
            let taken: Vec<_> = queue.lock().unwrap().drain(..).collect();
            taken.into_iter().for_each(|(_, completion)| completion.resolve(accepted()));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    let outcomes = publisher(&bench).publish_batch((0..8000).map(|n| Message::new(json!(n)))).await;
    answering.abort();
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_confirmed()).count(), 8000);
}

#[tokio::test(start_paused = true)]
async fn keys_that_may_share_a_partition_wait_for_each_other_where_the_partition_is_ordered() {
    let manual = Manual { unpipelined: true, ..Manual::default() };
    let bench = start(manual, &PLAIN.replace("\"NONE\"", "\"PARTITION\"")).await;
    let publish = publisher(&bench);
    let messages = [message().key("a"), message().key("b"), message().partition(0)];
    let mut tasks = Vec::new();
    for message in messages {
        let publish = publish.clone();
        tasks.push(tokio::spawn(async move { publish.publish(message).await }));
        tokio::task::yield_now().await;
    }
    for task in tasks {
        assert_eq!(bench.manual.waiting(), 1);
        bench.manual.next().1.resolve(accepted());
        let outcome = task.await.unwrap();
        assert!(matches!(outcome, PublishOutcome::Confirmed(_)), "{outcome}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_build_that_is_dropped_closes_what_was_connected_while_another_transport_still_connects() {
    let (quick, slow) = (Manual::default(), Manual { never_connects: true, ..Manual::default() });
    let closed = Arc::clone(&quick.closed);
    {
        let mut build = pin!(
            Messaging::builder()
                .transport("main", quick)
                .transport("other", slow)
                .profiles(ProfileSpecs::from_toml(PLAIN).unwrap())
                .build()
        );
        assert!(build.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    tokio::task::yield_now().await;
    assert!(closed.load(Ordering::SeqCst));
}

/// Cannot be encoded.
struct Refusing;

impl consign_core_api::Codec<Value> for Refusing {
    fn encode(&self, _: &Value) -> Result<bytes::Bytes, consign_core_api::codec::CodecError> {
        Err("no".into())
    }

    fn decode(&self, _: &bytes::Bytes) -> Result<Value, consign_core_api::codec::CodecError> {
        Err("no".into())
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_before_transmission_is_told_once_whichever_way_the_message_went() {
    let small = PLAIN.replace("\"2s\"", "\"2s\", max_payload = 100");
    for (closed, code) in [
        (false, "ENCODE_FAILED"),
        (false, "RESERVED_HEADER"),
        (false, "MESSAGE_TOO_LARGE"),
        (true, "SHUTTING_DOWN"),
    ] {
        let bench = start(Manual::default(), &small).await;
        let publish: Publisher<Value> = match code {
            "ENCODE_FAILED" => bench.messaging.publisher_with("d", Refusing).unwrap(),
            _ => publisher(&bench),
        };
        if closed {
            assert!(bench.messaging.shutdown(Duration::ZERO).await.is_clean());
        }
        let make = || match code {
            "RESERVED_HEADER" => message().header("consign-x", "1"),
            "MESSAGE_TOO_LARGE" => Message::new(json!("x".repeat(200))),
            _ => message(),
        };
        let mut outcomes = vec![publish.publish(make()).await];
        let refused = publish.submit(make()).await.unwrap_err();
        if let Some(message) = refused.message().cloned() {
            outcomes.push(publish.publish_encoded(message).await);
        }
        outcomes.push(PublishOutcome::Rejected(refused));
        let mut window = publish.pipeline(1).unwrap();
        outcomes.push(PublishOutcome::Rejected(window.submit(make()).await.unwrap_err()));
        outcomes.extend(publish.publish_batch([make(), make()]).await);
        for outcome in &outcomes {
            assert!(outcome.is_rejected() && outcome.failure().unwrap().code() == code, "{outcome}");
        }
        assert_eq!(bench.notes.lines(), vec![format!("rejected {code}"); outcomes.len()]);
        assert_eq!(in_flight(&bench).await, (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn durations_at_the_ends_of_their_range_panic_nowhere() {
    for timeout in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
        let refused = Messaging::builder()
            .transport("main", Manual::default())
            .profiles(ProfileSpecs::from_toml(PLAIN).unwrap())
            .connect_timeout(timeout)
            .build();
        assert!(refused.await.unwrap_err().to_string().contains("FIELD_OUT_OF_RANGE"));
    }
    for deadline in ["1ms", "30days"] {
        let bench = start(Manual::default(), &PLAIN.replace("2s", deadline)).await;
        let _receipt = publisher(&bench).submit(message()).await.unwrap();
        for within in [Duration::MAX, Duration::from_nanos(1), Duration::ZERO] {
            let mut shutdown = pin!(bench.messaging.shutdown(within));
            let _ = poll_once(&mut shutdown);
        }
        bench.messaging.shutdown(Duration::MAX).await;
        assert_eq!(in_flight(&bench).await.0, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_with_an_earlier_deadline_hastens_consumers_too() {
    let messaging = Messaging::builder()
        .transport("main", consign_in_memory::Broker::new())
        .profiles(ProfileSpecs::from_toml(PLAIN).unwrap())
        .build()
        .await
        .unwrap();
    let publish: Publisher<Value> = messaging.publisher("d").unwrap();
    let (begun, begins) = tokio::sync::oneshot::channel();
    let begun = Arc::new(Mutex::new(Some(begun)));
    let consumer = messaging.consume("d", "g", move |_: consign_runtime::Delivery<Value>, _| {
        if let Some(begun) = begun.lock().unwrap().take() {
            begun.send(()).unwrap();
        }
        async { std::future::pending().await }
    });
    consumer.await.unwrap().detach();
    assert!(publish.publish(message()).await.is_confirmed());
    begins.await.unwrap();
    let started = Instant::now();
    let mut slow = pin!(messaging.shutdown(Duration::from_secs(20)));
    assert!(poll_once(&mut slow).is_pending());
    tokio::time::sleep(Duration::from_millis(1)).await;
    let quick = messaging.shutdown(Duration::from_secs(1)).await;
    let slow = slow.await;
    assert!(started.elapsed() <= Duration::from_millis(1002), "{:?}", started.elapsed());
    assert_eq!(slow.unsettled.len(), quick.unsettled.len());
}

#[tokio::test(start_paused = true)]
async fn a_publish_whose_turn_comes_at_its_deadline_is_rejected_unsent() {
    let manual = Manual { unpipelined: true, ..Manual::default() };
    let bench = start(manual, &PLAIN.replace("\"NONE\"", "\"KEY\"\nkey = { from = \"message\" }")).await;
    let publish = publisher(&bench);
    let mut receipts = Vec::new();
    for _ in 0..3 {
        let publish = publish.clone();
        receipts.push(tokio::spawn(async move { publish.publish(message().key("k")).await }));
        tokio::task::yield_now().await;
    }
    let (_, completion) = bench.manual.next();
    assert!(completion.hand_over());
    let mut codes = Vec::new();
    for receipt in receipts {
        codes.push(receipt.await.unwrap().failure().unwrap().code());
    }
    assert_eq!(bench.manual.waiting(), 0, "it was sent at its deadline");
    assert_eq!(
        codes,
        ["CONFIRMATION_TIMED_OUT", "DEADLINE_BEFORE_TRANSMISSION", "DEADLINE_BEFORE_TRANSMISSION"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_publish_that_is_admitted_at_its_deadline_is_rejected_unsent() {
    let profiles = format!("[admission]\nin_flight = 2\nwait = \"2s\"\n{PLAIN}");
    let bench = start(Manual::default(), &profiles).await;
    let publish = publisher(&bench);
    let mut receipts = Vec::new();
    for _ in 0..2 {
        let publish = publish.clone();
        receipts.push(tokio::spawn(async move { publish.publish(message()).await }));
        tokio::task::yield_now().await;
    }
    let (_, completion) = bench.manual.next();
    assert!(completion.hand_over());
    let last = receipts.pop().unwrap().await.unwrap();
    assert_eq!(bench.manual.waiting(), 0, "it was sent at its deadline");
    assert_eq!(last.failure().unwrap().code(), "DEADLINE_BEFORE_TRANSMISSION");
    assert!(receipts.pop().unwrap().await.unwrap().is_ambiguous());
    completion.sink().released(completion.key());
    assert_eq!(in_flight(&bench).await, (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_library_that_is_shutting_down_starts_no_consumer() {
    let broker = consign_in_memory::Broker::new();
    let messaging = Messaging::builder()
        .transport("main", broker.clone())
        .profiles(ProfileSpecs::from_toml(&hour()).unwrap())
        .build()
        .await
        .unwrap();
    let publish: Publisher<Value> = messaging.publisher("d").unwrap();
    assert!(publish.publish(message()).await.is_confirmed());
    broker.hold_publishes(Some(consign_in_memory::HeldAt::BeforeHandOver));
    let _receipt = publish.submit(message()).await.unwrap();
    let mut shutdown = pin!(messaging.shutdown(Duration::from_secs(10)));
    assert!(poll_once(&mut shutdown).is_pending());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let refused =
        messaging.consume("d", "g", |_: consign_runtime::Delivery<Value>, _| async { Ok(()) }).await;
    assert_eq!(refused.unwrap_err().kind(), consign_core_api::ErrorKind::Closed);
    assert_eq!(shutdown.await.unsent.len(), 1);
}
