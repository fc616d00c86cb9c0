//! A publish request and what an adapter answers.

use super::Reply;
use crate::codes;
use crate::failure::{Failure, FailureCategory};
use crate::message::EncodedMessage;
use crate::outcome::{ConfirmationEvidence, Duplicate, Transmission};
use crate::position::MessagePosition;
use crate::time::Moment;

/// One attempt to publish one message.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PublishRequest {
    /// The message.
    pub message: EncodedMessage,
    /// When the runtime gives its verdict. A client's own timeout may use it to bound what is still sent afterwards.
    pub deadline: Moment,
    /// Whether an earlier attempt of this message has an unknown end.
    pub resend: bool,
}

impl PublishRequest {
    /// Makes a first attempt.
    #[must_use]
    pub const fn new(message: EncodedMessage, deadline: Moment) -> Self {
        Self { message, deadline, resend: false }
    }

    /// Makes a further attempt of a message whose earlier attempt has an unknown end.
    #[must_use]
    pub const fn again(message: EncodedMessage, deadline: Moment) -> Self {
        Self { message, deadline, resend: true }
    }
}

/// How one attempt ended.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_enums, reason = "the three truths; matches are meant to be total")]
pub enum PublishReply {
    /// The broker accepted it, naming it.
    Accepted(Acceptance),
    /// It is certain that this attempt put nothing where a consumer could see it.
    Refused(Refusal),
    /// Nothing is certain.
    Unknown(Failure),
}

impl Reply for PublishReply {
    fn dropped(handed_over: bool) -> Self {
        let failure = Failure::new(
            FailureCategory::TransientInfrastructure,
            codes::COMPLETION_DROPPED,
            "the adapter dropped the publish without an answer",
        );
        if handed_over {
            Self::Unknown(failure)
        } else {
            Self::Refused(Refusal::new(Transmission::NotTransmitted, failure))
        }
    }
}

/// The broker's acceptance of one attempt. Only an adapter makes one, and only when the broker's answer names the
/// attempt: every CONFIRMED rests on it, and no type can check it.
#[derive(Debug, Clone)]
pub struct Acceptance {
    evidence: ConfirmationEvidence,
    position: Option<MessagePosition>,
    duplicate: Duplicate,
}

impl Acceptance {
    /// States that the broker accepted the attempt, and how far it went.
    #[must_use]
    pub const fn new(evidence: ConfirmationEvidence) -> Self {
        Self { evidence, position: None, duplicate: Duplicate::No }
    }

    /// Adds where the message stands.
    #[must_use]
    pub fn at(mut self, position: MessagePosition) -> Self {
        self.position = Some(position);
        self
    }

    /// Adds that the broker had it already and stored it once.
    #[must_use]
    pub const fn deduplicated(mut self) -> Self {
        self.duplicate = Duplicate::Deduplicated;
        self
    }

    /// Adds that the client may have sent it twice by itself.
    #[must_use]
    pub const fn possibly_duplicate(mut self) -> Self {
        self.duplicate = Duplicate::Possible;
        self
    }

    /// Returns how far the message went.
    #[must_use]
    pub const fn evidence(&self) -> &ConfirmationEvidence {
        &self.evidence
    }

    /// Takes the acceptance apart.
    #[must_use]
    pub fn into_parts(self) -> (ConfirmationEvidence, Option<MessagePosition>, Duplicate) {
        (self.evidence, self.position, self.duplicate)
    }
}

/// The certainty that an attempt put nothing where a consumer could see it.
#[derive(Debug, Clone)]
pub struct Refusal {
    transmission: Transmission,
    failure: Failure,
}

impl Refusal {
    /// States the certainty, how far the attempt got, and why.
    #[must_use]
    pub const fn new(transmission: Transmission, failure: Failure) -> Self {
        Self { transmission, failure }
    }

    /// Takes the refusal apart.
    #[must_use]
    pub fn into_parts(self) -> (Transmission, Failure) {
        (self.transmission, self.failure)
    }
}

/// The answer to a request to take a publish back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "it was taken back or it was not")]
pub enum Withdrawal {
    /// Its last byte was provably not written, and never will be. The completion counts as answered.
    Withdrawn,
    /// It cannot be taken back, or nobody knows.
    TooLate,
}
