use consign_core_api::spi::{Completion, DeliveryToken, SettlementReply, Settler};

fn without_a_permit(settler: &dyn Settler, token: DeliveryToken, done: Completion<SettlementReply>) {
    settler.settle(token, done);
}

fn main() {}
