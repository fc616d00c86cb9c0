use consign_core_api::{Attempt, DestinationName, MaxPayload, MessageId};

fn destination() -> DestinationName {
    DestinationName::new("a..b")
}

fn limit() -> MaxPayload {
    MaxPayload::new(0)
}

fn attempt() -> Attempt {
    Attempt::new(0)
}

fn id() -> MessageId {
    MessageId::new("")
}

fn main() {}
