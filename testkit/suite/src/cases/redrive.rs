//! Messages of a dead letter go back to where they came from, on request, and only there.

use std::time::Duration;

use consign_core_api::message::reserved;
use consign_core_api::{GroupName, MessageId};
use consign_policy::ProfileSpecs;
use consign_runtime::Messaging;
use consign_runtime::redrive::{RedriveOptions, RedriveReport};

use crate::case::{CaseError, CaseResult, Need};
use crate::ensure;
use crate::history::What;
use crate::lab::{Lab, failing_for_good};

crate::cases! {
    a_dry_run_looks_and_moves_nothing:
        "a dry run lists what would go back, and everything stays" [Need::AT_LEAST_ONCE];
    a_redriven_message_is_handled_by_its_group_as_if_it_were_new:
        "a redrive keeps the id, starts the attempts anew, and settles the dead letter"
        [Need::AT_LEAST_ONCE, Need::ShortMemory];
    a_redriven_message_is_handled_by_its_own_group_only:
        "a message that failed in one group is not handled again by another"
        [Need::AT_LEAST_ONCE, Need::ShortMemory];
    a_redrive_that_the_broker_would_deduplicate_leaves_the_dead_letter_as_it_is:
        "while the broker remembers the id, a redrive says so, and loses nothing"
        [Need::AT_LEAST_ONCE, Need::LongMemory];
    a_redrive_onto_an_ordered_destination_needs_a_permission:
        "messages go back out of their order only where that is allowed" [Need::AT_LEAST_ONCE, Need::Ordered];
    a_redrive_of_what_is_no_dead_letter_is_refused:
        "only a dead letter is redriven" [Need::AT_LEAST_ONCE];
}

/// A destination with three messages that failed for good, two of them in its dead letter.
struct Failed {
    messaging: Messaging,
    name: String,
    dead: String,
    ids: Vec<MessageId>,
}

async fn failed(lab: &Lab) -> Result<Failed, CaseError> {
    let (name, dead) = (lab.destination("d"), lab.destination("dead"));
    let specs = ProfileSpecs::new().with(&name, lab.spec().dead_letter(&dead)).with(&dead, lab.spec());
    let messaging = lab.start(specs).await?;
    let ids = lab.publish(&messaging, &name, "k", [1, 2]).await?;
    let mut consuming =
        lab.consume_by(&messaging, &name, "g", |_, _| async { Err(failing_for_good()) }).await?;
    lab.happened("2 dead letters", 2, |event| matches!(event.what, What::DeadLettered(_))).await?;
    consuming.quiet(lab).await?;
    consuming.stop(lab).await?;
    Ok(Failed { messaging, name, dead, ids })
}

fn options(lab: &Lab) -> RedriveOptions {
    let options = RedriveOptions::new().quiet(Duration::from_millis(700));
    if lab.profile().ordering.is_ordered() { options.allow_reorder() } else { options }
}

/// Waits until the broker has forgotten the ids, where it remembers them.
async fn forgotten(lab: &Lab) {
    if let Some(window) = lab.capabilities().deduplication_window() {
        tokio::time::sleep(window + window / 4).await;
    }
}

async fn a_redrive_that_the_broker_would_deduplicate_leaves_the_dead_letter_as_it_is(
    lab: &Lab,
) -> CaseResult {
    let failed = failed(lab).await?;
    let before = lab.stored(&failed.name).await?.len();
    for _ in 0..2 {
        let report = redrive(lab, &failed, options(lab)).await?;
        ensure!(report.messages.len() == 2 && report.returned() == 0, "no copy can be stored, and: {report}");
    }
    ensure!(lab.stored(&failed.name).await?.len() == before, "the broker stored an id twice");
    lab.end(&failed.messaging).await
}

async fn redrive(lab: &Lab, failed: &Failed, options: RedriveOptions) -> Result<RedriveReport, CaseError> {
    let report = lab.within("the redrive", failed.messaging.redrive(&failed.dead, options)).await??;
    lab.history().note(format!("redrive: {report}"));
    Ok(report)
}

