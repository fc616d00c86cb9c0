//! Everything ends by its deadline, and says what it leaves behind.

use std::sync::Arc;
use std::time::Duration;

use consign_policy::{ProfileSpecs, PublishSpec};
use futures_util::FutureExt as _;
use tokio::time::Instant;

use crate::case::{CaseError, CaseResult, Need};
use crate::ensure;
use crate::history::{Happened, What};
use crate::lab::{Gate, LAG, Lab, Number};
use crate::wrap::{Faults, PublishFault};

crate::cases! {
    an_unused_library_shuts_down_clean:
        "a shutdown without any work is harmless and leaves nothing";
    a_shutdown_twice_and_at_once_is_one_shutdown:
        "repeated and concurrent shutdowns are harmless, and tell the same";
    a_shutdown_waits_for_what_is_in_flight:
        "an outcome that is on its way comes before the shutdown returns";
    a_shutdown_lists_what_stayed_ambiguous_by_its_deadline:
        "a publish without an answer is AMBIGUOUS, is listed, and holds nothing up";
    a_shutdown_lists_what_was_never_sent_as_rejected:
        "a publish that never left is REJECTED at the shutdown, and never sent afterwards";
    a_shutdown_lets_running_handlers_finish_and_settles_them:
        "a handler that runs is waited for, and its message is settled";
    a_running_handler_can_still_publish_during_a_shutdown:
        "external publishes are refused before those of running handlers" [Need::AT_LEAST_ONCE];
    a_shutdown_lists_what_stayed_unsettled_by_its_deadline:
        "a handler that does not end holds up no shutdown, and its message is listed" [Need::AT_LEAST_ONCE];
    dropping_the_last_handle_sends_no_settlement:
        "what is in a handler when the library is dropped comes again" [Need::AT_LEAST_ONCE];
    dropping_a_consumer_handle_detaches_it:
        "a consumer goes on when its handle is dropped";
    a_stopped_consumer_leaves_others_alone_and_can_be_started_again:
        "stop ends one consumer, and nothing is lost over it";
    what_a_stopped_consumer_had_not_handled_is_handled_later:
        "messages that waited when the consumer stopped are not lost" [Need::AT_LEAST_ONCE];
    building_again_on_the_same_broker_finds_what_is_there:
        "a second library sees the first one's messages and groups";
    consuming_after_a_shutdown_is_refused:
        "a library that was shut down starts nothing";
}

async fn an_unused_library_shuts_down_clean(lab: &Lab) -> CaseResult {
    let (messaging, _) = lab.one().await?;
    ensure!(messaging.health().await.live, "it does not live");
    let report = lab.within("shutdown", messaging.shutdown(Duration::from_secs(5))).await?;
    ensure!(report.is_clean(), "{report}");
    ensure!(!messaging.health().await.ready, "ready after its shutdown");
    Ok(())
}

async fn a_shutdown_twice_and_at_once_is_one_shutdown(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    lab.publish(&messaging, &name, "k", 0..3).await?;
    let mut consuming = lab.consume(&messaging, &name, "g").await?;
    consuming.every(lab, 0..3).await?;
    let end = || messaging.shutdown(Duration::from_secs(5));
    let (one, two) = lab.within("shutdowns", futures_util::future::join(end(), end())).await?;
    let three = lab.within("a third shutdown", end()).await?;
    ensure!(one.settled == two.settled && two.settled == three.settled, "they tell: {one} / {two} / {three}");
    Ok(())
}

async fn a_shutdown_waits_for_what_is_in_flight(lab: &Lab) -> CaseResult {
    let faults = Arc::new(Faults::publishing(|_, _| PublishFault::ReplyHeld));
    let name = lab.destination("d");
    let messaging = lab.start_with(Arc::clone(&faults), ProfileSpecs::new().with(&name, lab.spec())).await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    let receipt = lab.within("submitting", publisher.submit(Number::message(1, "k"))).await??;
    lab.within("the broker's answer", faults.until(|counts| counts.held == 1)).await?;
    let mut shutdown = Box::pin(messaging.shutdown(Duration::from_secs(10)));
    ensure!((&mut shutdown).now_or_never().is_none(), "it did not wait");
    faults.open();
    let outcome = lab.within("the outcome", receipt).await?;
    ensure!(outcome.is_confirmed(), "answered before the shutdown's deadline, and ended {outcome}");
    let report = lab.within("shutdown", shutdown).await?;
    ensure!(report.ambiguous.is_empty() && report.unsent.is_empty(), "{report}");
    Ok(())
}

