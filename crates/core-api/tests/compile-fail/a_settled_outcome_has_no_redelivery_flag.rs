use consign_core_api::SettlementOutcome;
use consign_core_api::settlement::SettlementEvidence;

fn hedge(evidence: SettlementEvidence) -> SettlementOutcome {
    let redelivery_possible = true;
    SettlementOutcome::Settled(evidence, redelivery_possible)
}

fn main() {}
