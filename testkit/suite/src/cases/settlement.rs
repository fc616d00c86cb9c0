//! A message is settled after its handler's success, on the broker's evidence, and never before.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use consign_core_api::Capability;
use consign_policy::{ConsumerSpec, ProfileSpec, ProfileSpecs};

use crate::case::{CaseError, CaseResult, Need};
use crate::ensure;
use crate::history::What;
use crate::lab::{Consuming, Gate, Lab, QUIET, failing_for_good, failing_for_now, panicking};
use crate::wrap::{Faults, SettleFault};

crate::cases! {
    every_group_gets_every_message:
        "groups are independent of each other";
    the_members_of_a_group_share_its_messages:
        "one group handles each message once, however many members it has";
    a_handled_message_does_not_come_again:
        "what is SETTLED is not delivered again, also to a later consumer of the group" [Need::AT_LEAST_ONCE];
    a_group_that_was_away_finds_what_came_meanwhile:
        "a group keeps its place while nobody consumes";
    nothing_is_settled_before_its_handler_succeeded:
        "while a handler runs, no settlement is sent" [Need::AT_LEAST_ONCE];
    a_message_whose_handler_failed_comes_again:
        "a failed handler settles nothing" [Need::AT_LEAST_ONCE];
    a_message_whose_handler_panicked_comes_again:
        "a panicking handler settles nothing, and the consumer goes on" [Need::AT_LEAST_ONCE];
    a_message_whose_handler_never_returned_comes_again:
        "a handler that is cut off by its timeout settles nothing" [Need::AT_LEAST_ONCE];
    a_message_whose_handler_was_cancelled_comes_again:
        "a handler that a stop cuts off settles nothing, and that is no failure" [Need::AT_LEAST_ONCE];
    a_settlement_without_an_answer_is_unknown_and_the_message_may_come_again:
        "a lost settlement is SETTLEMENT_UNKNOWN, never SETTLED, and its redelivery is accepted"
        [Need::AT_LEAST_ONCE];
    a_gap_comes_again_although_later_messages_were_settled:
        "settling out of order never passes a gap"
        [Need::AT_LEAST_ONCE, Need::Unordered, Need::Capability(Capability::IndividualSettlement)];
    no_settlement_is_claimed_firmer_than_declared:
        "the level of a settlement never exceeds what the adapter declares";
    at_most_once_settles_before_it_handles:
        "under AT_MOST_ONCE the evidence of the settlement comes before the handler starts" [Need::AT_MOST_ONCE];
    at_most_once_does_not_handle_what_may_not_be_settled:
        "under AT_MOST_ONCE an unknown settlement means that the message is not handled" [Need::AT_MOST_ONCE];
    at_most_once_never_hands_a_message_out_twice:
        "under AT_MOST_ONCE a failed message does not come again" [Need::AT_MOST_ONCE];
}

async fn every_group_gets_every_message(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    lab.publish(&messaging, &name, "k", 0..10).await?;
    for group in ["one", "two", "three"] {
        let mut consuming = lab.consume(&messaging, &name, group).await?;
        consuming.every(lab, 0..10).await?;
        let seen = consuming.quiet(lab).await?.len();
        ensure!(seen == 10, "group {group} saw {seen} of 10");
    }
    lab.end(&messaging).await
}

async fn the_members_of_a_group_share_its_messages(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    let second = lab.start(ProfileSpecs::new().with(&name, lab.spec())).await?;
    let mut one = lab.consume(&messaging, &name, "g").await?;
    let mut two = lab.consume(&second, &name, "g").await?;
    for n in 0..40 {
        lab.publish(&messaging, &name, &format!("k{}", n % 8), [n]).await?;
    }
    let settled = |event: &crate::history::Happened| event.is_settled();
    lab.happened("40 settlements", 40, settled).await?;
    one.quiet(lab).await?;
    two.quiet(lab).await?;
    let mut all = [one.numbers(), two.numbers()].concat();
    let handled = all.len();
    all.sort_unstable();
    all.dedup();
    ensure!(all == (0..40).collect::<Vec<_>>(), "together they saw {all:?}");
    // A message that moves with its unit from one member to the other may come twice; the group as a whole does not
    // get everything twice.
    ensure!(handled < 80, "each member got everything");
    lab.end(&second).await?;
    lab.end(&messaging).await
}

/// A later life of the same destination and group.
async fn restarted(
    lab: &Lab,
    name: &str,
    spec: ProfileSpec,
) -> Result<(consign_runtime::Messaging, Consuming), CaseError> {
    let again = lab.start(ProfileSpecs::new().with(name, spec)).await?;
    let consuming = lab.consume(&again, name, "g").await?;
    Ok((again, consuming))
}

