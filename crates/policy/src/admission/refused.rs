//! Why a message was not admitted.

use std::fmt;

use consign_core_api::{Code, Failure, FailureCategory};

use super::class::Class;
use crate::codes;

/// A refusal by admission. It happened before a byte was sent, so that the publish is REJECTED and never AMBIGUOUS;
/// what was taken on the way is given back before the refusal can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Refused(Refusal);

/// What stood in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The message is larger than the destination, or the byte limit of its class, ever takes.
    TooLarge {
        /// The message's size in bytes.
        size: usize,
        /// The largest legal size in bytes.
        limit: usize,
    },
    /// The class takes no new work.
    Closed(Class),
    /// All slots of the destination are taken.
    Destination {
        /// How many slots there are.
        limit: usize,
    },
    /// The process-wide count stayed full.
    Count,
    /// The process-wide bytes stayed full, or others waited for them first.
    Bytes {
        /// The message's size in bytes.
        size: usize,
    },
}

impl Refused {
    pub(super) const fn new(refusal: Refusal) -> Self {
        Self(refusal)
    }

    /// Returns what stood in the way.
    #[must_use]
    pub const fn refusal(&self) -> Refusal {
        self.0
    }

    /// Returns the stable code.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self.0 {
            Refusal::TooLarge { .. } => codes::MESSAGE_TOO_LARGE,
            Refusal::Closed(_) => codes::SHUTTING_DOWN,
            Refusal::Destination { .. } => codes::DESTINATION_IN_FLIGHT_LIMIT_EXCEEDED,
            Refusal::Count | Refusal::Bytes { .. } => codes::IN_FLIGHT_LIMIT_EXCEEDED,
        }
    }

    /// Returns who can do something about it. Only a message that is too large is at fault itself.
    #[must_use]
    pub const fn category(&self) -> FailureCategory {
        match self.0 {
            Refusal::TooLarge { .. } => FailureCategory::PermanentBusiness,
            Refusal::Closed(_) => FailureCategory::TransientInfrastructure,
            Refusal::Destination { .. } | Refusal::Count | Refusal::Bytes { .. } => FailureCategory::Capacity,
        }
    }

    /// Makes the failure of the rejection.
    #[must_use]
    pub fn into_failure(self) -> Failure {
        Failure::new(self.category(), self.code(), self.0.to_string())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { size, limit } => {
                write!(f, "the message has {size} bytes with key and headers, and at most {limit} are taken")
            }
            Self::Closed(class) => write!(f, "no new {class} work is taken"),
            Self::Destination { limit } => {
                write!(f, "all {limit} publishes that the destination allows are in flight")
            }
            Self::Count => f.write_str("too many messages are in flight in the whole process (count)"),
            Self::Bytes { size } => {
                write!(f, "too many bytes are in flight in the whole process to add {size} (bytes)")
            }
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code(), self.0)
    }
}

impl std::error::Error for Refused {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_message_that_is_too_large_is_a_permanent_failure() {
        let too_large = Refused::new(Refusal::TooLarge { size: 2, limit: 1 }).into_failure();
        assert_eq!(too_large.category(), FailureCategory::PermanentBusiness);
        for refusal in [
            Refusal::Closed(Class::External),
            Refusal::Destination { limit: 1 },
            Refusal::Count,
            Refusal::Bytes { size: 1 },
        ] {
            assert!(Refused::new(refusal).into_failure().category().is_transient(), "{refusal:?}");
        }
    }

    #[test]
    fn the_detail_says_whether_count_or_bytes_were_full() {
        let (count, bytes) = (Refused::new(Refusal::Count), Refused::new(Refusal::Bytes { size: 7 }));
        assert_eq!(count.code(), bytes.code());
        assert!(count.into_failure().message().contains("(count)"));
        assert!(bytes.into_failure().message().contains("(bytes)"));
    }
}
