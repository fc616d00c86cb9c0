use consign_core_api::settlement::SettledBecause;
use consign_core_api::settlement::state::SettlePermit;
use consign_core_api::spi::DeliveryToken;

fn forge(token: DeliveryToken) -> SettlePermit {
    SettlePermit { token, because: SettledBecause::Handled }
}

fn main() {}
