use consign_core_api::{Ambiguity, Failure};

fn forge(failure: Failure) -> Ambiguity {
    Ambiguity { failure }
}

fn main() {}