async fn a_handled_message_does_not_come_again(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    lab.publish(&messaging, &name, "k", 0..10).await?;
    let mut consuming = lab.consume(&messaging, &name, "g").await?;
    consuming.every(lab, 0..10).await?;
    lab.happened("10 settlements", 10, crate::history::Happened::is_settled).await?;
    lab.end(&messaging).await?;
    let (again, mut consuming) = restarted(lab, &name, lab.spec()).await?;
    // A marker, so that there is something to see.
    lab.publish(&again, &name, "k", [99]).await?;
    consuming.every(lab, [99]).await?;
    consuming.quiet(lab).await?;
    ensure!(consuming.numbers() == [99], "after all was settled {:?} came", consuming.numbers());
    lab.end(&again).await
}

async fn a_group_that_was_away_finds_what_came_meanwhile(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let mut consuming = lab.consume(&messaging, &name, "g").await?;
    consuming.every(lab, [1]).await?;
    consuming.quiet(lab).await?;
    consuming.stop(lab).await?;
    lab.publish(&messaging, &name, "k", 2..=5).await?;
    let mut consuming = lab.consume(&messaging, &name, "g").await?;
    consuming.every(lab, 2..=5).await?;
    lab.end(&messaging).await
}

async fn nothing_is_settled_before_its_handler_succeeded(lab: &Lab) -> CaseResult {
    let faults = Arc::new(Faults::none());
    let name = lab.destination("d");
    let messaging = lab.start_with(Arc::clone(&faults), ProfileSpecs::new().with(&name, lab.spec())).await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let gate = Gate::default();
    let handler_gate = gate.clone();
    let mut consuming = lab
        .consume_by(&messaging, &name, "g", move |_, _| {
            let gate = handler_gate.clone();
            async move {
                gate.pass().await;
                Ok(())
            }
        })
        .await?;
    consuming.next(lab).await?;
    ensure!(faults.counts().settlements == 0, "a settlement was sent while the handler runs");
    gate.open();
    lab.happened("the settlement", 1, crate::history::Happened::is_settled).await?;
    ensure!(faults.counts().settlements == 1, "{} settlements for one message", faults.counts().settlements);
    lab.end(&messaging).await
}

/// Runs a handler that does not succeed, ends that life, and expects the message in the next one.
async fn comes_again_after<F, Fut>(lab: &Lab, spec: ProfileSpec, failed: What, handler: F) -> CaseResult
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), consign_runtime::consumer::HandlerFailure>> + Send + 'static,
{
    let (messaging, name) = lab.one_with(spec).await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let mut consuming = lab.consume_by(&messaging, &name, "g", move |_, _| handler()).await?;
    consuming.next(lab).await?;
    lab.happened("the failure", 1, |event| event.is(failed)).await?;
    let settled = lab.history().count(crate::history::Happened::is_settled);
    ensure!(settled == 0, "it was settled although no handler succeeded");
    lab.end(&messaging).await?;
    let (again, mut consuming) = restarted(lab, &name, lab.spec()).await?;
    consuming.every(lab, [1]).await?;
    lab.happened("the settlement", 1, crate::history::Happened::is_settled).await?;
    lab.end(&again).await
}

async fn a_message_whose_handler_failed_comes_again(lab: &Lab) -> CaseResult {
    let failed = What::HandlerFailed(failing_for_good().code());
    comes_again_after(lab, lab.spec(), failed, || async { Err(failing_for_good()) }).await
}

async fn a_message_whose_handler_panicked_comes_again(lab: &Lab) -> CaseResult {
    let failed = What::HandlerFailed(consign_runtime::codes::HANDLER_PANICKED);
    comes_again_after(lab, lab.spec(), failed, || async { panicking() }).await
}

async fn a_message_whose_handler_never_returned_comes_again(lab: &Lab) -> CaseResult {
    let spec = lab.spec().consumer(ConsumerSpec::default().handler_timeout(Duration::from_millis(100)));
    let failed = What::HandlerFailed(consign_runtime::codes::HANDLER_TIMED_OUT);
    comes_again_after(lab, spec, failed, std::future::pending).await
}

async fn a_message_whose_handler_was_cancelled_comes_again(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let mut consuming = lab.consume_by(&messaging, &name, "g", |_, _| std::future::pending()).await?;
    consuming.next(lab).await?;
    // A tenth of this is left for giving back. On a busy machine less may not be enough, and what is not given back comes
    // again only after its settlement deadline.
    let _ = lab.within("shutdown", messaging.shutdown(Duration::from_secs(3))).await?;
    let bad = lab.history().count(|event| event.is_settled() || matches!(event.what, What::HandlerFailed(_)));
    ensure!(bad == 0, "a cancelled handler was settled or counted as failed");
    let (again, mut consuming) = restarted(lab, &name, lab.spec()).await?;
    let seen = consuming.every(lab, [1]).await?;
    ensure!(seen[0].attempt == 1, "a cancellation counted as attempt: the next is {}", seen[0].attempt);
    lab.end(&again).await
}

