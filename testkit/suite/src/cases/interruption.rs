//! Units are taken away, streams break, brokers restart: nothing CONFIRMED is lost, nothing stale is settled.

use std::time::Duration;

use consign_core_api::Capability;
use consign_policy::{ProfileSpecs, PublishSpec};
use futures_util::FutureExt as _;
use tokio::time::Instant;

use crate::case::{CaseResult, Need};
use crate::ensure;
use crate::harness::{BrokerFault, FaultKind};
use crate::history::{Happened, What};
use crate::lab::{Gate, LAG, Lab, Number};

crate::cases! {
    an_interrupted_stream_goes_on_and_loses_nothing:
        "a broken stream of deliveries is told and rebuilt, and every message is handled"
        [Need::AT_LEAST_ONCE, Need::Fault(FaultKind::Interrupt)];
    a_success_after_an_interruption_settles_nothing_stale:
        "a handler that ends after its delivery was interrupted is SETTLEMENT_UNKNOWN, and the message comes again"
        [Need::AT_LEAST_ONCE, Need::Fault(FaultKind::Interrupt)];
    a_revoked_unit_loses_nothing:
        "units that move lose no message"
        [Need::AT_LEAST_ONCE, Need::Fault(FaultKind::Revoke)];
    a_unit_is_drained_before_it_goes:
        "what is in a handler when its unit is revoked is finished and settled in time"
        [Need::AT_LEAST_ONCE, Need::Fault(FaultKind::Revoke)];
    what_is_confirmed_survives_a_restart_of_the_broker:
        "CONFIRMED messages are there after the broker was killed"
        [Need::Fault(FaultKind::Restart), Need::Capability(Capability::DurableStorage)];
    everything_goes_on_after_a_restart_of_the_broker:
        "publishers and consumers survive the broker, and what was unsettled comes again"
        [Need::AT_LEAST_ONCE, Need::Fault(FaultKind::Restart)];
    what_was_under_way_when_the_broker_died_is_never_rejected_and_stored:
        "an answer that died with the broker is AMBIGUOUS; REJECTED means that the message is not there"
        [Need::Fault(FaultKind::Freeze), Need::Fault(FaultKind::Restart)];
    a_silent_broker_confirms_nothing_and_every_outcome_comes_by_its_deadline:
        "while the broker is silent nothing is CONFIRMED, and no publish waits beyond its deadline"
        [Need::Fault(FaultKind::Freeze)];
}

async fn an_interrupted_stream_goes_on_and_loses_nothing(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    let mut consuming = lab.consume(&messaging, &name, "g").await?;
    for round in 0..3 {
        let numbers = round * 10..round * 10 + 10;
        lab.publish(&messaging, &name, "k", numbers.clone()).await?;
        lab.inflict(BrokerFault::Interrupt { destination: &name, group: "g" }).await?;
        consuming.every(lab, numbers).await?;
    }
    let told = lab.history().count(|event| event.is(What::Interrupted));
    ensure!(told > 0, "the interruption was not told");
    lab.end(&messaging).await
}

async fn a_success_after_an_interruption_settles_nothing_stale(lab: &Lab) -> CaseResult {
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
    lab.inflict(BrokerFault::Interrupt { destination: &name, group: "g" }).await?;
    lab.happened("the interruption", 1, |event| event.is(What::Interrupted)).await?;
    gate.open();
    // The first start's settlement is stale; the message comes again and is settled then.
    consuming.total(lab, 2).await?;
    lab.happened("the settlement", 1, Happened::is_settled).await?;
    consuming.quiet(lab).await?;
    let settled = lab.history().count(Happened::is_settled);
    ensure!(settled == 1, "one message was SETTLED {settled} times");
    lab.end(&messaging).await
}

async fn a_revoked_unit_loses_nothing(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    let second = lab.start(ProfileSpecs::new().with(&name, lab.spec())).await?;
    let mut one = lab.consume(&messaging, &name, "g").await?;
    let mut two = lab.consume(&second, &name, "g").await?;
    for n in 0..40 {
        lab.publish(&messaging, &name, &format!("k{}", n % 8), [n]).await?;
        if n % 10 == 5 {
            lab.inflict(BrokerFault::Revoke { destination: &name, group: "g" }).await?;
        }
    }
    lab.happened("40 settlements", 40, Happened::is_settled).await?;
    one.quiet(lab).await?;
    two.quiet(lab).await?;
    let mut all = [one.numbers(), two.numbers()].concat();
    all.sort_unstable();
    all.dedup();
    ensure!(all == (0..40).collect::<Vec<_>>(), "handled are {all:?}");
    lab.end(&second).await?;
    lab.end(&messaging).await
}

