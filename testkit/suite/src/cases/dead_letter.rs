//! What failed for good goes where its profile says, whole, and nothing is settled before it is there.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use consign_core_api::message::reserved;
use consign_core_api::spi::RetryStrategy;
use consign_core_api::{EncodedMessage, Message, MessageId, Payload};
use consign_policy::{OnExhausted, ProfileSpec, ProfileSpecs, RetrySpec};
use consign_runtime::Messaging;
use consign_runtime::consumer::Delivery;

use crate::case::{CaseError, CaseResult, Need};
use crate::ensure;
use crate::history::{Happened, What};
use crate::lab::{Lab, Number, failing_for_good, failing_for_now};
use crate::wrap::{Faults, PublishFault};

crate::cases! {
    a_permanent_failure_goes_to_the_dead_letter_at_once:
        "what fails for good is dead-lettered after one attempt, and then settled" [Need::AT_LEAST_ONCE];
    an_exhausted_message_goes_to_the_dead_letter_whole_and_with_its_history:
        "the copy keeps payload, key and headers byte for byte, and tells where it failed and why"
        [Need::AT_LEAST_ONCE];
    a_failure_that_tells_a_long_story_still_goes_to_the_dead_letter:
        "whatever text a failure carries, its copy is one that the broker takes" [Need::AT_LEAST_ONCE];
    a_dead_letter_that_is_not_confirmed_leaves_the_source_unsettled:
        "the source is settled only once its copy is CONFIRMED" [Need::AT_LEAST_ONCE];
    a_rejected_dead_letter_copy_is_tried_again:
        "a copy that was refused for now is published again, and the source waits for it" [Need::AT_LEAST_ONCE];
    what_cannot_be_decoded_is_dead_lettered_untried:
        "a payload that is no value is a permanent failure, and no handler sees it" [Need::AT_LEAST_ONCE];
    a_tombstone_is_dead_lettered_as_one:
        "a copy of a tombstone is a tombstone" [Need::AT_LEAST_ONCE, Need::Tombstones];
    a_required_value_that_is_missing_is_a_permanent_failure:
        "a tombstone where a value is required goes to the dead letter" [Need::AT_LEAST_ONCE, Need::Tombstones];
    messages_behind_a_dead_lettered_one_go_on:
        "a message that failed for good holds up nothing behind it" [Need::AT_LEAST_ONCE];
    what_is_discarded_is_settled_and_told:
        "on_exhausted = discard settles, and is told and counted" [Need::AT_LEAST_ONCE];
    a_halted_unit_stands_still_unsettled_and_health_tells:
        "without a dead letter the unit stops, the message stays, and health is not ready" [Need::AT_LEAST_ONCE];
    one_dead_letter_serves_several_destinations:
        "a shared dead letter is legal and tells each message's origin" [Need::AT_LEAST_ONCE];
}

/// A destination and its dead letter.
struct Pair {
    name: String,
    dead: String,
    specs: ProfileSpecs,
}

fn pair(lab: &Lab, spec: ProfileSpec) -> Pair {
    let (name, dead) = (lab.destination("d"), lab.destination("dead"));
    let specs = ProfileSpecs::new().with(&name, spec.dead_letter(&dead)).with(&dead, lab.spec());
    Pair { name, dead, specs }
}

fn in_place(lab: &Lab, attempts: u32) -> ProfileSpec {
    let soon = Duration::from_millis(20);
    lab.spec().retry(RetrySpec::new(RetryStrategy::InPlace).max_attempts(attempts).first(soon).max(soon))
}

async fn dead_lettered(lab: &Lab) -> CaseResult {
    lab.happened("the dead letter", 1, |event| matches!(event.what, What::DeadLettered(_))).await
}

async fn only_dead_letter(lab: &Lab, dead: &str) -> Result<EncodedMessage, CaseError> {
    let mut stored = lab.stored(dead).await?;
    ensure!(stored.len() == 1, "{} messages are in the dead letter", stored.len());
    Ok(stored.remove(0).message)
}

