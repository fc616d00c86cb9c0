//! AMBIGUOUS.

use std::fmt;

use crate::failure::Failure;

/// The message may or may not be there.
///
/// It carries no evidence, because there is none:
///
/// ```compile_fail,E0599
/// fn look(ambiguity: &consign_core_api::Ambiguity) { let _ = ambiguity.evidence(); }
/// ```
#[derive(Debug, Clone)]
pub struct Ambiguity {
    failure: Failure,
}

impl Ambiguity {
    pub(super) const fn new(failure: Failure) -> Self {
        Self { failure }
    }

    /// Returns why it is not known.
    #[must_use]
    pub const fn failure(&self) -> &Failure {
        &self.failure
    }
}

impl fmt::Display for Ambiguity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.failure, f)
    }
}
