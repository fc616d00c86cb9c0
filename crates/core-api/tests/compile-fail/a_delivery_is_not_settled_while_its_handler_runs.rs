use consign_core_api::settlement::state::Processing;

fn too_early(processing: Processing) {
    let _ = processing.settle();
}

fn main() {}
