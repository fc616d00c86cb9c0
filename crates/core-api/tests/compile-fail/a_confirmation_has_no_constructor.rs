use consign_core_api::Confirmation;
use consign_core_api::outcome::ConfirmationEvidence;

fn forge(evidence: ConfirmationEvidence) -> Confirmation {
    Confirmation::new(evidence)
}

fn forge_from_nothing() -> Confirmation {
    Confirmation::default()
}

fn main() {}
