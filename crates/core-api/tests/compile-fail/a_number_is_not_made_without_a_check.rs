use std::num::{NonZeroU32, NonZeroUsize};

use consign_core_api::{Attempt, MaxPayload};

fn limit() -> MaxPayload {
    MaxPayload(NonZeroUsize::MAX)
}

fn attempt() -> Attempt {
    Attempt(NonZeroU32::MIN)
}

fn main() {}
