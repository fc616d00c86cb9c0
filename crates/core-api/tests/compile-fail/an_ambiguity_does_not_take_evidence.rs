use consign_core_api::outcome::ConfirmationEvidence;
use consign_core_api::{Ambiguity, PublishOutcome};

fn forge(ambiguity: Ambiguity, evidence: ConfirmationEvidence) -> PublishOutcome {
    PublishOutcome::Ambiguous(ambiguity, evidence)
}

fn main() {}
