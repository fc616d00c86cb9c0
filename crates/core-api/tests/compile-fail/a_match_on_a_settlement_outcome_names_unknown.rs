use consign_core_api::SettlementOutcome;

fn look(outcome: &SettlementOutcome) -> bool {
    match outcome {
        SettlementOutcome::Settled(_) => true,
    }
}

fn main() {}
