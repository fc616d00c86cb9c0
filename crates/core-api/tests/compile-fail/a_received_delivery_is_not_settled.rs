use consign_core_api::settlement::state::Received;

fn too_early(received: Received) {
    let _ = received.settle();
}

fn main() {}
