use consign_core_api::settlement::state::SettlePermit;
use consign_core_api::spi::{Completion, SettlementReply, Settler};

fn twice(
    settler: &dyn Settler,
    permit: SettlePermit,
    one: Completion<SettlementReply>,
    two: Completion<SettlementReply>,
) {
    settler.settle(permit, one);
    settler.terminate(permit, two);
}

fn main() {}
