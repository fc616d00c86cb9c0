//! Refusals by admission all happen before a byte is sent.

use std::sync::Arc;
use std::time::Duration;

use consign_core_api::outcome::Transmission;
use consign_core_api::{FailureCategory, Message, PublishOutcome, Rejection};
use consign_policy::{AdmissionSpec, ProfileSpecs, PublishSpec};
use futures_util::FutureExt as _;

use crate::case::{CaseError, CaseResult};
use crate::ensure;
use crate::lab::{Lab, Number};
use crate::wrap::{Faults, PublishFault};

crate::cases! {
    an_oversized_message_is_refused_here_while_its_neighbours_pass:
        "a message above max_payload is REJECTED before transmission; others are not concerned";
    key_and_headers_count_towards_the_size:
        "limits count payload, key and headers together";
    the_limit_of_a_destination_refuses_and_leaves_other_destinations_alone:
        "publish.in_flight refuses what exceeds it, before a byte is sent";
    the_limit_of_the_process_refuses_after_a_bounded_wait:
        "admission.in_flight refuses after admission.wait, and gives the destination's slot back";
    the_byte_limit_refuses:
        "admission.bytes bounds what is in flight";
    a_publish_that_waits_for_room_gets_it:
        "room that returns within the wait is used";
    after_shutdown_everything_is_refused_and_the_size_is_checked_first:
        "SHUTTING_DOWN refuses, after the size was checked";
    permits_return_after_every_kind_of_outcome:
        "CONFIRMED, REJECTED and AMBIGUOUS publishes leave nothing charged";
}

fn refused(outcome: PublishOutcome) -> Result<Rejection, CaseError> {
    match outcome {
        PublishOutcome::Rejected(rejection) if rejection.transmission() == Transmission::NotTransmitted => {
            Ok(rejection)
        }
        other => Err(CaseError::new(format!("it should be refused here, and ended {other:?}"))),
    }
}

fn holding() -> Arc<Faults> {
    Arc::new(Faults::publishing(|_, _| PublishFault::Held))
}

async fn an_oversized_message_is_refused_here_while_its_neighbours_pass(lab: &Lab) -> CaseResult {
    let faults = Arc::new(Faults::none());
    let name = lab.destination("d");
    let spec = lab.spec().publish(PublishSpec::default().max_payload(2048));
    let messaging = lab.start_with(Arc::clone(&faults), ProfileSpecs::new().with(&name, spec)).await?;
    let publisher = messaging.bytes_publisher(&name)?;
    let sized = |bytes: usize| Message::new(bytes::Bytes::from(vec![b'x'; bytes])).key("k");
    let outcomes = lab
        .within(
            "publishing",
            publisher.publish_batch([sized(10), sized(2048), sized(20), sized(1 << 20), sized(2000)]),
        )
        .await?;
    ensure!(outcomes.len() == 5, "{} outcomes", outcomes.len());
    for (n, outcome) in outcomes.into_iter().enumerate() {
        if n % 2 == 0 {
            ensure!(outcome.is_confirmed(), "message {n} ended {outcome}");
        } else {
            let rejection = refused(outcome)?;
            ensure!(rejection.failure().code() == "MESSAGE_TOO_LARGE", "{rejection}");
            ensure!(rejection.failure().category() == FailureCategory::PermanentBusiness, "{rejection:?}");
            ensure!(rejection.message().is_some(), "the message is not handed back");
        }
    }
    ensure!(faults.counts().publishes == 3, "{} messages reached the adapter", faults.counts().publishes);
    ensure!(lab.stored(&name).await?.len() == 3, "not the three small ones are stored");
    lab.end(&messaging).await
}

async fn key_and_headers_count_towards_the_size(lab: &Lab) -> CaseResult {
    let (messaging, name) =
        lab.one_with(lab.spec().publish(PublishSpec::default().max_payload(1000))).await?;
    let publisher = messaging.bytes_publisher(&name)?;
    let message = |key: usize, header: usize| {
        Message::new(bytes::Bytes::from_static(b"small")).key("k".repeat(key)).header("h", "v".repeat(header))
    };
    let _ = lab.confirmed(publisher.publish(message(100, 100))).await?;
    for (key, header) in [(1000, 1), (1, 1000), (500, 500)] {
        let rejection = refused(lab.within("publishing", publisher.publish(message(key, header))).await?)?;
        ensure!(rejection.failure().code() == "MESSAGE_TOO_LARGE", "{rejection}");
    }
    lab.end(&messaging).await
}

