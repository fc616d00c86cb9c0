use consign_core_api::spi::SettlementReply;

fn look(reply: &SettlementReply) -> bool {
    match reply {
        SettlementReply::Evidence(_) => true,
    }
}

fn main() {}
