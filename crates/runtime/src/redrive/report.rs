//! What a redrive did.

use std::fmt;

use consign_core_api::{DestinationName, Failure, GroupName, MessageId, MessagePosition};

/// What a redrive did, message by message.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RedriveReport {
    /// Each message that was looked at, in the order in which it came.
    pub messages: Vec<Redriven>,
    /// Whether it only looked.
    pub dry_run: bool,
    /// Whether it ended because of its limit, so that there may be more.
    pub limited: bool,
    /// Why it ended early, if it did.
    pub interrupted: Option<Failure>,
}

/// One message of a dead letter.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Redriven {
    /// The message.
    pub id: Option<MessageId>,
    /// Where it stands in the dead letter.
    pub position: Option<MessagePosition>,
    /// Where it came from, if it says so.
    pub origin: Option<DestinationName>,
    /// The group in which it failed, if it says so.
    pub group: Option<GroupName>,
    /// What became of it.
    pub result: RedriveResult,
}

/// What became of a message.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RedriveResult {
    /// It would be sent back.
    WouldReturn,
    /// It stands in its origin, CONFIRMED, and the dead letter is settled.
    Returned,
    /// It stands in its origin, CONFIRMED, and the dead letter may still have it.
    ReturnedUnsettled(Failure),
    /// It was not sent back, for this reason, and stays in the dead letter.
    Skipped(&'static str),
    /// It was not CONFIRMED in its origin (where it may stand nevertheless), and stays in the dead letter.
    NotConfirmed(Failure),
}

impl RedriveReport {
    /// Returns how many messages stand in their origin again.
    #[must_use]
    pub fn returned(&self) -> usize {
        let back = |message: &&Redriven| {
            matches!(message.result, RedriveResult::Returned | RedriveResult::ReturnedUnsettled(_))
        };
        self.messages.iter().filter(back).count()
    }

    /// Tells whether every message that was looked at went, or would go, back, and nothing ended it early.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let fine = |message: &Redriven| {
            matches!(message.result, RedriveResult::Returned | RedriveResult::WouldReturn)
        };
        self.interrupted.is_none() && self.messages.iter().all(fine)
    }
}

impl fmt::Display for RedriveReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.dry_run {
            write!(f, "looked at {}", self.messages.len())?;
        } else {
            write!(f, "returned {} of {}", self.returned(), self.messages.len())?;
        }
        for message in &self.messages {
            match &message.id {
                Some(id) => write!(f, "\n  {id}")?,
                None => f.write_str("\n  a message without id")?,
            }
            if let Some(origin) = &message.origin {
                write!(f, " of {origin}")?;
            }
            write!(f, ": {}", message.result)?;
        }
        Ok(())
    }
}

impl fmt::Display for RedriveResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WouldReturn => f.write_str("would return"),
            Self::Returned => f.write_str("returned"),
            Self::ReturnedUnsettled(failure) => write!(f, "returned, dead letter unsettled: {failure}"),
            Self::Skipped(why) => write!(f, "skipped: {why}"),
            Self::NotConfirmed(failure) => write!(f, "not confirmed: {failure}"),
        }
    }
}
