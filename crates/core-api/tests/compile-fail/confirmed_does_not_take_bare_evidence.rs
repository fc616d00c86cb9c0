use consign_core_api::PublishOutcome;
use consign_core_api::outcome::ConfirmationEvidence;

fn forge(evidence: ConfirmationEvidence) -> PublishOutcome {
    PublishOutcome::Confirmed(evidence)
}

fn main() {}