async fn a_dry_run_looks_and_moves_nothing(lab: &Lab) -> CaseResult {
    let failed = failed(lab).await?;
    let before = lab.stored(&failed.name).await?.len();
    let report = redrive(lab, &failed, RedriveOptions::dry_run().quiet(Duration::from_millis(700))).await?;
    ensure!(report.messages.len() == 2 && report.returned() == 0, "{report}");
    let ids: Vec<_> = report.messages.iter().filter_map(|message| message.id.clone()).collect();
    ensure!(failed.ids.iter().all(|id| ids.contains(id)), "{:?} are there, {ids:?} are listed", failed.ids);
    ensure!(lab.stored(&failed.name).await?.len() == before, "a dry run published something");
    // Nothing was taken either: the next one still finds both.
    let report = redrive(lab, &failed, RedriveOptions::dry_run().quiet(Duration::from_millis(700))).await?;
    ensure!(report.messages.len() == 2, "after a dry run: {report}");
    lab.end(&failed.messaging).await
}

async fn a_redriven_message_is_handled_by_its_group_as_if_it_were_new(lab: &Lab) -> CaseResult {
    let failed = failed(lab).await?;
    forgotten(lab).await;
    let report = redrive(lab, &failed, options(lab)).await?;
    ensure!(report.returned() == 2 && report.is_clean(), "{report}");
    let mut consuming = lab.consume(&failed.messaging, &failed.name, "g").await?;
    let seen = consuming.every(lab, [1, 2]).await?;
    for seen in seen {
        ensure!(seen.id().is_some_and(|id| failed.ids.contains(id)), "it came back as {:?}", seen.id());
        ensure!(seen.attempt == 1, "its attempt is {}", seen.attempt);
        let redriven = seen.message.headers().first(reserved::REDRIVE).and_then(|h| h.text());
        ensure!(redriven == Some("1"), "{} is {redriven:?}", reserved::REDRIVE);
    }
    let again = redrive(lab, &failed, options(lab)).await?;
    ensure!(again.messages.is_empty(), "what was sent back is still in the dead letter: {again}");
    lab.end(&failed.messaging).await
}

async fn a_redriven_message_is_handled_by_its_own_group_only(lab: &Lab) -> CaseResult {
    let failed = failed(lab).await?;
    let mut other = lab.consume(&failed.messaging, &failed.name, "other").await?;
    other.every(lab, [1, 2]).await?;
    forgotten(lab).await;
    let only = options(lab).only_group(GroupName::new("g")?);
    let report = redrive(lab, &failed, only).await?;
    ensure!(report.returned() == 2, "{report}");
    let mut consuming = lab.consume(&failed.messaging, &failed.name, "g").await?;
    consuming.every(lab, [1, 2]).await?;
    other.quiet(lab).await?;
    ensure!(other.so_far().len() == 2, "the other group handled {:?}", other.numbers());
    lab.end(&failed.messaging).await
}

async fn a_redrive_onto_an_ordered_destination_needs_a_permission(lab: &Lab) -> CaseResult {
    let failed = failed(lab).await?;
    let before = lab.stored(&failed.name).await?.len();
    let plain = RedriveOptions::new().quiet(Duration::from_millis(700));
    let refused = lab.within("the redrive", failed.messaging.redrive(&failed.dead, plain)).await?;
    let code = refused.err().map(|error| error.code());
    ensure!(code.is_some_and(|code| code == "REDRIVE_REORDERS"), "without a permission: {code:?}");
    ensure!(lab.stored(&failed.name).await?.len() == before, "it was refused, and something was sent back");
    lab.end(&failed.messaging).await
}

async fn a_redrive_of_what_is_no_dead_letter_is_refused(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    let refused = lab.within("the redrive", messaging.redrive(&name, options(lab))).await?;
    let code = refused.err().map(|error| error.code());
    ensure!(code.is_some_and(|code| code == "NOT_A_DEAD_LETTER"), "{code:?}");
    lab.end(&messaging).await
}
