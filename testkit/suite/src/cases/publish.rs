//! A publish ends by its deadline in one of three outcomes, and the outcome is true.

use std::sync::Arc;
use std::time::Duration;

use consign_core_api::outcome::Transmission;
use consign_core_api::{Message, PublishOutcome};
use consign_policy::{ProfileSpec, ProfileSpecs, PublishSpec};
use consign_runtime::Messaging;
use tokio::time::Instant;

use crate::case::{CaseError, CaseResult};
use crate::ensure;
use crate::history::What;
use crate::lab::{LAG, Lab, Number};
use crate::wrap::{Faults, PublishFault};

crate::cases! {
    a_confirmed_message_is_stored:
        "CONFIRMED means that the broker holds the message, once";
    every_confirmed_message_of_many_is_stored_once:
        "what is CONFIRMED is stored once, whatever else is published at the same time";
    every_message_of_a_batch_has_an_outcome_of_its_own:
        "a batch returns one outcome per message, in order";
    a_reply_that_does_not_come_is_ambiguous_at_the_deadline:
        "without an answer the outcome is AMBIGUOUS, by the deadline";
    a_message_that_was_never_handed_over_is_rejected_at_the_deadline:
        "REJECTED at the deadline means that the message never leaves afterwards";
    a_late_confirmation_changes_no_verdict_and_is_told:
        "a result after the verdict is told to the observer, and is never a second verdict";
    a_lost_reply_is_ambiguous_although_the_message_is_stored:
        "unknown is AMBIGUOUS, never REJECTED";
    a_publish_dropped_by_the_adapter_after_the_hand_over_is_ambiguous:
        "an adapter that forgets a message leaves no publisher waiting and no lie";
    a_publish_dropped_by_the_adapter_before_the_hand_over_is_rejected:
        "what was provably never sent is REJECTED, and handed back";
    a_refusal_by_the_broker_is_rejected_and_hands_the_message_back:
        "a refused message comes back whole, and can be published again";
    a_dropped_publish_is_still_observed_and_returns_its_permit:
        "dropping a publish future loses neither the outcome nor the permit";
    a_dropped_receipt_is_still_observed:
        "dropping a receipt does not take the message back";
    a_pipeline_is_never_refused_by_its_own_speed:
        "a window waits for its own oldest outcome, and its loop is not refused";
    a_pipeline_hands_outcomes_out_in_the_order_of_submission:
        "outcomes come in the order of submission, whatever the order of the answers";
    a_pipeline_window_beyond_the_limit_is_refused:
        "a window of zero or above publish.in_flight is refused by a typed error";
    an_adapter_answers_each_publish_once:
        "an answer that was given is not followed by another";
    outcomes_of_other_messages_do_not_wait_for_a_silent_one:
        "one message without an answer holds up no other";
}

fn deadline(spec: ProfileSpec, deadline: Duration) -> ProfileSpec {
    spec.publish(PublishSpec::default().deadline(deadline))
}

const SHORT: Duration = Duration::from_millis(600);

/// Starts a library with one destination of a short deadline and this fault for every publish.
async fn faulty(lab: &Lab, fault: PublishFault) -> Result<(Messaging, String, Arc<Faults>), CaseError> {
    let faults = Arc::new(Faults::publishing(move |_, _| fault));
    let name = lab.destination("d");
    let specs = ProfileSpecs::new().with(&name, deadline(lab.spec(), SHORT));
    let messaging = lab.start_with(Arc::clone(&faults), specs).await?;
    Ok((messaging, name, faults))
}

async fn a_confirmed_message_is_stored(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    let ids = lab.publish(&messaging, &name, "k", [1]).await?;
    let stored = lab.stored(&name).await?;
    ensure!(stored.len() == 1, "{} messages are stored", stored.len());
    ensure!(stored[0].message.id() == ids.first(), "another message is stored: {stored:?}");
    lab.end(&messaging).await
}

async fn every_confirmed_message_of_many_is_stored_once(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    let all = (0..200).map(|n| {
        let publisher = publisher.clone();
        async move { publisher.publish(Number::message(n, &format!("k{}", n % 7))).await }
    });
    let outcomes = lab.within("publishing", futures_util::future::join_all(all)).await?;
    let confirmed = outcomes.iter().filter(|outcome| outcome.is_confirmed()).count();
    ensure!(
        confirmed == 200,
        "{confirmed} of 200 are confirmed: {:?}",
        outcomes.iter().find(|o| !o.is_confirmed())
    );
    let mut stored = lab.stored_numbers(&name).await?;
    stored.sort_unstable();
    ensure!(stored == (0..200).collect::<Vec<_>>(), "stored are {stored:?}");
    lab.end(&messaging).await
}

