//! The one verdict of a publish, on a transport whose every answer the test gives, in paused time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    unreachable_pub,
    reason = "a test ends by panicking"
)]

mod support;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use consign_core_api::outcome::{Duplicate, Transmission};
use consign_core_api::{Message, PublishOutcome};
use consign_runtime::Publisher;
use serde_json::{Value, json};
use support::{Bench, Manual, PLAIN, accepted, id, start, unknown};
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

#[tokio::test(start_paused = true)]
async fn a_message_that_was_never_handed_over_is_rejected_at_its_deadline_and_can_no_longer_be_sent() {
    let bench = start(Manual::default(), PLAIN).await;
    let started = Instant::now();
    let outcome = publisher(&bench).publish(message()).await;
    assert_eq!(started.elapsed().as_secs(), 2);
    let PublishOutcome::Rejected(rejection) = outcome else { panic!("{outcome}") };
    assert_eq!(rejection.failure().code(), "DEADLINE_BEFORE_TRANSMISSION");
    assert_eq!(rejection.transmission(), Transmission::NotTransmitted);
    assert_eq!(rejection.message().unwrap().id(), Some(&id("m-1")));
    let (_, completion) = bench.manual.next();
    assert!(!completion.hand_over());
    drop(completion);
    assert_eq!(bench.notes.lines(), ["rejected DEADLINE_BEFORE_TRANSMISSION"]);
    assert_eq!(in_flight(&bench).await, (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_message_without_an_answer_is_ambiguous_at_its_deadline_and_its_bytes_stay_charged_until_released()
{
    let bench = start(Manual::default(), PLAIN).await;
    let publish = publisher(&bench);
    let task = tokio::spawn(async move { publish.publish(message()).await });
    tokio::task::yield_now().await;
    let (_, completion) = bench.manual.next();
    assert!(completion.hand_over());
    let outcome = task.await.unwrap();
    let PublishOutcome::Ambiguous(ambiguity) = outcome else { panic!("{outcome}") };
    assert_eq!(ambiguity.failure().code(), "CONFIRMATION_TIMED_OUT");
    let (count, bytes) = in_flight(&bench).await;
    assert_eq!(count, 0);
    assert!(bytes > 0, "the client still holds the bytes");
    completion.sink().released(completion.key());
    assert_eq!(in_flight(&bench).await, (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_answer_after_the_verdict_is_told_and_changes_nothing() {
    let bench = start(Manual::default(), PLAIN).await;
    let publish = publisher(&bench);
    let task = tokio::spawn(async move { publish.publish(message()).await });
    tokio::task::yield_now().await;
    let (_, completion) = bench.manual.next();
    assert!(completion.hand_over());
    assert!(task.await.unwrap().is_ambiguous());
    completion.resolve(accepted());
    assert_eq!(bench.notes.lines(), ["ambiguous CONFIRMATION_TIMED_OUT", "late, id known: true"]);
    assert_eq!(in_flight(&bench).await, (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_a_former_user_of_a_slot_does_not_touch_the_present_one() {
    let bench = start(Manual::default(), PLAIN).await;
    let publish = publisher(&bench);
    let first = publish.clone();
    let task = tokio::spawn(async move { first.publish(message()).await });
    tokio::task::yield_now().await;
    let (_, old) = bench.manual.next();
    assert!(old.hand_over());
    assert!(task.await.unwrap().is_ambiguous());
    old.sink().released(old.key());
    let task = tokio::spawn(async move { publish.publish(message()).await });
    tokio::task::yield_now().await;
    let (_, new) = bench.manual.next();
    assert_ne!(old.key(), new.key());
    old.resolve(accepted());
    assert!(new.hand_over());
    new.resolve(unknown());
    assert!(task.await.unwrap().is_ambiguous());
    assert_eq!(bench.notes.lines()[1], "late, id known: false");
}

#[tokio::test(start_paused = true)]
async fn a_withdrawn_message_is_rejected() {
    let bench = start(Manual::default(), PLAIN).await;
    bench.manual.withdrawn.store(true, Ordering::SeqCst);
    let publish = publisher(&bench);
    let task = tokio::spawn(async move { publish.publish(message()).await });
    tokio::task::yield_now().await;
    let (_, completion) = bench.manual.next();
    assert!(completion.hand_over());
    let outcome = task.await.unwrap();
    assert!(outcome.is_rejected(), "{outcome}");
    assert_eq!(in_flight(&bench).await, (0, 0));
    let _ = completion.into_raw();
}

#[tokio::test(start_paused = true)]
async fn a_completion_dropped_before_the_hand_over_is_rejected_and_after_it_ambiguous() {
    let bench = start(Manual::default(), PLAIN).await;
    for handed_over in [false, true] {
        let publish = publisher(&bench);
        let task = tokio::spawn(async move { publish.publish(message()).await });
        tokio::task::yield_now().await;
        let (_, completion) = bench.manual.next();
        assert!(!handed_over || completion.hand_over());
        drop(completion);
        let outcome = task.await.unwrap();
        assert_eq!((outcome.is_rejected(), outcome.is_ambiguous()), (!handed_over, handed_over));
        assert_eq!(outcome.failure().unwrap().code(), "COMPLETION_DROPPED");
    }
    assert_eq!(in_flight(&bench).await, (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_publish_dropped_after_any_poll_is_either_never_sent_or_observed_and_permits_return() {
    for polls in 0..4 {
        let bench = start(Manual::default(), PLAIN).await;
        let publish = publisher(&bench);
        {
            let mut future = pin!(publish.publish(message()));
            for _ in 0..polls {
                assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            }
        }
        if bench.manual.waiting() == 0 {
            assert!(bench.notes.lines().is_empty());
        } else {
            let (_, completion) = bench.manual.next();
            assert!(completion.hand_over());
            completion.resolve(accepted());
            assert_eq!(bench.notes.lines(), ["confirmed"]);
        }
        assert_eq!(in_flight(&bench).await, (0, 0), "after {polls} polls");
    }
}

struct Counter(AtomicUsize);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_of_answers_wakes_a_task_that_waits_for_all_of_them_once() {
    let bench = start(Manual::default(), PLAIN).await;
    let publish = publisher(&bench);
    let mut receipts = Vec::new();
    for _ in 0..100 {
        receipts.push(publish.submit(message()).await.unwrap());
    }
    let counter = Arc::new(Counter(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&counter));
    let mut context = Context::from_waker(&waker);
    for receipt in &mut receipts {
        assert!(pin!(receipt).poll(&mut context).is_pending());
    }
    let mut batch = Vec::new();
    let mut sink = None;
    for _ in 0..100 {
        let (_, completion) = bench.manual.next();
        assert!(completion.hand_over());
        sink = Some(Arc::clone(completion.sink()));
        completion.into_batch(accepted(), &mut batch);
    }
    sink.unwrap().resolve(&mut batch);
    assert_eq!(counter.0.load(Ordering::SeqCst), 1);
    assert!(batch.is_empty() && batch.capacity() >= 100);
    for receipt in &mut receipts {
        let Poll::Ready(outcome) = pin!(receipt).poll(&mut context) else { panic!("not resolved") };
        assert!(outcome.is_confirmed());
    }
    assert_eq!(in_flight(&bench).await, (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_pipeline_hands_out_its_oldest_outcome_and_is_never_refused_by_its_own_speed() {
    let bench = start(Manual::default(), &PLAIN.replace("\"2s\"", "\"2s\", in_flight = 4")).await;
    let publish = publisher(&bench);
    assert!(publish.pipeline(0).is_err() && publish.pipeline(5).is_err());
    let mut window = publish.pipeline(4).unwrap();
    let manual = bench.manual.clone();
    let answering = tokio::spawn(async move {
        for _ in 0..20 {
            while manual.waiting() == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let (_, completion) = manual.next();
            assert!(completion.hand_over());
            completion.resolve(accepted());
        }
    });
    let mut seen = Vec::new();
    for n in 0..20 {
        let sent = window.submit(Message::new(json!(n)).id(id(&format!("m-{n}")))).await.unwrap();
        seen.extend(sent.map(|(id, outcome)| (id.unwrap().to_string(), outcome.is_confirmed())));
    }
    while let Some((id, outcome)) = window.next().await {
        seen.push((id.unwrap().to_string(), outcome.is_confirmed()));
    }
    answering.await.unwrap();
    let expected: Vec<_> = (0..20).map(|n| (format!("m-{n}"), true)).collect();
    assert_eq!(seen, expected);
}

#[tokio::test(start_paused = true)]
async fn a_pipeline_future_dropped_while_it_waits_loses_no_outcome() {
    let bench = start(Manual::default(), &PLAIN.replace("\"2s\"", "\"2s\", in_flight = 1")).await;
    let publish = publisher(&bench);
    let mut window = publish.pipeline(1).unwrap();
    assert!(window.submit(message()).await.unwrap().is_none());
    {
        let mut waiting = pin!(window.submit(message()));
        assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    let (_, completion) = bench.manual.next();
    assert!(completion.hand_over());
    completion.resolve(accepted());
    assert!(window.next().await.unwrap().1.is_confirmed());
    assert!(window.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn the_deadline_includes_the_wait_for_admission() {
    let profiles = format!("[admission]\nin_flight = 2\nwait = \"1500ms\"\n{PLAIN}");
    let bench = start(Manual::default(), &profiles).await;
    let publish = publisher(&bench);
    let _held = publish.submit(message()).await.unwrap();
    let started = Instant::now();
    let outcome = publish.publish(message()).await;
    assert_eq!(started.elapsed().as_millis(), 1500);
    assert_eq!(outcome.failure().unwrap().code(), "IN_FLIGHT_LIMIT_EXCEEDED");
    let waiting = publish.clone();
    let task = tokio::spawn(async move { waiting.publish(message()).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (_, first) = bench.manual.next();
    assert!(first.hand_over());
    first.resolve(accepted());
    let outcome = task.await.unwrap();
    assert_eq!(started.elapsed().as_millis(), 3500, "two seconds after its call, not after its admission");
    assert_eq!(outcome.failure().unwrap().code(), "DEADLINE_BEFORE_TRANSMISSION");
}

#[tokio::test(start_paused = true)]
async fn weaker_evidence_than_demanded_is_ambiguous() {
    let profiles = PLAIN.replace("\"2s\"", "\"2s\", evidence = { persistence = \"page_cache\" }");
    let bench = start(Manual::default(), &profiles).await;
    let publish = publisher(&bench);
    let receipt = publish.submit(message()).await.unwrap();
    let (_, completion) = bench.manual.next();
    assert!(completion.hand_over());
    use consign_core_api::outcome::{ConfirmationEvidence, Copies, Evidenced, Persistence};
    use consign_core_api::spi::{Acceptance, PublishReply};
    let weak = ConfirmationEvidence::new(
        Evidenced::observed(Copies::Leader),
        Evidenced::observed(Persistence::Memory),
    );
    completion.resolve(PublishReply::Accepted(Acceptance::new(weak)));
    assert_eq!(receipt.await.failure().unwrap().code(), "EVIDENCE_BELOW_DEMAND");
}

#[tokio::test(start_paused = true)]
async fn without_a_requested_confirmation_the_outcome_is_at_best_ambiguous() {
    let profiles =
        PLAIN.replace("AT_LEAST_ONCE", "AT_MOST_ONCE").replace("\"2s\"", "\"2s\", confirmation = \"none\"");
    let bench = start(Manual::default(), &profiles).await;
    let receipt = publisher(&bench).submit(message()).await.unwrap();
    let (_, completion) = bench.manual.next();
    assert!(completion.hand_over());
    completion.resolve(accepted());
    assert_eq!(receipt.await.failure().unwrap().code(), "CONFIRMATION_NOT_REQUESTED");
}

#[tokio::test(start_paused = true)]
async fn one_publish_per_key_is_in_flight_where_the_adapter_cannot_pipeline() {
    let manual = Manual { unpipelined: true, ..Manual::default() };
    let profiles = PLAIN.replace("\"NONE\"", "\"KEY\"\nkey = { from = \"message\" }");
    let bench = start(manual, &profiles).await;
    let publish = publisher(&bench);
    let mut tasks = Vec::new();
    for key in ["a", "a", "b"] {
        let publish = publish.clone();
        tasks.push(tokio::spawn(async move { publish.publish(message().key(key)).await }));
        tokio::task::yield_now().await;
    }
    assert_eq!(bench.manual.waiting(), 2, "the second message of key a waits");
    for _ in 0..3 {
        let (_, completion) = bench.manual.next();
        assert!(completion.hand_over());
        completion.resolve(accepted());
        tokio::task::yield_now().await;
    }
    for task in tasks {
        let PublishOutcome::Confirmed(confirmation) = task.await.unwrap() else { panic!("not confirmed") };
        assert_eq!(confirmation.duplicate(), Duplicate::No);
    }
}

#[tokio::test(start_paused = true)]
async fn shutdown_lists_what_has_no_answer_and_is_harmless_twice() {
    let bench = start(Manual::default(), &PLAIN.replace("\"2s\"", "\"1h\"")).await;
    let publish = publisher(&bench);
    let sent = publish.submit(message()).await.unwrap();
    let (_, completion) = bench.manual.next();
    assert!(completion.hand_over());
    let unsent = publish.submit(Message::new(json!(2)).id(id("m-2"))).await.unwrap();
    let started = Instant::now();
    let within = Duration::from_secs(3);
    let (one, two) = tokio::join!(bench.messaging.shutdown(within), bench.messaging.shutdown(within));
    assert!(started.elapsed() <= within);
    for report in [one, two, bench.messaging.shutdown(Duration::ZERO).await] {
        assert_eq!(report.ambiguous[0].id, Some(id("m-1")));
        assert_eq!(report.unsent[0].id, Some(id("m-2")));
        assert!(!report.is_clean());
    }
    assert!(sent.await.is_ambiguous() && unsent.await.is_rejected());
    assert!(bench.manual.closed.load(Ordering::SeqCst));
    let refused = publish.publish(message()).await;
    assert_eq!(refused.failure().unwrap().code(), "SHUTTING_DOWN");
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_tells_the_observers_what_had_no_verdict() {
    let bench = start(Manual::default(), PLAIN).await;
    let publish = publisher(&bench);
    let receipt = publish.submit(message()).await.unwrap();
    let (_, completion) = bench.manual.next();
    assert!(completion.hand_over());
    drop(bench.messaging);
    assert_eq!(bench.notes.lines(), ["ambiguous SHUT_DOWN"]);
    assert!(receipt.await.is_ambiguous());
    assert!(publish.publish(message()).await.is_rejected());
}

fn deduplicating() -> Manual {
    Manual { window: Some(Duration::from_secs(120)), ..Manual::default() }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_of_unknown_end_is_repeated_under_the_same_id_where_the_broker_deduplicates() {
    let bench = start(deduplicating(), PLAIN).await;
    let receipt = publisher(&bench).submit(message()).await.unwrap();
    for (resend, answer) in [(false, unknown()), (true, accepted())] {
        while bench.manual.waiting() == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let (request, completion) = bench.manual.next();
        assert_eq!((request.resend, request.message.id()), (resend, Some(&id("m-1"))));
        assert!(completion.hand_over());
        completion.resolve(answer);
    }
    let PublishOutcome::Confirmed(confirmation) = receipt.await else { panic!("not confirmed") };
    assert_eq!((confirmation.attempts().get(), confirmation.duplicate()), (2, Duplicate::Possible));
    assert_eq!(bench.notes.lines(), ["confirmed"]);
    assert_eq!(in_flight(&bench).await, (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_after_an_attempt_of_unknown_end_stays_ambiguous() {
    let bench = start(deduplicating(), PLAIN).await;
    let receipt = publisher(&bench).submit(message()).await.unwrap();
    let (_, completion) = bench.manual.next();
    assert!(completion.hand_over());
    completion.resolve(unknown());
    while bench.manual.waiting() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (_, completion) = bench.manual.next();
    // Never handed over: this attempt is certainly absent, the first one is not.
    drop(completion);
    assert!(receipt.await.is_ambiguous());
}

#[tokio::test(start_paused = true)]
async fn the_deadline_ends_repeated_attempts_and_none_is_made_where_order_or_at_most_once_forbids_it() {
    let bench = start(deduplicating(), &PLAIN.replace("\"2s\"", "\"60ms\"")).await;
    let receipt = publisher(&bench).submit(message()).await.unwrap();
    let (_, completion) = bench.manual.next();
    assert!(completion.hand_over());
    completion.resolve(unknown());
    tokio::time::sleep(Duration::from_millis(55)).await;
    let (_, completion) = bench.manual.next();
    assert!(completion.hand_over());
    assert_eq!(receipt.await.failure().unwrap().code(), "CONFIRMATION_TIMED_OUT");

    let ordered = PLAIN.replace("\"NONE\"", "\"KEY\"\nkey = { from = \"message\" }");
    for profiles in [ordered, PLAIN.replace("AT_LEAST_ONCE", "AT_MOST_ONCE")] {
        let bench = start(deduplicating(), &profiles).await;
        let receipt = publisher(&bench).submit(message().key("k")).await.unwrap();
        let (_, completion) = bench.manual.next();
        assert!(completion.hand_over());
        completion.resolve(unknown());
        assert_eq!(receipt.await.failure().unwrap().code(), "TEST");
        assert_eq!(bench.manual.waiting(), 0, "it was sent again");
    }
}

#[tokio::test(start_paused = true)]
async fn health_tells_each_destination_and_how_much_of_its_limit_is_taken() {
    let bench = start(Manual::default(), &PLAIN.replace("\"2s\"", "\"2s\", in_flight = 3")).await;
    let _held = publisher(&bench).submit(message()).await.unwrap();
    let health = bench.messaging.health().await;
    let [destination] = &health.destinations[..] else { panic!("{health:?}") };
    assert_eq!((destination.destination.as_str(), destination.transport.as_str()), ("d", "main"));
    assert_eq!((destination.publishes_in_flight, destination.in_flight_limit), (1, 3));
    assert!(destination.ready && health.ready);
    let _ = bench.messaging.shutdown(Duration::from_millis(10)).await;
    assert!(!bench.messaging.health().await.destinations[0].ready);
}
