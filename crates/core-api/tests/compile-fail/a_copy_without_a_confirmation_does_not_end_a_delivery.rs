use consign_core_api::Ambiguity;
use consign_core_api::settlement::state::Failed;

fn without_a_copy(failed: Failed) {
    let _ = failed.copied();
}

fn with_a_copy_of_unknown_end(failed: Failed, copy: &Ambiguity) {
    let _ = failed.copied(copy);
}

fn main() {}
