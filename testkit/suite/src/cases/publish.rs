//! A publish ends by its deadline in one of three outcomes, and the outcome is true.

use std::time::Duration;

use consign_core_api::{Message, PublishOutcome};
use serde_json::json;

use crate::case::CaseResult;
use crate::ensure;
use crate::lab::Lab;

crate::cases! {
    a_confirmed_message_is_stored:
        "CONFIRMED means that the broker holds the message";
    every_message_of_a_batch_has_an_outcome_of_its_own:
        "a batch returns one outcome per message, in order";
}

async fn a_confirmed_message_is_stored(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    let publisher = messaging.publisher(&name)?;
    let outcome = lab.within("publishing", publisher.publish(Message::new(json!({"n": 1})).key("k"))).await?;
    let PublishOutcome::Confirmed(_) = outcome else { return Err(format!("{outcome}").into()) };
    let stored = lab.stored(&name).await?;
    ensure!(stored.len() == 1, "{} messages are stored", stored.len());
    let _ = lab.within("shutdown", messaging.shutdown(Duration::from_secs(5))).await?;
    Ok(())
}

async fn every_message_of_a_batch_has_an_outcome_of_its_own(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    let publisher = messaging.publisher(&name)?;
    let messages: Vec<_> = (0..20).map(|n| Message::new(json!({ "n": n })).key("k").header("n", n.to_string())).collect();
    let mut wrong = messages.clone();
    if let Some(last) = wrong.pop() {
        wrong.push(last.header("consign-mine", "x"));
    }
    let outcomes = lab.within("publishing", publisher.publish_batch(wrong)).await?;
    ensure!(outcomes.len() == 20, "{} outcomes for 20 messages", outcomes.len());
    ensure!(outcomes[..19].iter().all(PublishOutcome::is_confirmed), "{outcomes:?}");
    ensure!(outcomes[19].is_rejected(), "a reserved header was let through: {}", outcomes[19]);
    let stored = lab.stored(&name).await?;
    ensure!(stored.len() == 19, "{} messages are stored", stored.len());
    let _ = lab.within("shutdown", messaging.shutdown(Duration::from_secs(5))).await?;
    Ok(())
}
