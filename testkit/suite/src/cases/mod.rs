//! All cases, a room per promise.

pub mod admission;
pub mod carriage;
pub mod configuration;
pub mod dead_letter;
pub mod evidence;
pub mod inbox;
pub mod interruption;
pub mod lifecycle;
pub mod order;
pub mod publish;
pub mod redelivery;
pub mod redrive;
pub mod refusal;
pub mod retry;
pub mod settlement;

use crate::case::Case;

/// Returns every case.
#[must_use]
pub fn all() -> Vec<Case> {
    [
        publish::CASES,
        evidence::CASES,
        admission::CASES,
        carriage::CASES,
        configuration::CASES,
        refusal::CASES,
        settlement::CASES,
        redelivery::CASES,
        order::CASES,
        retry::CASES,
        dead_letter::CASES,
        redrive::CASES,
        inbox::CASES,
        lifecycle::CASES,
        interruption::CASES,
    ]
    .concat()
}
