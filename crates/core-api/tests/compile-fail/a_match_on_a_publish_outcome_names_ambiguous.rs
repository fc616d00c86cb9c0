use consign_core_api::PublishOutcome;

fn look(outcome: &PublishOutcome) -> bool {
    match outcome {
        PublishOutcome::Confirmed(_) => true,
        PublishOutcome::Rejected(_) => false,
    }
}

fn main() {}
