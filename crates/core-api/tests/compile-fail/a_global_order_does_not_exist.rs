use consign_core_api::OrderingScope;

const CLAIM: OrderingScope = OrderingScope::Global;

fn main() {}
