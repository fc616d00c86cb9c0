//! A failed message is tried again as its profile says: as often, as late, and nowhere else.

use std::sync::Arc;
use std::time::Duration;

use consign_core_api::message::reserved;
use consign_core_api::spi::RetryStrategy;
use consign_policy::{ProfileSpec, ProfileSpecs, RetrySpec};

use crate::case::{CaseResult, Need};
use crate::ensure;
use crate::history::{Happened, What};
use crate::lab::{Lab, failing_for_good, failing_for_now, panicking};
use crate::wrap::{Faults, PublishFault};

crate::cases! {
    a_transient_failure_is_tried_again_in_place:
        "a message that fails for now is handled again, and its attempts are counted" [Need::AT_LEAST_ONCE];
    the_attempts_end_at_their_limit:
        "max_attempts is the total, the first included" [Need::AT_LEAST_ONCE];
    a_permanent_failure_is_not_tried_again:
        "what fails for good is not retried" [Need::AT_LEAST_ONCE];
    a_panicking_handler_is_tried_again:
        "a panic is a failure for now, and counts an attempt" [Need::AT_LEAST_ONCE];
    a_retry_waits_out_its_delay:
        "the next attempt does not come before its back-off" [Need::AT_LEAST_ONCE];
    without_a_retry_there_is_one_attempt:
        "the default retries nothing" [Need::AT_LEAST_ONCE];
    a_failed_publish_of_the_handler_fails_the_message:
        "a publish that is not CONFIRMED keeps its source unsettled, and the retry repairs it"
        [Need::AT_LEAST_ONCE];
    a_copy_is_handled_with_its_attempts_and_not_before_its_time:
        "a retry by copies waits at the rung, keeps id, key, headers and payload, and counts on"
        [Need::AT_LEAST_ONCE, Need::Unordered];
    a_copy_is_handled_by_its_own_group_only:
        "a retry of one group is not handled by another" [Need::AT_LEAST_ONCE, Need::Unordered];
    copies_climb_from_rung_to_rung_and_end_in_the_origins_dead_letter:
        "limits and dead letter of the origin govern all rungs" [Need::AT_LEAST_ONCE, Need::Unordered];
    a_copy_that_is_not_confirmed_leaves_the_source_unsettled:
        "the source is settled only once its copy is CONFIRMED" [Need::AT_LEAST_ONCE, Need::Unordered];
    a_rung_cannot_be_consumed_by_itself:
        "a retry destination is read by its origin's consumer" [Need::AT_LEAST_ONCE, Need::Unordered];
}

fn retry(strategy: RetryStrategy, attempts: u32) -> RetrySpec {
    let soon = Duration::from_millis(20);
    RetrySpec::new(strategy).max_attempts(attempts).first(soon).max(soon * 5).jitter(0.0)
}

fn in_place(lab: &Lab, attempts: u32) -> ProfileSpec {
    lab.spec().retry(retry(RetryStrategy::InPlace, attempts))
}

async fn a_transient_failure_is_tried_again_in_place(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one_with(in_place(lab, 5)).await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let mut consuming = lab
        .consume_by(&messaging, &name, "g", |seen, _| async move {
            if seen.attempt < 3 { Err(failing_for_now()) } else { Ok(()) }
        })
        .await?;
    let attempts: Vec<_> = consuming.total(lab, 3).await?.iter().map(|seen| seen.attempt).collect();
    ensure!(attempts == [1, 2, 3], "the attempts are {attempts:?}");
    lab.happened("the settlement", 1, Happened::is_settled).await?;
    let failures = lab.history().count(|event| matches!(event.what, What::HandlerFailed(_)));
    ensure!(failures == 2, "{failures} failures were told");
    ensure!(consuming.quiet(lab).await?.len() == 3, "it came again after its success");
    lab.end(&messaging).await
}

