use consign_core_api::settlement::SettlementEvidence;

fn look(evidence: &SettlementEvidence) -> bool {
    evidence.redelivery_possible()
}

fn main() {}