async fn left_behind(
    lab: &Lab,
    fault: PublishFault,
) -> Result<
    (consign_core_api::PublishOutcome, consign_runtime::shutdown::ShutdownReport, String, Arc<Faults>),
    CaseError,
> {
    let faults = Arc::new(Faults::publishing(move |_, _| fault));
    let name = lab.destination("d");
    let spec = lab.spec().publish(PublishSpec::default().deadline(Duration::from_secs(60)));
    let messaging = lab.start_with(Arc::clone(&faults), ProfileSpecs::new().with(&name, spec)).await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    let receipt = lab.within("submitting", publisher.submit(Number::message(1, "k"))).await??;
    lab.within("the hold", faults.until(|counts| counts.held == 1)).await?;
    let (started, deadline) = (Instant::now(), Duration::from_secs(1));
    let report = lab.within("shutdown", messaging.shutdown(deadline)).await?;
    let took = started.elapsed();
    ensure!(took < deadline + LAG, "the deadline was {deadline:?}, and it took {took:?}");
    let outcome = lab.within("the outcome", receipt).await?;
    Ok((outcome, report, name, faults))
}

async fn a_shutdown_lists_what_stayed_ambiguous_by_its_deadline(lab: &Lab) -> CaseResult {
    let (outcome, report, _, faults) = left_behind(lab, PublishFault::ReplyHeld).await?;
    ensure!(outcome.is_ambiguous(), "it was handed over and not answered, and ended {outcome}");
    ensure!(report.ambiguous.len() == 1 && report.unsent.is_empty(), "{report}");
    ensure!(report.ambiguous[0].id.is_some(), "it is listed without its id");
    faults.open();
    Ok(())
}

async fn a_shutdown_lists_what_was_never_sent_as_rejected(lab: &Lab) -> CaseResult {
    let (outcome, report, name, faults) = left_behind(lab, PublishFault::Held).await?;
    ensure!(outcome.is_rejected(), "it never left, and ended {outcome}");
    ensure!(report.unsent.len() == 1 && report.ambiguous.is_empty(), "{report}");
    faults.open();
    ensure!(lab.stored(&name).await?.is_empty(), "a REJECTED message is stored");
    Ok(())
}

async fn a_shutdown_lets_running_handlers_finish_and_settles_them(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let gate = Gate::default();
    let wait = gate.clone();
    let mut consuming = lab
        .consume_by(&messaging, &name, "g", move |_, _| {
            let wait = wait.clone();
            async move {
                wait.pass().await;
                Ok(())
            }
        })
        .await?;
    consuming.next(lab).await?;
    let mut shutdown = Box::pin(messaging.shutdown(Duration::from_secs(10)));
    ensure!((&mut shutdown).now_or_never().is_none(), "it did not wait for the handler");
    gate.open();
    let report = lab.within("shutdown", shutdown).await?;
    ensure!(report.unsettled.is_empty() && report.settled == 1, "{report}");
    Ok(())
}

async fn a_running_handler_can_still_publish_during_a_shutdown(lab: &Lab) -> CaseResult {
    let (name, out) = (lab.destination("d"), lab.destination("out"));
    let messaging = lab.start(ProfileSpecs::new().with(&name, lab.spec()).with(&out, lab.spec())).await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let gate = Gate::default();
    let (wait, to) = (gate.clone(), out.clone());
    let mut consuming = lab
        .consume_by(&messaging, &name, "g", move |seen, context| {
            let (wait, to) = (wait.clone(), to.clone());
            async move {
                wait.pass().await;
                let publisher = context.publisher::<Number>(&to)?;
                publisher.publish(Number::message(seen.n, "k")).await.into_result()?;
                Ok(())
            }
        })
        .await?;
    consuming.next(lab).await?;
    let outside = messaging.publisher::<Number>(&out)?;
    let mut shutdown = Box::pin(messaging.shutdown(Duration::from_secs(10)));
    ensure!((&mut shutdown).now_or_never().is_none(), "it did not wait for the handler");
    // The shutdown is a task of its own: from outside nothing is let in as soon as it runs.
    lab.within("the closed door", async {
        while !outside.publish(Number::message(9, "k")).await.is_rejected() {
            tokio::task::yield_now().await;
        }
    })
    .await?;
    gate.open();
    let report = lab.within("shutdown", shutdown).await?;
    ensure!(report.unsettled.is_empty(), "{report}");
    let stored = lab.stored_numbers(&out).await?;
    ensure!(stored.contains(&1), "the handler's publish is missing: {stored:?}");
    Ok(())
}