async fn the_attempts_end_at_their_limit(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one_with(in_place(lab, 4)).await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let mut consuming =
        lab.consume_by(&messaging, &name, "g", |_, _| async { Err(failing_for_now()) }).await?;
    lab.happened("the halt", 1, |event| matches!(event.what, What::Halted(_))).await?;
    let attempts: Vec<_> = consuming.so_far().iter().map(|seen| seen.attempt).collect();
    ensure!(attempts == [1, 2, 3, 4], "4 attempts are allowed, and there were {attempts:?}");
    lab.end(&messaging).await
}

async fn a_permanent_failure_is_not_tried_again(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one_with(in_place(lab, 5)).await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let mut consuming =
        lab.consume_by(&messaging, &name, "g", |_, _| async { Err(failing_for_good()) }).await?;
    lab.happened("the halt", 1, |event| matches!(event.what, What::Halted(_))).await?;
    ensure!(
        consuming.so_far().len() == 1,
        "a permanent failure was tried {} times",
        consuming.so_far().len()
    );
    lab.end(&messaging).await
}

async fn a_panicking_handler_is_tried_again(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one_with(in_place(lab, 5)).await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let mut consuming = lab
        .consume_by(&messaging, &name, "g", |seen, _| async move {
            if seen.attempt == 1 {
                return panicking();
            }
            Ok(())
        })
        .await?;
    let attempts: Vec<_> = consuming.total(lab, 2).await?.iter().map(|seen| seen.attempt).collect();
    ensure!(attempts == [1, 2], "the attempts are {attempts:?}");
    lab.happened("the settlement", 1, Happened::is_settled).await?;
    lab.end(&messaging).await
}

async fn a_retry_waits_out_its_delay(lab: &Lab) -> CaseResult {
    let delay = Duration::from_millis(300);
    let spec = lab.spec().retry(
        RetrySpec::new(RetryStrategy::InPlace)
            .max_attempts(3)
            .first(delay)
            .max(delay * 4)
            .multiplier(2.0)
            .jitter(0.0),
    );
    let (messaging, name) = lab.one_with(spec).await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let mut consuming = lab
        .consume_by(&messaging, &name, "g", |seen, _| async move {
            if seen.attempt < 3 { Err(failing_for_now()) } else { Ok(()) }
        })
        .await?;
    let seen = consuming.total(lab, 3).await?;
    let (first, second) = (seen[1].at.duration_since(seen[0].at), seen[2].at.duration_since(seen[1].at));
    ensure!(
        first >= delay && second >= delay * 2,
        "delays of {delay:?} and twice that were {first:?} and {second:?}"
    );
    lab.end(&messaging).await
}

async fn without_a_retry_there_is_one_attempt(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let mut consuming =
        lab.consume_by(&messaging, &name, "g", |_, _| async { Err(failing_for_now()) }).await?;
    lab.happened("the halt", 1, |event| matches!(event.what, What::Halted(_))).await?;
    ensure!(consuming.so_far().len() == 1, "there were {} attempts", consuming.so_far().len());
    lab.end(&messaging).await
}

async fn a_failed_publish_of_the_handler_fails_the_message(lab: &Lab) -> CaseResult {
    let faults = Arc::new(Faults::publishing(|site, _| {
        if site.destination.as_str().contains("-unlucky-") {
            PublishFault::ReplyLost
        } else {
            PublishFault::None
        }
    }));
    let (name, unlucky, lucky) = (lab.destination("d"), lab.destination("unlucky"), lab.destination("lucky"));
    let specs =
        ProfileSpecs::new().with(&name, in_place(lab, 5)).with(&unlucky, lab.spec()).with(&lucky, lab.spec());
    let messaging = lab.start_with(faults, specs).await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let targets = (unlucky.clone(), lucky.clone());
    let mut consuming = lab
        .consume_by(&messaging, &name, "g", move |seen, context| {
            let to = if seen.attempt == 1 { targets.0.clone() } else { targets.1.clone() };
            async move {
                let publisher = context.publisher::<crate::lab::Number>(&to)?;
                publisher.publish(crate::lab::Number::message(seen.n, "k")).await.into_result()?;
                Ok(())
            }
        })
        .await?;
    lab.happened("the settlement", 1, Happened::is_settled).await?;
    let seen = consuming.so_far().len();
    ensure!(seen == 2, "there were {seen} attempts, and the first one's publish was not confirmed");
    ensure!(lab.stored_numbers(&lucky).await? == [1], "the second attempt's publish is missing");
    lab.end(&messaging).await
}

