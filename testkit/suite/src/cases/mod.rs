//! All cases, a room per promise.

mod publish;

use crate::case::Case;

/// Returns every case.
#[must_use]
pub fn all() -> Vec<Case> {
    [publish::CASES].concat()
}