async fn the_limit_of_a_destination_refuses_and_leaves_other_destinations_alone(lab: &Lab) -> CaseResult {
    let faults = Arc::new(Faults::publishing(|site, _| {
        if site.destination.as_str().contains("-full-") { PublishFault::Held } else { PublishFault::None }
    }));
    let (full, other) = (lab.destination("full"), lab.destination("other"));
    let specs = ProfileSpecs::new()
        .with(
            &full,
            lab.spec().publish(PublishSpec::default().in_flight(1).deadline(Duration::from_secs(15))),
        )
        .with(&other, lab.spec());
    let messaging = lab.start_with(Arc::clone(&faults), specs).await?;
    let publisher = messaging.publisher::<Number>(&full)?;
    let first = lab.within("submitting", publisher.submit(Number::message(1, "k1"))).await??;
    // Other keys, so that no turn of an ordering unit is waited for. Where the whole destination is one unit that
    // cannot be pipelined, the turn comes first; it is bounded by the deadline.
    if lab.capabilities().pipelined_order() || !lab.profile().ordering.is_ordered() {
        let second = lab.within("publishing", publisher.publish(Number::message(2, "k2"))).await?;
        let rejection = refused(second)?;
        ensure!(rejection.failure().code() == "DESTINATION_IN_FLIGHT_LIMIT_EXCEEDED", "{rejection}");
        ensure!(rejection.is_transient(), "a full destination is no permanent failure");
        let sent = faults.counts().publishes;
        ensure!(sent == 1, "{sent} messages reached the adapter");
        let back =
            rejection.into_message().ok_or_else(|| CaseError::new("the message is not handed back"))?;
        lab.publish(&messaging, &other, "k", [3]).await?;
        faults.open();
        let outcome = lab.within("the first outcome", first).await?;
        ensure!(outcome.is_confirmed(), "the first ended {outcome}");
        let _ = lab.confirmed(publisher.publish_encoded(back)).await?;
        ensure!(lab.stored_numbers(&full).await? == [1, 2], "not both are stored");
    } else {
        lab.publish(&messaging, &other, "k", [3]).await?;
        faults.open();
        let outcome = lab.within("the first outcome", first).await?;
        ensure!(outcome.is_confirmed(), "the first ended {outcome}");
    }
    lab.end(&messaging).await
}

/// Two destinations in one process that takes two messages, one of them reserved.
async fn crowded(
    lab: &Lab,
    faults: &Arc<Faults>,
    wait: Duration,
) -> Result<(consign_runtime::Messaging, String, String), CaseError> {
    let (one, two) = (lab.destination("one"), lab.destination("two"));
    let patient = || lab.spec().publish(PublishSpec::default().deadline(Duration::from_secs(15)));
    let admission = AdmissionSpec::default().in_flight(1).internal_share(0.0).wait(wait);
    let specs = ProfileSpecs::new().with(&one, patient()).with(&two, patient()).admission(admission);
    let messaging = lab.start_with(Arc::clone(faults), specs).await?;
    Ok((messaging, one, two))
}

async fn the_limit_of_the_process_refuses_after_a_bounded_wait(lab: &Lab) -> CaseResult {
    let faults = holding();
    let (messaging, one, two) = crowded(lab, &faults, Duration::from_millis(50)).await?;
    let first = messaging.publisher::<Number>(&one)?;
    let first = lab.within("submitting", first.submit(Number::message(1, "k"))).await??;
    let publisher = messaging.publisher::<Number>(&two)?;
    let rejection = refused(lab.within("publishing", publisher.publish(Number::message(2, "k"))).await?)?;
    ensure!(rejection.failure().code() == "IN_FLIGHT_LIMIT_EXCEEDED", "{rejection}");
    ensure!(rejection.is_transient(), "a full process is no permanent failure");
    ensure!(faults.counts().publishes == 1, "the refused message reached the adapter");
    faults.open();
    let outcome = lab.within("the first outcome", first).await?;
    ensure!(outcome.is_confirmed(), "the first ended {outcome}");
    lab.publish(&messaging, &two, "k", [3]).await?;
    ensure!(lab.stored_numbers(&two).await? == [3], "the refused message is stored");
    lab.end(&messaging).await
}

async fn the_byte_limit_refuses(lab: &Lab) -> CaseResult {
    let faults = holding();
    let name = lab.destination("d");
    let spec = lab.spec().publish(PublishSpec::default().max_payload(1000).deadline(Duration::from_secs(15)));
    let admission = AdmissionSpec::default().bytes(1000).internal_share(0.0).wait(Duration::from_millis(50));
    let specs = ProfileSpecs::new().with(&name, spec).admission(admission);
    let messaging = lab.start_with(Arc::clone(&faults), specs).await?;
    let publisher = messaging.bytes_publisher(&name)?;
    let big = || Message::new(bytes::Bytes::from(vec![0; 600])).key("k");
    let first = lab.within("submitting", publisher.submit(big())).await??;
    if lab.capabilities().pipelined_order() || !lab.profile().ordering.is_ordered() {
        let rejection = refused(lab.within("publishing", publisher.publish(big())).await?)?;
        ensure!(rejection.failure().code() == "IN_FLIGHT_LIMIT_EXCEEDED", "{rejection}");
        ensure!(faults.counts().publishes == 1, "the refused message reached the adapter");
    }
    let charged = messaging.health().await.bytes_in_flight;
    ensure!((600..=1000).contains(&charged), "{charged} bytes are charged for 601");
    faults.open();
    let outcome = lab.within("the first outcome", first).await?;
    ensure!(outcome.is_confirmed(), "the first ended {outcome}");
    lab.end(&messaging).await
}

