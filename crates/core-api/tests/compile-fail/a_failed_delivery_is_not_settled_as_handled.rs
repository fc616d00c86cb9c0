use consign_core_api::settlement::state::Failed;

fn as_if_it_had_worked(failed: Failed) {
    let _ = failed.settle();
}

fn main() {}
