use consign_core_api::outcome::Transmission;
use consign_core_api::{Failure, Rejection};

fn forge(failure: Failure) -> Rejection {
    Rejection::new(Transmission::RefusedByBroker, failure, None)
}

fn main() {}
