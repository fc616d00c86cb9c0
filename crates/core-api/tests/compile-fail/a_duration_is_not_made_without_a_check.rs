use std::time::Duration;

use consign_core_api::time;

fn timeout() -> time::Timeout {
    time::Timeout(Duration::ZERO)
}

fn delay() -> time::Delay {
    time::Delay(Duration::MAX)
}

fn main() {}