async fn a_publish_that_waits_for_room_gets_it(lab: &Lab) -> CaseResult {
    let faults = holding();
    let (messaging, one, two) = crowded(lab, &faults, Duration::from_secs(10)).await?;
    let first = messaging.publisher::<Number>(&one)?;
    let first = lab.within("submitting", first.submit(Number::message(1, "k"))).await??;
    let publisher = messaging.publisher::<Number>(&two)?;
    let mut second = Box::pin(publisher.publish(Number::message(2, "k")));
    // One poll puts it into the queue; it cannot be done, since nothing returned.
    ensure!((&mut second).now_or_never().is_none(), "admitted beyond the limit");
    ensure!(faults.counts().publishes == 1, "a message was sent beyond the limit");
    faults.open();
    let outcome = lab.within("the first outcome", first).await?;
    ensure!(outcome.is_confirmed(), "the first ended {outcome}");
    let outcome = lab.within("the second outcome", second).await?;
    ensure!(outcome.is_confirmed(), "the one that waited ended {outcome}");
    lab.end(&messaging).await
}

async fn after_shutdown_everything_is_refused_and_the_size_is_checked_first(lab: &Lab) -> CaseResult {
    let (messaging, name) =
        lab.one_with(lab.spec().publish(PublishSpec::default().max_payload(1000))).await?;
    let publisher = messaging.bytes_publisher(&name)?;
    lab.end(&messaging).await?;
    let message = |size| Message::new(bytes::Bytes::from(vec![0; size])).key("k");
    let rejection = refused(lab.within("publishing", publisher.publish(message(10))).await?)?;
    ensure!(rejection.failure().code() == "SHUTTING_DOWN", "{rejection}");
    ensure!(rejection.failure().category() != FailureCategory::PermanentBusiness, "{rejection:?}");
    ensure!(rejection.message().is_some(), "the message is not handed back");
    let rejection = refused(lab.within("publishing", publisher.publish(message(5000))).await?)?;
    ensure!(rejection.failure().code() == "MESSAGE_TOO_LARGE", "{rejection}");
    ensure!(lab.stored(&name).await?.is_empty(), "something was sent after the shutdown");
    Ok(())
}

async fn permits_return_after_every_kind_of_outcome(lab: &Lab) -> CaseResult {
    // By destination: where the broker deduplicates, the runtime may publish a message of unknown end again.
    const FAULTS: [(&str, PublishFault); 5] = [
        ("fine", PublishFault::None),
        ("lost", PublishFault::ReplyLost),
        ("refused", PublishFault::Refused),
        ("dropped", PublishFault::Dropped),
        ("silent", PublishFault::ReplyHeld),
    ];
    let faults = Arc::new(Faults::publishing(|site, _| {
        let of = |(role, _): &&(&str, PublishFault)| site.destination.as_str().contains(&format!("-{role}-"));
        FAULTS.iter().find(of).map_or(PublishFault::None, |(_, fault)| *fault)
    }));
    let spec = lab.spec().publish(PublishSpec::default().deadline(Duration::from_millis(800)).in_flight(4));
    let names: Vec<_> = FAULTS.iter().map(|(role, _)| lab.destination(role)).collect();
    let specs = names.iter().fold(ProfileSpecs::new(), |specs, name| specs.with(name, spec.clone()));
    let messaging = lab.start_with(Arc::clone(&faults), specs).await?;
    let mut kinds = [0; 3];
    for (n, name) in (0..).zip(&names) {
        let publisher = messaging.publisher::<Number>(name)?;
        match lab.within("publishing", publisher.publish(Number::message(n, "k"))).await? {
            PublishOutcome::Confirmed(_) => kinds[0] += 1,
            PublishOutcome::Rejected(_) => kinds[1] += 1,
            PublishOutcome::Ambiguous(_) => kinds[2] += 1,
        }
    }
    ensure!(kinds == [1, 1, 3], "confirmed, rejected, ambiguous: {kinds:?}");
    // What was never answered may be charged in bytes until its answer comes.
    faults.open();
    let health = messaging.health().await;
    ensure!(
        health.publishes_in_flight == 0 && health.bytes_in_flight == 0,
        "{} publishes and {} bytes are still charged",
        health.publishes_in_flight,
        health.bytes_in_flight
    );
    lab.end(&messaging).await
}