async fn a_permanent_failure_goes_to_the_dead_letter_at_once(lab: &Lab) -> CaseResult {
    let Pair { name, dead, specs } = pair(lab, in_place(lab, 5));
    let messaging = lab.start(specs).await?;
    let ids = lab.publish(&messaging, &name, "k", [1]).await?;
    let mut consuming =
        lab.consume_by(&messaging, &name, "g", |_, _| async { Err(failing_for_good()) }).await?;
    dead_lettered(lab).await?;
    lab.happened("the settlement", 1, Happened::is_settled).await?;
    consuming.quiet(lab).await?;
    ensure!(consuming.so_far().len() == 1, "{} attempts", consuming.so_far().len());
    let copy = only_dead_letter(lab, &dead).await?;
    ensure!(copy.id() == ids.first(), "the copy has another id");
    let code = copy.headers().first(reserved::FAILURE_CODE).and_then(|h| h.text());
    ensure!(code == Some("CASE_PERMANENT"), "the failure's code is {code:?}");
    lab.end(&messaging).await
}

async fn an_exhausted_message_goes_to_the_dead_letter_whole_and_with_its_history(lab: &Lab) -> CaseResult {
    let Pair { name, dead, specs } = pair(lab, in_place(lab, 3));
    let messaging = lab.start(specs).await?;
    let headers = lab.capabilities().headers();
    let value: &[u8] = if headers.binary_values { &[0, 255, 10, 13] } else { b"plain" };
    let mut message = Message::new(Bytes::from_static(&[0, 1, 2, 255, 254])).key([7, 0, 255]);
    message = message.id(MessageId::generate()).header("bin", value);
    if headers.duplicates {
        message = message.header("twice", "1").header("twice", "2");
    }
    let (sent_id, sent_headers) = (message.parts().id.clone(), message.parts().headers.clone());
    let _ = lab.confirmed(messaging.bytes_publisher(&name)?.publish(message)).await?;
    let mut consuming =
        lab.consume_by(&messaging, &name, "g", |_, _| async { Err(failing_for_now()) }).await?;
    dead_lettered(lab).await?;
    consuming.quiet(lab).await?;
    ensure!(consuming.so_far().len() == 3, "{} attempts of 3", consuming.so_far().len());
    let copy = only_dead_letter(lab, &dead).await?;
    ensure!(copy.payload().as_bytes().is_some_and(|b| b[..] == [0, 1, 2, 255, 254]), "another payload");
    ensure!(copy.key().is_some_and(|key| key[..] == [7, 0, 255]), "the key is {:?}", copy.key());
    ensure!(copy.id() == sent_id.as_ref(), "the id is {:?}", copy.id());
    for name in ["bin", "twice"] {
        let values =
            |of: &consign_core_api::Headers| of.all(name).map(|h| h.value().clone()).collect::<Vec<_>>();
        ensure!(
            values(copy.headers()) == values(&sent_headers),
            "the header {name} is {:?}",
            values(copy.headers())
        );
    }
    let header =
        |name: &str| copy.headers().first(name).and_then(|h| h.text()).unwrap_or_default().to_owned();
    let told = [
        (reserved::ORIGIN, name.as_str()),
        (reserved::GROUP, "g"),
        (reserved::ATTEMPT, "3"),
        (reserved::FAILURE_CODE, "CASE_TRANSIENT"),
        (reserved::FAILURE_CATEGORY, "TRANSIENT_INFRASTRUCTURE"),
    ];
    for (name, value) in told {
        ensure!(header(name) == value, "{name} is {:?} and should be {value:?}", header(name));
    }
    for name in [reserved::FIRST_FAILED_AT, reserved::FAILED_AT] {
        ensure!(header(name).parse::<i64>().is_ok(), "{name} is {:?}", header(name));
    }
    lab.end(&messaging).await
}

async fn a_failure_that_tells_a_long_story_still_goes_to_the_dead_letter(lab: &Lab) -> CaseResult {
    let Pair { name, dead, specs } = pair(lab, lab.spec());
    let messaging = lab.start(specs).await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let _consuming = lab
        .consume_by(&messaging, &name, "g", |_, _| async {
            let lines = " at somewhere: grüße\r\n\tbecause\u{0}\u{7f}\u{85} of this\n".repeat(200);
            Err(consign_runtime::consumer::HandlerFailure::permanent("CASE_STORY", lines))
        })
        .await?;
    dead_lettered(lab).await?;
    let copy = only_dead_letter(lab, &dead).await?;
    let text = copy.headers().first(reserved::FAILURE_TEXT).and_then(|h| h.text()).unwrap_or_default();
    ensure!(text.starts_with("at somewhere: grüße because of this at"), "the text is {text:?}");
    lab.end(&messaging).await
}