async fn every_message_of_a_batch_has_an_outcome_of_its_own(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    let publisher = messaging.publisher(&name)?;
    let messages = (0..20).map(|n| {
        let message = Number::message(n, "k");
        if n % 5 == 4 { message.header("consign-mine", "x") } else { message }
    });
    let outcomes = lab.within("publishing", publisher.publish_batch(messages)).await?;
    ensure!(outcomes.len() == 20, "{} outcomes for 20 messages", outcomes.len());
    for (n, outcome) in outcomes.iter().enumerate() {
        let wanted = if n % 5 == 4 { outcome.is_rejected() } else { outcome.is_confirmed() };
        ensure!(wanted, "message {n} of the batch ended {outcome}");
    }
    let stored = lab.stored_numbers(&name).await?;
    ensure!(stored.len() == 16 && stored.iter().all(|n| n % 5 != 4), "stored are {stored:?}");
    lab.end(&messaging).await
}

async fn a_reply_that_does_not_come_is_ambiguous_at_the_deadline(lab: &Lab) -> CaseResult {
    let (messaging, name, faults) = faulty(lab, PublishFault::ReplyHeld).await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    let started = Instant::now();
    let outcome = lab.within("publishing", publisher.publish(Number::message(1, "k"))).await?;
    let took = started.elapsed();
    ensure!(outcome.is_ambiguous(), "without an answer it ended {outcome}");
    let code = outcome.failure().map(consign_core_api::Failure::code);
    ensure!(code.is_some_and(|code| code == "CONFIRMATION_TIMED_OUT"), "the code is {code:?}");
    ensure!(took < SHORT + LAG, "the deadline was {SHORT:?} and it took {took:?}");
    ensure!(lab.stored_numbers(&name).await? == [1], "the message was handed over and is not stored");
    faults.open();
    lab.end(&messaging).await
}

async fn a_message_that_was_never_handed_over_is_rejected_at_the_deadline(lab: &Lab) -> CaseResult {
    let (messaging, name, faults) = faulty(lab, PublishFault::Held).await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    let outcome = lab.within("publishing", publisher.publish(Number::message(1, "k"))).await?;
    let PublishOutcome::Rejected(rejection) = outcome else {
        return Err(CaseError::new(format!("a message that never left ended {outcome}")));
    };
    ensure!(rejection.transmission() == Transmission::NotTransmitted, "{rejection:?}");
    ensure!(rejection.failure().code() == "DEADLINE_BEFORE_TRANSMISSION", "{rejection}");
    ensure!(rejection.message().is_some(), "the message is not handed back");
    // Now the adapter gets round to it, too late: the message must not leave any more.
    faults.open();
    lab.publish(&messaging, &name, "k", [2]).await?;
    let stored = lab.stored_numbers(&name).await?;
    ensure!(stored == [2], "a message was REJECTED and is stored: {stored:?}");
    lab.end(&messaging).await
}

async fn a_late_confirmation_changes_no_verdict_and_is_told(lab: &Lab) -> CaseResult {
    let (messaging, name, faults) = faulty(lab, PublishFault::ReplyHeld).await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    let outcome = lab.within("publishing", publisher.publish(Number::message(1, "k"))).await?;
    ensure!(outcome.is_ambiguous(), "without an answer it ended {outcome}");
    lab.within("the broker's answer", faults.until(|counts| counts.held > 0)).await?;
    faults.open();
    lab.happened("a late resolution", 1, |event| event.is(What::Late(true))).await?;
    let verdicts = lab
        .history()
        .count(|event| matches!(event.what, What::Confirmed | What::Rejected(_) | What::Ambiguous(_)));
    ensure!(verdicts == 1, "{verdicts} verdicts on one publish");
    lab.end(&messaging).await
}

async fn a_lost_reply_is_ambiguous_although_the_message_is_stored(lab: &Lab) -> CaseResult {
    let faults = Arc::new(Faults::publishing(|_, _| PublishFault::ReplyLost));
    let name = lab.destination("d");
    let specs = ProfileSpecs::new().with(&name, deadline(lab.spec(), SHORT));
    let messaging = lab.start_with(Arc::clone(&faults), specs).await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    let outcome = lab.within("publishing", publisher.publish(Number::message(1, "k"))).await?;
    ensure!(outcome.is_ambiguous(), "a publish whose reply was lost ended {outcome}");
    ensure!(!lab.stored_numbers(&name).await?.is_empty(), "it reached the broker and is not stored");
    lab.end(&messaging).await
}

