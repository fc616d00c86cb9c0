//! The three ways in which a publish ends.
//!
//! A [`Confirmation`] and an [`Ambiguity`] cannot be made by hand, nor can a [`Rejection`] that names the broker: they
//! come only from what an adapter reported through [`spi`](crate::spi), and the verdict over several attempts follows one
//! rule, in [`AttemptLog`]. [`Rejection::not_transmitted`] is open to all, because whoever did not send knows that.
//!
//! The types prevent mistakes, not lies. The seam is public, so that anybody can write an adapter; code that poses as one
//! can report an acceptance that never was. What an adapter reports is proven by the contract suite, not by the compiler.

mod ambiguity;
mod attempts;
mod confirmation;
mod evidence;
mod rejection;

pub use ambiguity::Ambiguity;
pub use attempts::AttemptLog;
pub use confirmation::{Confirmation, Duplicate};
pub use evidence::{Basis, ConfirmationEvidence, Copies, EvidenceDemand, Evidenced, Persistence};
pub use rejection::{Rejection, Transmission};

use std::fmt;

use crate::failure::Failure;

/// How a publish ended. It is never a lie: what is not known is [`Ambiguous`](Self::Ambiguous).
#[derive(Debug, Clone)]
#[must_use = "an outcome that nobody looks at is a message that nobody knows about"]
#[expect(clippy::exhaustive_enums, reason = "there is no fourth outcome; matches are meant to be total")]
pub enum PublishOutcome {
    /// The broker accepted the message; the evidence says how far it went.
    Confirmed(Confirmation),
    /// It is certain that no consumer will ever see the message. Giving up or sending again is safe.
    Rejected(Rejection),
    /// The message may or may not be there. Sending it again may duplicate it.
    Ambiguous(Ambiguity),
}

impl PublishOutcome {
    /// Turns the outcome into a result, for `?` where the three-way match is not wanted.
    ///
    /// # Errors
    /// [`NotConfirmed`] for REJECTED and for AMBIGUOUS; it still tells which.
    pub fn into_result(self) -> Result<Confirmation, NotConfirmed> {
        match self {
            Self::Confirmed(confirmation) => Ok(confirmation),
            Self::Rejected(rejection) => Err(NotConfirmed::Rejected(rejection)),
            Self::Ambiguous(ambiguity) => Err(NotConfirmed::Ambiguous(ambiguity)),
        }
    }

    /// Tells whether the broker accepted the message.
    #[must_use]
    pub const fn is_confirmed(&self) -> bool {
        matches!(self, Self::Confirmed(_))
    }

    /// Tells whether the message is certainly not there.
    #[must_use]
    pub const fn is_rejected(&self) -> bool {
        matches!(self, Self::Rejected(_))
    }

    /// Tells whether the message may or may not be there.
    #[must_use]
    pub const fn is_ambiguous(&self) -> bool {
        matches!(self, Self::Ambiguous(_))
    }

    /// Returns why the message was not confirmed; `None` if it was.
    #[must_use]
    pub const fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Confirmed(_) => None,
            Self::Rejected(rejection) => Some(rejection.failure()),
            Self::Ambiguous(ambiguity) => Some(ambiguity.failure()),
        }
    }
}

impl fmt::Display for PublishOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Confirmed(confirmation) => write!(f, "CONFIRMED: {confirmation}"),
            Self::Rejected(rejection) => write!(f, "REJECTED: {rejection}"),
            Self::Ambiguous(ambiguity) => write!(f, "AMBIGUOUS: {ambiguity}"),
        }
    }
}

/// A publish that was not confirmed, as an error.
#[derive(Debug, Clone, thiserror::Error)]
#[expect(clippy::exhaustive_enums, reason = "the two outcomes that are no confirmation")]
pub enum NotConfirmed {
    /// It is certain that no consumer will ever see the message.
    #[error("rejected: {0}")]
    Rejected(Rejection),
    /// The message may or may not be there.
    #[error("ambiguous: {0}")]
    Ambiguous(Ambiguity),
}

impl NotConfirmed {
    /// Returns why.
    #[must_use]
    pub const fn failure(&self) -> &Failure {
        match self {
            Self::Rejected(rejection) => rejection.failure(),
            Self::Ambiguous(ambiguity) => ambiguity.failure(),
        }
    }
}
