//! CONFIRMED.

use std::fmt;
use std::time::Duration;

use super::ConfirmationEvidence;
use crate::limit::Attempt;
use crate::position::MessagePosition;

/// Whether the message may be there more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Duplicate {
    /// No: one attempt was handed over, and it was accepted.
    No,
    /// An earlier attempt has an unknown end, so there may be two.
    Possible,
    /// The broker found the message already there and stored it once.
    Deduplicated,
}

/// The broker accepted the message.
///
/// It cannot be made by hand, only from an acceptance that an adapter reported:
///
/// ```compile_fail,E0451
/// use consign_core_api::{Attempt, Confirmation, outcome::{ConfirmationEvidence, Duplicate}};
/// fn forge(evidence: ConfirmationEvidence, duplicate: Duplicate) -> Confirmation {
///     let (attempts, elapsed) = (Attempt::FIRST, std::time::Duration::ZERO);
///     Confirmation { evidence, position: None, duplicate, attempts, elapsed }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Confirmation {
    pub(super) evidence: ConfirmationEvidence,
    pub(super) position: Option<MessagePosition>,
    pub(super) duplicate: Duplicate,
    pub(super) attempts: Attempt,
    pub(super) elapsed: Duration,
}

impl Confirmation {
    /// Returns how far the message went.
    #[must_use]
    pub const fn evidence(&self) -> &ConfirmationEvidence {
        &self.evidence
    }

    /// Returns where the message stands, if the broker told.
    #[must_use]
    pub const fn position(&self) -> Option<&MessagePosition> {
        self.position.as_ref()
    }

    /// Tells whether the message may be there more than once.
    #[must_use]
    pub const fn duplicate(&self) -> Duplicate {
        self.duplicate
    }

    /// Returns how many attempts were made.
    #[must_use]
    pub const fn attempts(&self) -> Attempt {
        self.attempts
    }

    /// Returns the time from the caller's call to the verdict.
    #[must_use]
    pub const fn elapsed(&self) -> Duration {
        self.elapsed
    }
}

impl fmt::Display for Confirmation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(position) = &self.position {
            write!(f, "at {position}, ")?;
        }
        fmt::Display::fmt(&self.evidence, f)
    }
}