async fn a_copy_is_handled_with_its_attempts_and_not_before_its_time(lab: &Lab) -> CaseResult {
    let delay = Duration::from_millis(500);
    let (name, rung) = (lab.destination("d"), lab.destination("rung"));
    let retry = RetrySpec::to(&rung).max_attempts(4).first(delay).max(delay).jitter(0.0);
    let messaging =
        lab.start(ProfileSpecs::new().with(&name, lab.spec().retry(retry)).with(&rung, lab.spec())).await?;
    let publisher = messaging.publisher::<crate::lab::Number>(&name)?;
    let message = crate::lab::Number::message(1, "the-key").header("mine", "as it was");
    let id = message.parts().id.clone();
    let _ = lab.confirmed(publisher.publish(message)).await?;
    let mut consuming = lab
        .consume_by(&messaging, &name, "g", |seen, _| async move {
            if seen.attempt == 1 { Err(failing_for_now()) } else { Ok(()) }
        })
        .await?;
    let seen = consuming.total(lab, 2).await?;
    let (first, copy) = (&seen[0], &seen[1]);
    ensure!(copy.attempt == 2, "the copy's attempt is {}", copy.attempt);
    let waited = copy.at.duration_since(first.at);
    ensure!(waited >= delay, "the copy was handled after {waited:?}, before its delay of {delay:?}");
    ensure!(copy.message.id() == id.as_ref(), "the copy has another id");
    ensure!(copy.key == "the-key", "the copy's key is {:?}", copy.key);
    ensure!(copy.message.payload() == first.message.payload(), "the copy has another payload");
    ensure!(
        copy.message.headers().first("mine").is_some_and(|h| h.value() == "as it was"),
        "the copy lost a header"
    );
    lab.happened("two settlements", 2, Happened::is_settled).await?;
    let stored = lab.stored(&rung).await?;
    ensure!(stored.len() == 1, "{} copies are at the rung", stored.len());
    let header =
        |name| stored[0].message.headers().first(name).and_then(|h| h.text()).unwrap_or_default().to_owned();
    ensure!(header(reserved::ORIGIN) == name, "the origin is {:?}", header(reserved::ORIGIN));
    ensure!(header(reserved::GROUP) == "g", "the group is {:?}", header(reserved::GROUP));
    lab.end(&messaging).await
}

async fn a_copy_is_handled_by_its_own_group_only(lab: &Lab) -> CaseResult {
    let (name, rung) = (lab.destination("d"), lab.destination("rung"));
    let spec = lab.spec().retry(RetrySpec::to(&rung).max_attempts(4).first(Duration::from_millis(50)));
    let messaging = lab.start(ProfileSpecs::new().with(&name, spec).with(&rung, lab.spec())).await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let mut other = lab.consume(&messaging, &name, "other").await?;
    let mut failing = lab
        .consume_by(&messaging, &name, "failing", |seen, _| async move {
            if seen.attempt == 1 { Err(failing_for_now()) } else { Ok(()) }
        })
        .await?;
    failing.total(lab, 2).await?;
    lab.happened("the filter", 1, |event| event.is(What::Filtered) && event.at(&rung)).await?;
    other.quiet(lab).await?;
    failing.quiet(lab).await?;
    ensure!(other.numbers() == [1], "the other group handled {:?}", other.numbers());
    ensure!(failing.numbers() == [1, 1], "the failing group handled {:?}", failing.numbers());
    lab.end(&messaging).await
}

