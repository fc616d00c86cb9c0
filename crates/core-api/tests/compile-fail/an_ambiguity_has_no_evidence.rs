use consign_core_api::Ambiguity;

fn look(ambiguity: &Ambiguity) {
    let _ = ambiguity.evidence();
}

fn main() {}
