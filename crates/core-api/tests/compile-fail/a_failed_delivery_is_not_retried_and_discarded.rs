use consign_core_api::settlement::state::Failed;

fn both(failed: Failed) {
    let _ = failed.retry();
    let _ = failed.discard();
}

fn main() {}