async fn copies_climb_from_rung_to_rung_and_end_in_the_origins_dead_letter(lab: &Lab) -> CaseResult {
    let (name, one, two) = (lab.destination("d"), lab.destination("one"), lab.destination("two"));
    let dead = lab.destination("dead");
    let soon = Duration::from_millis(30);
    let specs = ProfileSpecs::new()
        .with(&name, lab.spec().retry(RetrySpec::to(&one).max_attempts(3).first(soon)).dead_letter(&dead))
        .with(&one, lab.spec().retry(RetrySpec::to(&two).first(soon)))
        .with(&two, lab.spec())
        .with(&dead, lab.spec());
    let messaging = lab.start(specs).await?;
    let ids = lab.publish(&messaging, &name, "k", [1]).await?;
    let mut consuming =
        lab.consume_by(&messaging, &name, "g", |_, _| async { Err(failing_for_now()) }).await?;
    lab.happened("the dead letter", 1, |event| matches!(event.what, What::DeadLettered(_))).await?;
    consuming.quiet(lab).await?;
    let attempts: Vec<_> = consuming.so_far().iter().map(|seen| seen.attempt).collect();
    ensure!(attempts == [1, 2, 3], "the attempts over two rungs are {attempts:?}");
    for (place, count) in [(&one, 1), (&two, 1), (&dead, 1)] {
        let stored = lab.stored(place).await?;
        ensure!(stored.len() == count, "{} messages in {place}", stored.len());
        ensure!(stored.iter().all(|held| held.message.id() == ids.first()), "a copy has another id");
    }
    lab.end(&messaging).await
}

async fn a_copy_that_is_not_confirmed_leaves_the_source_unsettled(lab: &Lab) -> CaseResult {
    let faults = Arc::new(Faults::publishing(|site, _| {
        if site.destination.as_str().contains("-rung-") { PublishFault::Lost } else { PublishFault::None }
    }));
    let (name, rung) = (lab.destination("d"), lab.destination("rung"));
    let spec = lab.spec().retry(RetrySpec::to(&rung).max_attempts(4).first(Duration::from_millis(20)));
    let specs = ProfileSpecs::new().with(&name, spec).with(&rung, lab.spec());
    let messaging = lab.start_with(faults, specs.clone()).await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let mut consuming =
        lab.consume_by(&messaging, &name, "g", |_, _| async { Err(failing_for_now()) }).await?;
    consuming.next(lab).await?;
    lab.happened("the copy's outcome", 1, |event| {
        event.at(&rung) && matches!(event.what, What::Ambiguous(_))
    })
    .await?;
    lab.end(&messaging).await?;
    let settled = lab.history().count(|event| event.at(&name) && event.is_settled());
    ensure!(settled == 0, "the source was settled although its copy is not confirmed");
    let again = lab.start(specs).await?;
    let mut consuming = lab.consume(&again, &name, "g").await?;
    consuming.every(lab, [1]).await?;
    lab.end(&again).await
}

async fn a_rung_cannot_be_consumed_by_itself(lab: &Lab) -> CaseResult {
    let (name, rung) = (lab.destination("d"), lab.destination("rung"));
    let spec = lab.spec().retry(RetrySpec::to(&rung).max_attempts(4));
    let messaging = lab.start(ProfileSpecs::new().with(&name, spec).with(&rung, lab.spec())).await?;
    let handler = |_: consign_runtime::consumer::Delivery<crate::lab::Number>, _| async { Ok(()) };
    let refused = lab.within("starting to consume", messaging.consume(&rung, "g", handler)).await?;
    let code = refused.err().map(|error| error.code());
    ensure!(code.is_some_and(|code| code == "RUNG_NOT_CONSUMABLE"), "consuming a rung: {code:?}");
    lab.end(&messaging).await
}
