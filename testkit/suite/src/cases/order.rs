//! Within an ordering unit handlers start in publish order, whatever fails.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use consign_core_api::OrderingScope;
use consign_core_api::spi::RetryStrategy;
use consign_policy::{ConsumerSpec, Limit, ProfileSpec, PublishSpec, RetrySpec};

use crate::case::{CaseError, CaseResult, Need};
use crate::ensure;
use crate::lab::{Gate, Lab, Number, Seen, failing_for_now};

crate::cases! {
    handlers_of_one_unit_start_in_publish_order:
        "with ten handlers each unit's messages start in the order of their publication" [Need::Ordered];
    no_unit_has_two_handlers_at_once:
        "one unit is handled one message at a time" [Need::Ordered];
    no_more_handlers_run_than_the_profile_allows:
        "consumer.concurrency is a limit, and is used" [Need::Unordered];
    later_messages_do_not_overtake_a_failing_head:
        "while a message fails, no later message of its unit starts" [Need::Ordered, Need::AT_LEAST_ONCE];
    order_is_kept_over_redeliveries:
        "a REDELIVERY retry keeps the order of its unit, natively or in place" [Need::Ordered, Need::AT_LEAST_ONCE];
    a_failing_key_holds_up_no_other_key:
        "a failing message stops its own key only"
        [Need::Ordering(OrderingScope::Key), Need::AT_LEAST_ONCE];
    a_failing_partition_holds_up_no_other_partition:
        "a failing message stops its own partition only"
        [Need::Ordering(OrderingScope::Partition), Need::AT_LEAST_ONCE];
    pipelined_publishes_of_one_unit_are_stored_in_order:
        "a window of publishes keeps the order of each unit" [Need::Ordered];
    order_is_kept_when_a_second_member_joins:
        "a new member of the group changes nothing about the order of a unit" [Need::Ordered, Need::AT_LEAST_ONCE];
}

/// As many handlers as the ordering allows.
fn wide(lab: &Lab) -> ProfileSpec {
    let one = lab.profile().ordering == OrderingScope::Destination;
    lab.spec().consumer(ConsumerSpec::default().concurrency(if one { 1 } else { 10 }))
}

fn in_place(spec: ProfileSpec) -> ProfileSpec {
    let retry = RetrySpec::new(RetryStrategy::InPlace)
        .max_attempts(Limit::Unlimited)
        .first(Duration::from_millis(20))
        .max(Duration::from_millis(50));
    spec.retry(retry)
}

/// Checks the first starts: one sequence for the whole destination where that is asked for, else one for each key,
/// which every ordered profile keeps.
fn in_order(lab: &Lab, seen: &[Seen]) -> CaseResult {
    let whole = lab.profile().ordering == OrderingScope::Destination;
    let mut last: BTreeMap<&str, u64> = BTreeMap::new();
    let mut known = std::collections::BTreeSet::new();
    for start in seen.iter().filter(|start| known.insert(start.n)) {
        let unit = if whole { "" } else { start.key.as_str() };
        if let Some(before) = last.insert(unit, start.n) {
            ensure!(before < start.n, "in the unit {unit:?} number {} started after {before}", start.n);
        }
    }
    Ok(())
}

async fn publish_spread(
    lab: &Lab,
    messaging: &consign_runtime::Messaging,
    name: &str,
    count: u64,
) -> CaseResult {
    for n in 0..count {
        lab.publish(messaging, name, &format!("k{}", n % 7), [n]).await?;
    }
    Ok(())
}

async fn handlers_of_one_unit_start_in_publish_order(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one_with(wide(lab)).await?;
    publish_spread(lab, &messaging, &name, 120).await?;
    let mut consuming = lab
        .consume_by(&messaging, &name, "g", |seen, _| async move {
            // Different lengths, so that handlers of different units overlap and end in another order.
            for _ in 0..(seen.n * 7919) % 23 {
                tokio::task::yield_now().await;
            }
            Ok(())
        })
        .await?;
    let seen = consuming.every(lab, 0..120).await?;
    in_order(lab, seen)?;
    lab.end(&messaging).await
}

