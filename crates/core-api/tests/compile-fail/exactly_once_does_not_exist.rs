use consign_core_api::DeliveryGuarantee;

const CLAIM: DeliveryGuarantee = DeliveryGuarantee::ExactlyOnce;

fn main() {}
