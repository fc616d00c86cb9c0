use consign_core_api::settlement::state::Decoding;

fn too_early(decoding: Decoding) {
    let _ = decoding.settle();
}

fn main() {}
