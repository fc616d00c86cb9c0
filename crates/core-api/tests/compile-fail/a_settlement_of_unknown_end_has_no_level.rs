use consign_core_api::settlement::SettlementUnknown;

fn look(unknown: &SettlementUnknown) {
    let _ = unknown.level();
}

fn main() {}