async fn a_dead_letter_that_is_not_confirmed_leaves_the_source_unsettled(lab: &Lab) -> CaseResult {
    let faults = Arc::new(Faults::publishing(|site, _| {
        if site.destination.as_str().contains("-dead-") { PublishFault::Lost } else { PublishFault::None }
    }));
    let Pair { name, dead, specs } = pair(lab, lab.spec());
    let messaging = lab.start_with(faults, specs.clone()).await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let mut consuming =
        lab.consume_by(&messaging, &name, "g", |_, _| async { Err(failing_for_good()) }).await?;
    consuming.next(lab).await?;
    lab.happened("the copy's outcome", 1, |event| {
        event.at(&dead) && matches!(event.what, What::Ambiguous(_))
    })
    .await?;
    lab.end(&messaging).await?;
    let settled = lab.history().count(|event| event.at(&name) && event.is_settled());
    ensure!(settled == 0, "the source was settled although its copy is not confirmed");
    ensure!(lab.stored(&dead).await?.is_empty(), "the copy was lost, and is there");
    // In the next life everything works: the message is still there, and is handled.
    let again = lab.start(specs).await?;
    let mut consuming = lab.consume(&again, &name, "g").await?;
    consuming.every(lab, [1]).await?;
    lab.end(&again).await
}

async fn a_rejected_dead_letter_copy_is_tried_again(lab: &Lab) -> CaseResult {
    let copies = std::sync::atomic::AtomicUsize::new(0);
    let faults = Arc::new(Faults::publishing(move |site, _| {
        let dead = site.destination.as_str().contains("-dead-");
        let first = dead && copies.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
        if first { PublishFault::Refused } else { PublishFault::None }
    }));
    let Pair { name, dead, specs } = pair(lab, lab.spec());
    let messaging = lab.start_with(faults, specs).await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let _consuming = lab.consume_by(&messaging, &name, "g", |_, _| async { Err(failing_for_good()) }).await?;
    dead_lettered(lab).await?;
    lab.happened("the settlement", 1, Happened::is_settled).await?;
    only_dead_letter(lab, &dead).await?;
    lab.end(&messaging).await
}

async fn what_cannot_be_decoded_is_dead_lettered_untried(lab: &Lab) -> CaseResult {
    let Pair { name, dead, specs } = pair(lab, in_place(lab, 5));
    let messaging = lab.start(specs).await?;
    let broken = Message::new(Bytes::from_static(b"{ no json \xff")).key("k");
    let _ = lab.confirmed(messaging.bytes_publisher(&name)?.publish(broken)).await?;
    let calls = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let handler = move |_: Delivery<Number>, _| {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        async { Ok(()) }
    };
    let _consumer = lab.within("starting to consume", messaging.consume(&name, "g", handler)).await??;
    dead_lettered(lab).await?;
    lab.happened("the settlement", 1, Happened::is_settled).await?;
    let calls = calls.load(std::sync::atomic::Ordering::Relaxed);
    ensure!(calls == 0, "a handler was given what cannot be decoded");
    let copy = only_dead_letter(lab, &dead).await?;
    ensure!(copy.payload().as_bytes().is_some_and(|b| b[..] == b"{ no json \xff"[..]), "another payload");
    let code = copy.headers().first(reserved::FAILURE_CODE).and_then(|h| h.text());
    ensure!(code == Some("DECODE_FAILED"), "the failure's code is {code:?}");
    lab.end(&messaging).await
}

async fn tombstone(lab: &Lab, messaging: &Messaging, name: &str) -> CaseResult {
    let publisher = messaging.bytes_publisher(name)?;
    let _ = lab.confirmed(publisher.publish(Message::<Bytes>::tombstone().key("k"))).await?;
    Ok(())
}

async fn a_tombstone_is_dead_lettered_as_one(lab: &Lab) -> CaseResult {
    let Pair { name, dead, specs } = pair(lab, lab.spec());
    let messaging = lab.start(specs).await?;
    tombstone(lab, &messaging, &name).await?;
    let _consuming = lab.consume_by(&messaging, &name, "g", |_, _| async { Err(failing_for_good()) }).await?;
    dead_lettered(lab).await?;
    let copy = only_dead_letter(lab, &dead).await?;
    ensure!(*copy.payload() == Payload::Tombstone, "the copy of a tombstone is {:?}", copy.payload());
    lab.end(&messaging).await
}