async fn a_shutdown_lists_what_stayed_unsettled_by_its_deadline(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let mut consuming = lab.consume_by(&messaging, &name, "g", |_, _| std::future::pending()).await?;
    consuming.next(lab).await?;
    let (started, deadline) = (Instant::now(), Duration::from_millis(800));
    let report = lab.within("shutdown", messaging.shutdown(deadline)).await?;
    let took = started.elapsed();
    ensure!(took < deadline + LAG, "the deadline was {deadline:?}, and it took {took:?}");
    ensure!(report.settled == 0, "a handler that never ended was settled: {report}");
    // Given back with proof, or listed: either way somebody knows.
    let released = lab.history().count(|event| event.is(What::Released));
    ensure!(report.unsettled.len() + released >= 1, "neither listed nor given back: {report}");
    Ok(())
}

async fn dropping_the_last_handle_sends_no_settlement(lab: &Lab) -> CaseResult {
    let faults = Arc::new(Faults::none());
    let name = lab.destination("d");
    // Brief, so that a broker that waits for an answer does not wait long.
    let brief = lab
        .spec()
        .consumer(consign_policy::ConsumerSpec::default().settlement_deadline(Duration::from_secs(2)));
    let messaging =
        lab.start_with(Arc::clone(&faults), ProfileSpecs::new().with(&name, brief.clone())).await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let gate = Gate::default();
    let wait = gate.clone();
    let mut consuming = lab
        .consume_by(&messaging, &name, "g", move |_, _| {
            let wait = wait.clone();
            async move {
                wait.pass().await;
                Ok(())
            }
        })
        .await?;
    consuming.next(lab).await?;
    drop(consuming);
    drop(messaging);
    gate.open();
    let again = lab.start(ProfileSpecs::new().with(&name, brief)).await?;
    let mut consuming = lab.consume(&again, &name, "g").await?;
    consuming.every(lab, [1]).await?;
    let sent = faults.counts().settlements;
    ensure!(sent == 0, "{sent} settlements were sent by a library that was dropped");
    lab.end(&again).await
}

async fn dropping_a_consumer_handle_detaches_it(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    drop(lab.consume(&messaging, &name, "g").await?);
    lab.publish(&messaging, &name, "k", [1]).await?;
    lab.happened("the settlement", 1, Happened::is_settled).await?;
    lab.end(&messaging).await
}

async fn a_stopped_consumer_leaves_others_alone_and_can_be_started_again(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    let mut one = lab.consume(&messaging, &name, "one").await?;
    let mut two = lab.consume(&messaging, &name, "two").await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    one.every(lab, [1]).await?;
    two.every(lab, [1]).await?;
    lab.happened("2 settlements", 2, Happened::is_settled).await?;
    one.stop(lab).await?;
    one.stop(lab).await?;
    lab.publish(&messaging, &name, "k", [2]).await?;
    two.every(lab, [2]).await?;
    ensure!(one.numbers() == [1], "a stopped consumer handled {:?}", one.numbers());
    let mut one = lab.consume(&messaging, &name, "one").await?;
    one.every(lab, [2]).await?;
    lab.end(&messaging).await
}

async fn what_a_stopped_consumer_had_not_handled_is_handled_later(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    lab.publish(&messaging, &name, "k", 0..30).await?;
    let mut consuming = lab.consume(&messaging, &name, "g").await?;
    consuming.total(lab, 3).await?;
    consuming.stop(lab).await?;
    let mut handled = consuming.numbers();
    let mut later = lab.consume(&messaging, &name, "g").await?;
    lab.happened("30 settlements", 30, Happened::is_settled).await?;
    later.quiet(lab).await?;
    handled.extend(later.numbers());
    handled.sort_unstable();
    handled.dedup();
    ensure!(handled == (0..30).collect::<Vec<_>>(), "handled are {handled:?}");
    lab.end(&messaging).await
}

async fn building_again_on_the_same_broker_finds_what_is_there(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    lab.end(&messaging).await?;
    let again = lab.start(ProfileSpecs::new().with(&name, lab.spec())).await?;
    lab.publish(&again, &name, "k", [2]).await?;
    let mut consuming = lab.consume(&again, &name, "g").await?;
    consuming.every(lab, [1, 2]).await?;
    lab.end(&again).await
}

async fn consuming_after_a_shutdown_is_refused(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    lab.end(&messaging).await?;
    match lab.consume(&messaging, &name, "g").await {
        Ok(_) => Err(CaseError::new("a library that was shut down consumes")),
        Err(_) => Ok(()),
    }
}