async fn no_unit_has_two_handlers_at_once(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one_with(wide(lab)).await?;
    publish_spread(lab, &messaging, &name, 60).await?;
    let running: Arc<std::sync::Mutex<BTreeMap<String, usize>>> = Arc::default();
    let most = Arc::new(AtomicUsize::new(0));
    let (inside, peak) = (Arc::clone(&running), Arc::clone(&most));
    let mut consuming = lab
        .consume_by(&messaging, &name, "g", move |seen, _| {
            let (inside, peak) = (Arc::clone(&inside), Arc::clone(&peak));
            async move {
                let count = |by: isize| {
                    let mut map = inside.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    let now = map.entry(seen.key.clone()).or_default();
                    *now = now.saturating_add_signed(by);
                    *now
                };
                peak.fetch_max(count(1), Ordering::Relaxed);
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
                count(-1);
                Ok(())
            }
        })
        .await?;
    consuming.every(lab, 0..60).await?;
    let most = most.load(Ordering::Relaxed);
    ensure!(most == 1, "{most} handlers of one key ran at once");
    lab.end(&messaging).await
}

async fn no_more_handlers_run_than_the_profile_allows(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one_with(lab.spec().consumer(ConsumerSpec::default().concurrency(3))).await?;
    publish_spread(lab, &messaging, &name, 12).await?;
    let (running, most, gate) =
        (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Gate::default());
    let (inside, peak, wait) = (Arc::clone(&running), Arc::clone(&most), gate.clone());
    let mut consuming = lab
        .consume_by(&messaging, &name, "g", move |_, _| {
            let (inside, peak, wait) = (Arc::clone(&inside), Arc::clone(&peak), wait.clone());
            async move {
                peak.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                wait.pass().await;
                inside.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            }
        })
        .await?;
    consuming.total(lab, 3).await?;
    gate.open();
    consuming.every(lab, 0..12).await?;
    let most = most.load(Ordering::SeqCst);
    ensure!(most == 3, "{most} handlers ran at once, and 3 are allowed");
    lab.end(&messaging).await
}

async fn later_messages_do_not_overtake_a_failing_head(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one_with(in_place(wide(lab))).await?;
    lab.publish(&messaging, &name, "k", 0..6).await?;
    let mut consuming = lab
        .consume_by(&messaging, &name, "g", |seen, _| async move {
            if seen.n == 1 && seen.attempt < 4 { Err(failing_for_now()) } else { Ok(()) }
        })
        .await?;
    let seen: Vec<_> = consuming.total(lab, 9).await?.iter().map(|seen| seen.n).collect();
    ensure!(seen == [0, 1, 1, 1, 1, 2, 3, 4, 5], "handlers started for {seen:?}");
    lab.end(&messaging).await
}

async fn order_is_kept_over_redeliveries(lab: &Lab) -> CaseResult {
    if !lab.capabilities().has(consign_core_api::Capability::Redelivery) {
        // Its refusal is asserted elsewhere; in place the order is asserted elsewhere too.
        return Ok(());
    }
    let retry = RetrySpec::new(RetryStrategy::Redelivery)
        .max_attempts(5)
        .first(Duration::from_millis(100))
        .max(Duration::from_millis(100));
    let (messaging, name) = lab.one_with(wide(lab).retry(retry)).await?;
    publish_spread(lab, &messaging, &name, 30).await?;
    let mut consuming = lab
        .consume_by(&messaging, &name, "g", |seen, _| async move {
            if seen.n % 5 == 2 && seen.attempt < 3 { Err(failing_for_now()) } else { Ok(()) }
        })
        .await?;
    lab.happened("30 settlements", 30, crate::history::Happened::is_settled).await?;
    consuming.quiet(lab).await?;
    in_order(lab, consuming.so_far())?;
    lab.end(&messaging).await
}