async fn a_required_value_that_is_missing_is_a_permanent_failure(lab: &Lab) -> CaseResult {
    let Pair { name, dead, specs } = pair(lab, in_place(lab, 5));
    let messaging = lab.start(specs).await?;
    tombstone(lab, &messaging, &name).await?;
    let handler = |delivery: Delivery<Number>, _| async move { delivery.require().map(drop) };
    let _consumer = lab.within("starting to consume", messaging.consume(&name, "g", handler)).await??;
    dead_lettered(lab).await?;
    let copy = only_dead_letter(lab, &dead).await?;
    let code = copy.headers().first(reserved::FAILURE_CODE).and_then(|h| h.text());
    ensure!(code == Some("TOMBSTONE_UNEXPECTED"), "the failure's code is {code:?}");
    lab.end(&messaging).await
}

async fn messages_behind_a_dead_lettered_one_go_on(lab: &Lab) -> CaseResult {
    let Pair { name, dead, specs } = pair(lab, lab.spec());
    let messaging = lab.start(specs).await?;
    lab.publish(&messaging, &name, "k", 0..6).await?;
    let mut consuming = lab
        .consume_by(&messaging, &name, "g", |seen, _| async move {
            if seen.n % 3 == 0 { Err(failing_for_good()) } else { Ok(()) }
        })
        .await?;
    consuming.every(lab, 0..6).await?;
    lab.happened("6 settlements", 6, Happened::is_settled).await?;
    let mut dead = lab.stored_numbers(&dead).await?;
    dead.sort_unstable();
    ensure!(dead == [0, 3], "in the dead letter are {dead:?}");
    lab.end(&messaging).await
}

async fn what_is_discarded_is_settled_and_told(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one_with(lab.spec().on_exhausted(OnExhausted::Discard)).await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let mut consuming =
        lab.consume_by(&messaging, &name, "g", |_, _| async { Err(failing_for_good()) }).await?;
    lab.happened("the discard", 1, |event| matches!(event.what, What::Discarded(_))).await?;
    lab.happened("the settlement", 1, Happened::is_settled).await?;
    ensure!(consuming.quiet(lab).await?.len() == 1, "a discarded message came again");
    lab.end(&messaging).await
}

async fn a_halted_unit_stands_still_unsettled_and_health_tells(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    lab.publish(&messaging, &name, "k", [0, 1]).await?;
    let mut consuming = lab
        .consume_by(&messaging, &name, "g", |seen, _| async move {
            if seen.n == 0 { Err(failing_for_good()) } else { Ok(()) }
        })
        .await?;
    lab.happened("the halt", 1, |event| matches!(event.what, What::Halted(_))).await?;
    let health = messaging.health().await;
    let standing: usize = health.consumers.iter().map(|consumer| consumer.halted_units).sum();
    ensure!(
        !health.ready && standing > 0,
        "a unit stands still, and health says {health}, {standing} halted"
    );
    if lab.profile().ordering.is_ordered() {
        consuming.quiet(lab).await?;
        ensure!(consuming.numbers() == [0], "behind a halted message {:?} was handled", consuming.numbers());
    }
    lab.end(&messaging).await?;
    let again = lab.start(ProfileSpecs::new().with(&name, lab.spec())).await?;
    let mut consuming = lab.consume(&again, &name, "g").await?;
    consuming.every(lab, [0]).await?;
    lab.end(&again).await
}

async fn one_dead_letter_serves_several_destinations(lab: &Lab) -> CaseResult {
    let (one, two, dead) = (lab.destination("one"), lab.destination("two"), lab.destination("dead"));
    let specs = ProfileSpecs::new()
        .with(&one, lab.spec().dead_letter(&dead))
        .with(&two, lab.spec().dead_letter(&dead))
        .with(&dead, lab.spec());
    let messaging = lab.start(specs).await?;
    for (n, name) in (0..).zip([&one, &two]) {
        lab.publish(&messaging, name, "k", [n]).await?;
        let _ = lab.consume_by(&messaging, name, "g", |_, _| async { Err(failing_for_good()) }).await?;
    }
    lab.happened("two dead letters", 2, |event| matches!(event.what, What::DeadLettered(_))).await?;
    for held in lab.stored(&dead).await? {
        let origin = held.message.headers().first(reserved::ORIGIN).and_then(|h| h.text());
        let n = crate::lab::number_of(&held.message);
        let right = if n == Some(0) { &one } else { &two };
        ensure!(origin == Some(right.as_str()), "number {n:?} is said to come from {origin:?}");
    }
    lab.end(&messaging).await
}
