use consign_core_api::settlement::state::SettlementSending;
use consign_core_api::spi::SettlementReply;

fn twice(sending: SettlementSending, lost: SettlementReply, late: SettlementReply) {
    drop(sending.resolve(lost));
    drop(sending.resolve(late));
}

fn main() {}