/// Fails the first message of one unit until the other unit is done.
async fn one_unit_holds_up_no_other(
    lab: &Lab,
    messaging: &consign_runtime::Messaging,
    name: &str,
) -> CaseResult {
    let gate = Gate::default();
    let wait = gate.clone();
    let mut consuming = lab
        .consume_by(messaging, name, "g", move |seen, _| {
            let failing = seen.n == 0 && !wait.is_open();
            async move { if failing { Err(failing_for_now()) } else { Ok(()) } }
        })
        .await?;
    // The other unit, to its end, while number 0 keeps failing.
    let seen = consuming.every(lab, 100..105).await?;
    ensure!(
        !seen.iter().any(|seen| (1..5).contains(&seen.n)),
        "a later message overtook the failing head: {seen:?}"
    );
    gate.open();
    let seen = consuming.every(lab, 0..5).await?;
    in_order_of(seen, 0..5)?;
    in_order_of(seen, 100..105)
}

fn in_order_of(seen: &[Seen], range: std::ops::Range<u64>) -> CaseResult {
    let mut mine: Vec<_> = seen.iter().map(|seen| seen.n).filter(|n| range.contains(n)).collect();
    mine.dedup();
    ensure!(mine == range.clone().collect::<Vec<_>>(), "handlers started for {mine:?}");
    Ok(())
}

async fn a_failing_key_holds_up_no_other_key(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one_with(in_place(wide(lab))).await?;
    lab.publish(&messaging, &name, "failing", 0..5).await?;
    lab.publish(&messaging, &name, "fine", 100..105).await?;
    one_unit_holds_up_no_other(lab, &messaging, &name).await?;
    lab.end(&messaging).await
}

async fn a_failing_partition_holds_up_no_other_partition(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one_with(in_place(wide(lab))).await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    for n in 0..5 {
        for (partition, n) in [(0, n), (1, 100 + n)] {
            let _ = lab.confirmed(publisher.publish(Number::message(n, "k").partition(partition))).await?;
        }
    }
    one_unit_holds_up_no_other(lab, &messaging, &name).await?;
    lab.end(&messaging).await
}

async fn pipelined_publishes_of_one_unit_are_stored_in_order(lab: &Lab) -> CaseResult {
    let spec = wide(lab).publish(PublishSpec::default().deadline(Duration::from_secs(15)));
    let (messaging, name) = lab.one_with(spec).await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    let mut window = publisher.pipeline(64)?;
    for n in 0..300 {
        let message = Number::message(n, &format!("k{}", n % 3));
        if let Some((_, outcome)) = lab.within("submitting", window.submit(message)).await?? {
            ensure!(outcome.is_confirmed(), "{outcome}");
        }
    }
    while let Some((_, outcome)) = lab.within("an outcome", window.next()).await? {
        ensure!(outcome.is_confirmed(), "{outcome}");
    }
    let stored = lab.stored(&name).await?;
    ensure!(stored.len() == 300, "{} of 300 are stored", stored.len());
    let mut last = BTreeMap::new();
    for held in &stored {
        let n = crate::lab::number_of(&held.message)
            .ok_or_else(|| CaseError::new("a message without a number"))?;
        if let Some(before) = last.insert(crate::lab::key_of(held.message.key()), n) {
            ensure!(before < n, "{n} is stored behind {before}");
        }
    }
    lab.end(&messaging).await
}

async fn order_is_kept_when_a_second_member_joins(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one_with(wide(lab)).await?;
    let second = lab.start(consign_policy::ProfileSpecs::new().with(&name, wide(lab))).await?;
    let handler = |_: Seen, _| async {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        Ok(())
    };
    let mut one = lab.consume_by(&messaging, &name, "g", handler).await?;
    publish_spread(lab, &messaging, &name, 40).await?;
    one.total(lab, 5).await?;
    let mut two = lab.consume_by(&second, &name, "g", handler).await?;
    for n in 40..80 {
        lab.publish(&messaging, &name, &format!("k{}", n % 7), [n]).await?;
    }
    lab.happened("80 settlements", 80, crate::history::Happened::is_settled).await?;
    one.quiet(lab).await?;
    two.quiet(lab).await?;
    let mut all = [one.so_far(), two.so_far()].concat();
    all.sort_by_key(|seen| seen.at);
    in_order(lab, &all)?;
    lab.end(&second).await?;
    lab.end(&messaging).await
}