async fn a_unit_is_drained_before_it_goes(lab: &Lab) -> CaseResult {
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
    lab.inflict(BrokerFault::Revoke { destination: &name, group: "g" }).await?;
    lab.happened("the revocation", 1, |event| event.is(What::Assignment("revoking"))).await?;
    gate.open();
    lab.happened("the settlement", 1, Happened::is_settled).await?;
    lab.publish(&messaging, &name, "k", [2]).await?;
    consuming.every(lab, [2]).await?;
    consuming.quiet(lab).await?;
    ensure!(
        consuming.numbers() == [1, 2],
        "it was settled in time, and handlers started for {:?}",
        consuming.numbers()
    );
    lab.end(&messaging).await
}

async fn what_is_confirmed_survives_a_restart_of_the_broker(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    let mut confirmed = Vec::new();
    let receipts =
        futures_util::future::join_all((0..100).map(|n| publisher.submit(Number::message(n, "k"))));
    let receipts = lab.within("submitting", receipts).await?;
    for (n, receipt) in (0..).zip(receipts).take(50) {
        let Ok(receipt) = receipt else { continue };
        if lab.within("an outcome", receipt).await?.is_confirmed() {
            confirmed.push(n);
        }
    }
    lab.inflict(BrokerFault::Restart).await?;
    let stored = lab.stored_numbers(&name).await?;
    let missing: Vec<u64> = confirmed.iter().filter(|n| !stored.contains(n)).copied().collect();
    ensure!(missing.is_empty(), "CONFIRMED and gone: {missing:?}");
    lab.end(&messaging).await
}

async fn everything_goes_on_after_a_restart_of_the_broker(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    let mut consuming = lab.consume(&messaging, &name, "g").await?;
    lab.publish(&messaging, &name, "k", 0..10).await?;
    consuming.every(lab, 0..10).await?;
    lab.inflict(BrokerFault::Restart).await?;
    // The client needs a while to find the broker again; each try has its own outcome, and none may be a lie.
    let publisher = messaging.publisher::<Number>(&name)?;
    let mut attempts = Vec::new();
    lab.within("a confirmed publish", async {
        for n in 100.. {
            attempts.push(n);
            if publisher.publish(Number::message(n, "k")).await.is_confirmed() {
                break;
            }
        }
    })
    .await?;
    consuming.every(lab, attempts.last().copied()).await?;
    lab.end(&messaging).await
}

async fn a_silent_broker_confirms_nothing_and_every_outcome_comes_by_its_deadline(lab: &Lab) -> CaseResult {
    let hasty = lab.spec().publish(PublishSpec::default().deadline(Duration::from_secs(1)));
    let (messaging, name) = lab.one_with(hasty).await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    lab.inflict(BrokerFault::Freeze).await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    let started = Instant::now();
    let all = (2..12).map(|n| publisher.publish(Number::message(n, &format!("k{n}"))));
    let outcomes = lab.within("publishing", futures_util::future::join_all(all)).await;
    let took = started.elapsed();
    lab.inflict(BrokerFault::Thaw).await?;
    let outcomes = outcomes?;
    ensure!(took < Duration::from_secs(1) + LAG, "the deadline was 1 s, and it took {took:?}");
    let confirmed = outcomes.iter().filter(|outcome| outcome.is_confirmed()).count();
    ensure!(confirmed == 0, "{confirmed} publishes were CONFIRMED by a broker that was silent");
    // It comes back, and everything goes on.
    lab.within("a confirmed publish", async {
        while !publisher.publish(Number::message(50, "k")).await.is_confirmed() {}
    })
    .await?;
    let stored = lab.stored_numbers(&name).await?;
    for (n, outcome) in (2..).zip(&outcomes) {
        ensure!(!outcome.is_rejected() || !stored.contains(&n), "number {n} was REJECTED and is stored");
    }
    lab.end(&messaging).await
}

async fn what_was_under_way_when_the_broker_died_is_never_rejected_and_stored(lab: &Lab) -> CaseResult {
    let patient = lab.spec().publish(PublishSpec::default().deadline(Duration::from_secs(5)));
    let (messaging, name) = lab.one_with(patient).await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    lab.inflict(BrokerFault::Freeze).await?;
    let all = (2..8).map(|n| publisher.publish(Number::message(n, &format!("k{n}"))));
    let mut outcomes = Box::pin(futures_util::future::join_all(all));
    // Hands them over; none can be answered.
    ensure!((&mut outcomes).now_or_never().is_none(), "a silent broker answered");
    lab.inflict(BrokerFault::Restart).await?;
    lab.inflict(BrokerFault::Thaw).await?;
    let outcomes = lab.within("the outcomes", outcomes).await?;
    let stored = lab.stored_numbers(&name).await?;
    for (n, outcome) in (2..).zip(&outcomes) {
        ensure!(!outcome.is_rejected() || !stored.contains(&n), "number {n} was REJECTED and is stored");
        ensure!(!outcome.is_confirmed() || stored.contains(&n), "number {n} was CONFIRMED and is gone");
    }
    lab.end(&messaging).await
}