async fn a_publish_dropped_by_the_adapter_after_the_hand_over_is_ambiguous(lab: &Lab) -> CaseResult {
    let (messaging, name, _) = faulty(lab, PublishFault::Dropped).await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    let outcome = lab.within("publishing", publisher.publish(Number::message(1, "k"))).await?;
    ensure!(outcome.is_ambiguous(), "a message that may have left ended {outcome}");
    lab.end(&messaging).await
}

async fn a_publish_dropped_by_the_adapter_before_the_hand_over_is_rejected(lab: &Lab) -> CaseResult {
    let (messaging, name, _) = faulty(lab, PublishFault::DroppedUnsent).await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    let outcome = lab.within("publishing", publisher.publish(Number::message(1, "k"))).await?;
    let PublishOutcome::Rejected(rejection) = outcome else {
        return Err(CaseError::new(format!("a message that never left ended {outcome}")));
    };
    ensure!(rejection.message().is_some(), "the message is not handed back");
    lab.end(&messaging).await
}

async fn a_refusal_by_the_broker_is_rejected_and_hands_the_message_back(lab: &Lab) -> CaseResult {
    let faults =
        Arc::new(Faults::publishing(|_, n| if n == 0 { PublishFault::Refused } else { PublishFault::None }));
    let name = lab.destination("d");
    let messaging = lab.start_with(faults, ProfileSpecs::new().with(&name, lab.spec())).await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    let message = Number::message(7, "the-key").header("h", "v");
    let id = message.parts().id.clone();
    let outcome = lab.within("publishing", publisher.publish(message)).await?;
    let PublishOutcome::Rejected(rejection) = outcome else {
        return Err(CaseError::new(format!("a refusal ended {outcome}")));
    };
    ensure!(rejection.transmission() == Transmission::RefusedByBroker, "{rejection:?}");
    let Some(back) = rejection.into_message() else {
        return Err(CaseError::new("the message is not handed back"));
    };
    let _ = lab.confirmed(publisher.publish_encoded(back)).await?;
    let stored = lab.stored(&name).await?;
    ensure!(stored.len() == 1, "{} are stored", stored.len());
    let message = &stored[0].message;
    ensure!(message.id() == id.as_ref(), "it came back under another id");
    ensure!(message.key().is_some_and(|key| key == "the-key"), "it came back with another key");
    ensure!(message.headers().first("h").is_some_and(|h| h.value() == "v"), "it lost its header");
    lab.end(&messaging).await
}

async fn a_dropped_publish_is_still_observed_and_returns_its_permit(lab: &Lab) -> CaseResult {
    let faults = Arc::new(Faults::publishing(|_, _| PublishFault::ReplyHeld));
    let name = lab.destination("d");
    let messaging = lab.start_with(Arc::clone(&faults), ProfileSpecs::new().with(&name, lab.spec())).await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    {
        let mut publish = Box::pin(publisher.publish(Number::message(1, "k")));
        let held = lab.within("the broker's answer", faults.until(|counts| counts.held > 0));
        tokio::select! {
            outcome = &mut publish => return Err(CaseError::new(format!("it ended although nothing was answered: {outcome}"))),
            held = held => held?,
        }
    }
    ensure!(messaging.health().await.publishes_in_flight == 1, "the publish is forgotten");
    faults.open();
    lab.happened("the outcome", 1, |event| event.is(What::Confirmed)).await?;
    let health = messaging.health().await;
    ensure!(
        health.publishes_in_flight == 0 && health.bytes_in_flight == 0,
        "{} publishes and {} bytes are still charged",
        health.publishes_in_flight,
        health.bytes_in_flight
    );
    lab.end(&messaging).await
}

async fn a_dropped_receipt_is_still_observed(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    let receipt = lab.within("submitting", publisher.submit(Number::message(1, "k"))).await??;
    drop(receipt);
    lab.happened("the outcome", 1, |event| event.is(What::Confirmed)).await?;
    ensure!(lab.stored_numbers(&name).await? == [1], "the message was taken back");
    lab.end(&messaging).await
}

