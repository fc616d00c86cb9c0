use bytes::Bytes;
use consign_core_api::Payload;

fn carried(payload: &Payload) -> &Bytes {
    payload.as_bytes()
}

fn main() {}
