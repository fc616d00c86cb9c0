use consign_core_api::settlement::state::HandlerSucceeded;

fn twice(done: HandlerSucceeded) {
    let _ = done.settle();
    let _ = done.settle();
}

fn main() {}