async fn a_pipeline_is_never_refused_by_its_own_speed(lab: &Lab) -> CaseResult {
    let spec = lab.spec().publish(PublishSpec::default().in_flight(8).deadline(Duration::from_secs(15)));
    let (messaging, name) = lab.one_with(spec).await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    let mut window = publisher.pipeline(8)?;
    let mut outcomes = Vec::new();
    for n in 0..200 {
        let done =
            lab.within("submitting", window.submit(Number::message(n, &format!("k{}", n % 5)))).await??;
        outcomes.extend(done.map(|(_, outcome)| outcome));
        ensure!(window.in_flight() <= 8, "{} are in flight in a window of 8", window.in_flight());
    }
    while let Some((_, outcome)) = lab.within("an outcome", window.next()).await? {
        outcomes.push(outcome);
    }
    ensure!(outcomes.len() == 200, "{} outcomes for 200 messages", outcomes.len());
    if let Some(wrong) = outcomes.iter().find(|outcome| !outcome.is_confirmed()) {
        return Err(CaseError::new(format!("one ended {wrong}")));
    }
    ensure!(lab.stored(&name).await?.len() == 200, "not all are stored");
    lab.end(&messaging).await
}

async fn a_pipeline_hands_outcomes_out_in_the_order_of_submission(lab: &Lab) -> CaseResult {
    let faults = Arc::new(Faults::publishing(|_, _| PublishFault::ReplyHeld));
    let name = lab.destination("d");
    let messaging = lab.start_with(Arc::clone(&faults), ProfileSpecs::new().with(&name, lab.spec())).await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    // Different keys, so that they are in flight together even where an adapter cannot pipeline a key.
    let together =
        if lab.capabilities().pipelined_order() || !lab.profile().ordering.is_ordered() { 4 } else { 1 };
    let mut window = publisher.pipeline(together)?;
    let mut ids = Vec::new();
    for n in 0..together {
        let message = Number::message(n as u64, &format!("k{n}"));
        ids.push(message.parts().id.clone());
        let early = lab.within("submitting", window.submit(message)).await??;
        ensure!(early.is_none(), "an outcome before any answer");
    }
    lab.within("the broker's answers", faults.until(|counts| counts.held == together)).await?;
    while faults.let_the_newest_go() {}
    faults.open();
    for id in ids {
        let next = lab.within("an outcome", window.next()).await?;
        let Some((told, outcome)) = next else { return Err(CaseError::new("an outcome is missing")) };
        ensure!(told == id, "the outcome of {told:?} came in the place of {id:?}");
        ensure!(outcome.is_confirmed(), "{outcome}");
    }
    ensure!(window.next().await.is_none(), "an outcome too many");
    lab.end(&messaging).await
}

async fn a_pipeline_window_beyond_the_limit_is_refused(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one_with(lab.spec().publish(PublishSpec::default().in_flight(4))).await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    for size in [0, 5, usize::MAX] {
        match publisher.pipeline(size) {
            Ok(_) => return Err(CaseError::new(format!("a window of {size} was accepted"))),
            Err(error) => ensure!(error.code() == "WINDOW_OUT_OF_RANGE", "{error}"),
        }
    }
    ensure!(publisher.pipeline(4).is_ok(), "the largest legal window was refused");
    lab.end(&messaging).await
}

async fn outcomes_of_other_messages_do_not_wait_for_a_silent_one(lab: &Lab) -> CaseResult {
    let faults = Arc::new(Faults::publishing(|site, _| {
        if site.destination.as_str().contains("-silent-") {
            PublishFault::ReplyHeld
        } else {
            PublishFault::None
        }
    }));
    let (silent, other) = (lab.destination("silent"), lab.destination("other"));
    let specs = ProfileSpecs::new().with(&silent, lab.spec()).with(&other, lab.spec());
    let messaging = lab.start_with(Arc::clone(&faults), specs).await?;
    let waiting =
        messaging.publisher::<Number>(&silent)?.submit(Message::new(Number { n: 0 }).key("k")).await?;
    lab.publish(&messaging, &other, "k", 1..=5).await?;
    faults.open();
    let outcome = lab.within("the answer", waiting).await?;
    ensure!(outcome.is_confirmed(), "the silent one ended {outcome}");
    lab.end(&messaging).await
}

async fn an_adapter_answers_each_publish_once(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    lab.publish(&messaging, &name, "k", 0..30).await?;
    lab.end(&messaging).await?;
    let late = lab.history().count(|event| matches!(event.what, What::Late(_)));
    ensure!(late == 0, "{late} answers came after the answer");
    Ok(())
}
