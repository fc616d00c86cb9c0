use std::time::Duration;

use consign_core_api::outcome::{ConfirmationEvidence, Duplicate};
use consign_core_api::{Attempt, Confirmation};

fn forge(evidence: ConfirmationEvidence) -> Confirmation {
    Confirmation {
        evidence,
        position: None,
        duplicate: Duplicate::No,
        attempts: Attempt::FIRST,
        elapsed: Duration::ZERO,
    }
}

fn main() {}
