//! What is given back comes again: all of it, not too early, and counted.

use std::time::Duration;

use consign_core_api::Capability;
use consign_core_api::spi::RetryStrategy;
use consign_policy::{ConsumerSpec, ProfileSpec, ProfileSpecs, RetrySpec};

use crate::case::{CaseError, CaseResult, Need};
use crate::ensure;
use crate::history::{Happened, What};
use crate::lab::{Lab, failing_for_now};

crate::cases! {
    a_failed_message_is_delivered_again_by_the_broker:
        "a REDELIVERY retry brings the message again, and its attempts are counted"
        [Need::AT_LEAST_ONCE, Need::RealRedelivery];
    only_the_failed_message_comes_again:
        "giving one message back does not repeat its neighbours"
        [Need::AT_LEAST_ONCE, Need::RealRedelivery];
    a_redelivery_does_not_come_before_its_delay:
        "a delayed redelivery waits out its delay"
        [Need::AT_LEAST_ONCE, Need::RealRedelivery, Need::Capability(Capability::DelayedRedelivery)];
    the_count_of_deliveries_rises:
        "where the broker counts deliveries, each delivery is counted"
        [Need::AT_LEAST_ONCE, Need::RealRedelivery, Need::DeliveryCount];
    a_message_that_comes_too_often_is_not_handled_again:
        "max_deliveries ends a message that never gets through, before it is handled once more"
        [Need::AT_LEAST_ONCE, Need::RealRedelivery, Need::DeliveryCount];
    many_failures_lose_nothing:
        "every message gets through although each fails once"
        [Need::AT_LEAST_ONCE, Need::RealRedelivery];
}

fn redelivering(lab: &Lab, delay: Duration) -> ProfileSpec {
    let retry =
        RetrySpec::new(RetryStrategy::Redelivery).max_attempts(5).first(delay).max(delay * 2).jitter(0.0);
    lab.spec().retry(retry)
}

const SOON: Duration = Duration::from_millis(20);

async fn a_failed_message_is_delivered_again_by_the_broker(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one_with(redelivering(lab, SOON)).await?;
    let ids = lab.publish(&messaging, &name, "k", [1]).await?;
    let mut consuming = lab
        .consume_by(&messaging, &name, "g", |seen, _| async move {
            if seen.attempt < 3 { Err(failing_for_now()) } else { Ok(()) }
        })
        .await?;
    let seen = consuming.total(lab, 3).await?.to_vec();
    let attempts: Vec<_> = seen.iter().map(|seen| seen.attempt).collect();
    ensure!(attempts == [1, 2, 3], "the attempts are {attempts:?}");
    ensure!(seen.iter().all(|seen| seen.id() == ids.first()), "a redelivery is another message");
    lab.happened("the settlement", 1, Happened::is_settled).await?;
    ensure!(consuming.quiet(lab).await?.len() == 3, "it came again after its success");
    lab.end(&messaging).await
}

async fn only_the_failed_message_comes_again(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one_with(redelivering(lab, SOON)).await?;
    for n in 0..10 {
        lab.publish(&messaging, &name, &format!("k{n}"), [n]).await?;
    }
    let mut consuming = lab
        .consume_by(&messaging, &name, "g", |seen, _| async move {
            if seen.n == 3 && seen.attempt == 1 { Err(failing_for_now()) } else { Ok(()) }
        })
        .await?;
    consuming.total(lab, 11).await?;
    lab.happened("10 settlements", 10, Happened::is_settled).await?;
    consuming.quiet(lab).await?;
    let mut all = consuming.numbers();
    all.sort_unstable();
    ensure!(all == [0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9], "handlers started for {all:?}");
    lab.end(&messaging).await
}

async fn a_redelivery_does_not_come_before_its_delay(lab: &Lab) -> CaseResult {
    let delay = Duration::from_millis(700);
    let (messaging, name) = lab.one_with(redelivering(lab, delay)).await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let mut consuming = lab
        .consume_by(&messaging, &name, "g", |seen, _| async move {
            if seen.attempt == 1 { Err(failing_for_now()) } else { Ok(()) }
        })
        .await?;
    let seen = consuming.total(lab, 2).await?;
    let waited = seen[1].at.duration_since(seen[0].at);
    ensure!(waited >= delay, "it came after {waited:?}, before its delay of {delay:?}");
    lab.end(&messaging).await
}

async fn the_count_of_deliveries_rises(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one_with(redelivering(lab, SOON)).await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let mut consuming = lab
        .consume_by(&messaging, &name, "g", |seen, _| async move {
            if seen.attempt < 3 { Err(failing_for_now()) } else { Ok(()) }
        })
        .await?;
    let counts: Vec<_> = consuming.total(lab, 3).await?.iter().map(|seen| seen.delivery_count).collect();
    ensure!(counts == [Some(1), Some(2), Some(3)], "three deliveries are counted as {counts:?}");
    lab.end(&messaging).await
}

async fn a_message_that_comes_too_often_is_not_handled_again(lab: &Lab) -> CaseResult {
    let (name, dead) = (lab.destination("d"), lab.destination("dead"));
    let retry = RetrySpec::new(RetryStrategy::Redelivery)
        .max_attempts(consign_policy::Limit::Unlimited)
        .first(SOON)
        .max(SOON);
    let spec = lab.spec().retry(retry).dead_letter(&dead).consumer(ConsumerSpec::default().max_deliveries(3));
    let messaging = lab.start(ProfileSpecs::new().with(&name, spec).with(&dead, lab.spec())).await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let mut consuming =
        lab.consume_by(&messaging, &name, "g", |_, _| async { Err(failing_for_now()) }).await?;
    lab.happened("the dead letter", 1, |event| matches!(event.what, What::DeadLettered(_))).await?;
    consuming.quiet(lab).await?;
    ensure!(
        consuming.so_far().len() == 3,
        "3 deliveries are allowed, and handlers started for {}",
        consuming.so_far().len()
    );
    ensure!(lab.stored_numbers(&dead).await? == [1], "it is not in the dead letter");
    lab.end(&messaging).await
}

async fn many_failures_lose_nothing(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one_with(redelivering(lab, SOON)).await?;
    for n in 0..40 {
        lab.publish(&messaging, &name, &format!("k{}", n % 8), [n]).await?;
    }
    let mut consuming = lab
        .consume_by(&messaging, &name, "g", |seen, _| async move {
            if seen.attempt == 1 { Err(failing_for_now()) } else { Ok(()) }
        })
        .await?;
    lab.happened("40 settlements", 40, Happened::is_settled).await?;
    consuming.quiet(lab).await?;
    for n in 0..40 {
        let times = consuming.so_far().iter().filter(|seen| seen.n == n).count();
        if times < 2 {
            return Err(CaseError::new(format!(
                "number {n} was settled after {times} attempts, and the first failed"
            )));
        }
    }
    lab.end(&messaging).await
}
