use consign_core_api::Payload;

fn look(payload: &Payload) -> usize {
    match payload {
        Payload::Bytes(bytes) => bytes.len(),
    }
}

fn main() {}