async fn a_settlement_without_an_answer_is_unknown_and_the_message_may_come_again(lab: &Lab) -> CaseResult {
    let faults =
        Arc::new(Faults::settling(|_, n| if n == 0 { SettleFault::Lost } else { SettleFault::None }));
    let name = lab.destination("d");
    let messaging = lab.start_with(faults, ProfileSpecs::new().with(&name, lab.spec())).await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let mut consuming = lab.consume(&messaging, &name, "g").await?;
    consuming.next(lab).await?;
    lab.happened("an unknown settlement", 1, |event| matches!(event.what, What::SettlementUnknown(_)))
        .await?;
    let settled = lab.history().count(crate::history::Happened::is_settled);
    ensure!(settled == 0, "SETTLED without any evidence");
    lab.end(&messaging).await?;
    let (again, mut consuming) = restarted(lab, &name, lab.spec()).await?;
    consuming.every(lab, [1]).await?;
    lab.happened("the settlement", 1, crate::history::Happened::is_settled).await?;
    lab.end(&again).await
}

async fn a_gap_comes_again_although_later_messages_were_settled(lab: &Lab) -> CaseResult {
    let spec = lab.spec().consumer(ConsumerSpec::default().concurrency(6));
    let (messaging, name) = lab.one_with(spec.clone()).await?;
    lab.publish(&messaging, &name, "k", 0..6).await?;
    let mut consuming = lab
        .consume_by(&messaging, &name, "g", |seen, _| async move {
            if seen.n == 2 {
                std::future::pending::<()>().await;
            }
            Ok(())
        })
        .await?;
    consuming.every(lab, 0..6).await?;
    lab.happened("5 settlements", 5, crate::history::Happened::is_settled).await?;
    // Long enough that a busy machine still has time to give the held message back after its handler was cut off.
    let _ = lab.within("shutdown", messaging.shutdown(Duration::from_secs(3))).await?;
    let (again, mut consuming) = restarted(lab, &name, spec).await?;
    consuming.every(lab, [2]).await?;
    consuming.quiet(lab).await?;
    ensure!(consuming.numbers() == [2], "only 2 was unsettled, and {:?} came", consuming.numbers());
    lab.end(&again).await
}

async fn no_settlement_is_claimed_firmer_than_declared(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    lab.publish(&messaging, &name, "k", 0..5).await?;
    let mut consuming = lab.consume(&messaging, &name, "g").await?;
    consuming.every(lab, 0..5).await?;
    lab.happened("5 settlements", 5, crate::history::Happened::is_settled).await?;
    let declared = lab.capabilities().settlement_level();
    let boasting =
        lab.history().count(|event| matches!(event.what, What::Settled(level) if Some(level) > declared));
    ensure!(boasting == 0, "{boasting} settlements are claimed firmer than {declared:?}");
    lab.end(&messaging).await
}

async fn at_most_once_settles_before_it_handles(lab: &Lab) -> CaseResult {
    let faults = Arc::new(Faults::settling(|_, _| SettleFault::Held));
    let name = lab.destination("d");
    let messaging = lab.start_with(Arc::clone(&faults), ProfileSpecs::new().with(&name, lab.spec())).await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let mut consuming = lab.consume(&messaging, &name, "g").await?;
    lab.within("the settlement", faults.until(|counts| counts.held == 1)).await?;
    ensure!(consuming.so_far().is_empty(), "it was handled before it was settled");
    faults.open();
    consuming.next(lab).await?;
    ensure!(
        lab.history().count(crate::history::Happened::is_settled) == 1,
        "it was handled without evidence"
    );
    lab.end(&messaging).await
}

async fn at_most_once_does_not_handle_what_may_not_be_settled(lab: &Lab) -> CaseResult {
    let faults =
        Arc::new(Faults::settling(|_, n| if n == 0 { SettleFault::Lost } else { SettleFault::None }));
    let name = lab.destination("d");
    let messaging = lab.start_with(faults, ProfileSpecs::new().with(&name, lab.spec())).await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let mut consuming = lab.consume(&messaging, &name, "g").await?;
    lab.happened("an unknown settlement", 1, |event| matches!(event.what, What::SettlementUnknown(_)))
        .await?;
    lab.publish(&messaging, &name, "k", [2]).await?;
    consuming.every(lab, [2]).await?;
    consuming.quiet(lab).await?;
    ensure!(consuming.numbers() == [2], "what may not be settled was handled: {:?}", consuming.numbers());
    lab.end(&messaging).await
}

async fn at_most_once_never_hands_a_message_out_twice(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    lab.publish(&messaging, &name, "k", 0..5).await?;
    let mut consuming = lab
        .consume_by(&messaging, &name, "g", |seen, _| async move {
            if seen.n % 2 == 0 { Err(failing_for_now()) } else { Ok(()) }
        })
        .await?;
    consuming.every(lab, 0..5).await?;
    consuming.quiet(lab).await?;
    lab.end(&messaging).await?;
    let (again, mut later) = restarted(lab, &name, lab.spec()).await?;
    lab.publish(&again, &name, "k", [99]).await?;
    later.every(lab, [99]).await?;
    lab.within("quiet", later.consumer.idle(QUIET)).await??;
    let all = [consuming.numbers(), later.numbers()].concat();
    ensure!(all.len() == 6, "six messages were handled as {all:?}");
    lab.end(&again).await
}
