#![deny(unused_must_use)]

use consign_core_api::settlement::state::HandlerSucceeded;

fn permit(done: HandlerSucceeded) -> consign_core_api::settlement::state::SettlePermit {
    done.settle().1
}

fn settle_and_look_away(done: HandlerSucceeded) {
    permit(done);
}

fn main() {}
