#![deny(unused_must_use)]

use consign_core_api::settlement::state::SettlementSending;
use consign_core_api::spi::SettlementReply;

fn resolve_and_look_away(sending: SettlementSending, reply: SettlementReply) {
    sending.resolve(reply);
}

fn main() {}
