use bytes::Bytes;
use consign_core_api::EncodedMessage;

fn key(message: &EncodedMessage) -> &Bytes {
    message.key()
}

fn main() {}
