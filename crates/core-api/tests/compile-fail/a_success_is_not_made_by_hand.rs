use consign_core_api::settlement::state::HandlerSucceeded;
use consign_core_api::spi::DeliveryToken;

fn forge(token: DeliveryToken) -> HandlerSucceeded {
    HandlerSucceeded(token)
}

fn main() {}
