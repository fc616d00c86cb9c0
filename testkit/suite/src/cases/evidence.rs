//! What a confirmation claims is no more than was shown.

use std::sync::Arc;

use consign_core_api::outcome::{ConfirmationEvidence, Evidenced};
use consign_core_api::outcome::{Copies, Duplicate, Persistence};
use consign_core_api::spi::{Confirm, DestinationSetup};
use consign_core_api::{Capabilities, Capability, MessageId, codes};
use consign_policy::{CopiesSpec, EvidenceSpec, ProfileSpecs, PublishSpec};
use std::num::NonZeroU16;

use crate::case::{CaseError, CaseResult, Need};
use crate::ensure;
use crate::lab::{Lab, Number};
use crate::wrap::{Faults, Meddle, PublishFault, redeclare};

crate::cases! {
    a_confirmation_claims_no_more_than_is_declared:
        "evidence never exceeds what the adapter declares as its strongest";
    a_confirmation_names_the_place_where_the_message_stands:
        "a position in a confirmation is the message's own";
    evidence_below_the_demand_is_not_confirmed:
        "an acceptance with weaker evidence than the profile demands is AMBIGUOUS";
    evidence_that_cannot_be_had_is_refused_before_connecting:
        "a demand that the broker can never meet does not start";
    without_a_requested_confirmation_nothing_is_confirmed:
        "confirmation = none is at best AMBIGUOUS, and the message is sent" [Need::AT_MOST_ONCE];
    a_repeated_id_is_stored_once_and_told_as_deduplicated:
        "with deduplication a second publish under the same id is one message"
        [Need::Capability(Capability::PublishDeduplication)];
    an_ambiguous_publish_can_be_sent_again_under_its_id:
        "with deduplication a repetition after a lost reply leaves one copy"
        [Need::Capability(Capability::PublishDeduplication)];
}

async fn a_confirmation_claims_no_more_than_is_declared(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    let confirmation = lab.confirmed(publisher.publish(Number::message(1, "k"))).await?;
    let Some(strongest) = lab.capabilities().strongest_evidence() else {
        return Err(CaseError::new("CONFIRMED, and the adapter declares no evidence"));
    };
    let given = confirmation.evidence();
    let modest = given.copies.value <= strongest.copies.value
        && given.persistence.value <= strongest.persistence.value
        && given.copies.basis <= strongest.copies.basis
        && given.persistence.basis <= strongest.persistence.basis;
    ensure!(modest, "claimed {given}, declared {strongest}");
    lab.end(&messaging).await
}

async fn a_confirmation_names_the_place_where_the_message_stands(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    let mut places = Vec::new();
    for n in 0..5 {
        let confirmation = lab.confirmed(publisher.publish(Number::message(n, &format!("k{n}")))).await?;
        places.push((n, confirmation.position().cloned()));
    }
    let stored = lab.stored(&name).await?;
    for (n, place) in places {
        let held = stored.iter().find(|held| crate::lab::number_of(&held.message) == Some(n));
        let Some(held) = held else { return Err(CaseError::new(format!("number {n} is not stored"))) };
        if let (Some(told), Some(real)) = (&place, &held.position) {
            ensure!(told == real, "number {n} is said to stand at {told} and stands at {real}");
        }
    }
    lab.end(&messaging).await
}

/// Declares evidence that no answer of the adapter carries.
struct Boast;

impl Meddle for Boast {
    fn capabilities(&self, _: &DestinationSetup, declared: Capabilities) -> Capabilities {
        let copies = Copies::Quorum { min: NonZeroU16::MIN.saturating_add(98) };
        let evidence =
            ConfirmationEvidence::new(Evidenced::observed(copies), Evidenced::observed(Persistence::Flushed));
        redeclare(&declared, declared.ordering().clone()).strongest_evidence(evidence).build()
    }
}

fn demanding() -> PublishSpec {
    PublishSpec::default().evidence(EvidenceSpec::default().copies(CopiesSpec::Quorum(99)))
}

async fn evidence_below_the_demand_is_not_confirmed(lab: &Lab) -> CaseResult {
    let name = lab.destination("d");
    let messaging =
        lab.start_with(Boast, ProfileSpecs::new().with(&name, lab.spec().publish(demanding()))).await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    let outcome = lab.within("publishing", publisher.publish(Number::message(1, "k"))).await?;
    ensure!(outcome.is_ambiguous(), "99 copies were demanded, and it ended {outcome}");
    let code = outcome.failure().map(consign_core_api::Failure::code);
    ensure!(code.is_some_and(|code| code == "EVIDENCE_BELOW_DEMAND"), "the code is {code:?}");
    lab.end(&messaging).await
}

async fn evidence_that_cannot_be_had_is_refused_before_connecting(lab: &Lab) -> CaseResult {
    match lab.one_with(lab.spec().publish(demanding())).await {
        Ok(_) => Err(CaseError::new("99 copies were demanded, and it started")),
        Err(report) => {
            ensure!(report.has(codes::CAPABILITY_UNAVAILABLE), "{report}");
            Ok(())
        }
    }
}

async fn without_a_requested_confirmation_nothing_is_confirmed(lab: &Lab) -> CaseResult {
    let (messaging, name) =
        lab.one_with(lab.spec().publish(PublishSpec::default().confirmation(Confirm::None))).await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    let outcome = lab.within("publishing", publisher.publish(Number::message(1, "k"))).await?;
    ensure!(outcome.is_ambiguous(), "nobody asked for a confirmation, and it ended {outcome}");
    let code = outcome.failure().map(consign_core_api::Failure::code);
    ensure!(code.is_some_and(|code| code == "CONFIRMATION_NOT_REQUESTED"), "the code is {code:?}");
    lab.end(&messaging).await
}

async fn a_repeated_id_is_stored_once_and_told_as_deduplicated(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    let id = MessageId::generate();
    let first = lab.confirmed(publisher.publish(Number::message(1, "k").id(id.clone()))).await?;
    ensure!(first.duplicate() == Duplicate::No, "the first is told as {:?}", first.duplicate());
    let second = lab.confirmed(publisher.publish(Number::message(1, "k").id(id))).await?;
    ensure!(second.duplicate() == Duplicate::Deduplicated, "the second is told as {:?}", second.duplicate());
    let other = lab.confirmed(publisher.publish(Number::message(2, "k"))).await?;
    ensure!(other.duplicate() == Duplicate::No, "another id is told as {:?}", other.duplicate());
    let stored = lab.stored_numbers(&name).await?;
    ensure!(stored == [1, 2], "stored are {stored:?}");
    lab.end(&messaging).await
}

async fn an_ambiguous_publish_can_be_sent_again_under_its_id(lab: &Lab) -> CaseResult {
    let faults =
        Arc::new(Faults::publishing(
            |_, n| {
                if n == 0 { PublishFault::ReplyLost } else { PublishFault::None }
            },
        ));
    let name = lab.destination("d");
    let messaging = lab.start_with(faults, ProfileSpecs::new().with(&name, lab.spec())).await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    let id = MessageId::generate();
    let first = lab.within("publishing", publisher.publish(Number::message(1, "k").id(id.clone()))).await?;
    ensure!(!first.is_rejected(), "a stored message ended {first}");
    let again = lab.confirmed(publisher.publish(Number::message(1, "k").id(id))).await?;
    ensure!(
        again.duplicate() == Duplicate::Deduplicated,
        "the repetition is told as {:?}",
        again.duplicate()
    );
    let stored = lab.stored_numbers(&name).await?;
    ensure!(stored == [1], "{} copies under one id", stored.len());
    lab.end(&messaging).await
}
