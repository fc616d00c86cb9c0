//! The verdict over all attempts of one publish.

use std::time::Duration;

use super::{Ambiguity, Confirmation, Duplicate, PublishOutcome, Rejection};
use crate::failure::Failure;
use crate::limit::Attempt;
use crate::message::EncodedMessage;
use crate::spi::{Acceptance, PublishReply, Refusal};

/// The attempts of one publish, folded into the one verdict that they allow.
///
/// The rule has no exception: any accepted attempt makes it CONFIRMED; else any attempt of unknown end makes it
/// AMBIGUOUS; else it is REJECTED.
#[derive(Debug, Default)]
pub struct AttemptLog {
    count: u32,
    best: Option<Best>,
}

#[derive(Debug)]
enum Best {
    Refused(Refusal),
    Unknown(Failure),
    Accepted { acceptance: Acceptance, after_unknown: bool },
}

impl AttemptLog {
    /// Starts without an attempt.
    #[must_use]
    pub const fn new() -> Self {
        Self { count: 0, best: None }
    }

    /// Adds how one more attempt ended.
    pub fn push(&mut self, reply: PublishReply) {
        self.count = self.count.saturating_add(1);
        let before = self.best.take();
        let was_unknown =
            matches!(before, Some(Best::Unknown(_) | Best::Accepted { after_unknown: true, .. }));
        self.best = Some(match (before, reply) {
            (Some(Best::Accepted { acceptance, .. }), PublishReply::Unknown(_)) => {
                Best::Accepted { acceptance, after_unknown: true }
            }
            (Some(accepted @ Best::Accepted { .. }), PublishReply::Refused(_)) => accepted,
            (_, PublishReply::Accepted(acceptance)) => {
                Best::Accepted { acceptance, after_unknown: was_unknown }
            }
            (_, PublishReply::Unknown(failure)) => Best::Unknown(failure),
            (Some(unknown @ Best::Unknown(_)), PublishReply::Refused(_)) => unknown,
            (_, PublishReply::Refused(refusal)) => Best::Refused(refusal),
        });
    }

    /// Tells whether some attempt has an unknown end and none was accepted.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        matches!(self.best, Some(Best::Unknown(_)))
    }

    /// Returns how many attempts were added.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Returns the verdict. `message` is handed back if it is REJECTED; `never_sent` is the failure told when
    /// there was no attempt at all.
    pub fn verdict(
        self,
        elapsed: Duration,
        message: Option<EncodedMessage>,
        never_sent: impl FnOnce() -> Failure,
    ) -> PublishOutcome {
        match self.best {
            Some(Best::Accepted { acceptance, after_unknown }) => {
                let (evidence, position, told) = acceptance.into_parts();
                let duplicate = match told {
                    Duplicate::No if after_unknown => Duplicate::Possible,
                    told => told,
                };
                let attempts = Attempt::new(self.count).unwrap_or(Attempt::FIRST);
                PublishOutcome::Confirmed(Confirmation { evidence, position, duplicate, attempts, elapsed })
            }
            Some(Best::Unknown(failure)) => PublishOutcome::Ambiguous(Ambiguity::new(failure)),
            Some(Best::Refused(refusal)) => {
                let (transmission, failure) = refusal.into_parts();
                PublishOutcome::Rejected(Rejection::new(transmission, failure, message))
            }
            None => PublishOutcome::Rejected(Rejection::not_transmitted(never_sent(), message)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Code;
    use crate::failure::FailureCategory;
    use crate::outcome::{ConfirmationEvidence, Copies, Evidenced, Persistence, Transmission};
    use proptest::prelude::*;

    fn failure() -> Failure {
        Failure::new(FailureCategory::TransientInfrastructure, Code::new("X"), "x")
    }

    fn accepted() -> PublishReply {
        let evidence = ConfirmationEvidence::new(
            Evidenced::observed(Copies::Leader),
            Evidenced::observed(Persistence::Memory),
        );
        PublishReply::Accepted(Acceptance::new(evidence))
    }

    fn reply(kind: u8) -> PublishReply {
        match kind {
            0 => PublishReply::Refused(Refusal::new(Transmission::RefusedByBroker, failure())),
            1 => PublishReply::Unknown(failure()),
            _ => accepted(),
        }
    }

    fn verdict(kinds: &[u8]) -> PublishOutcome {
        let mut log = AttemptLog::new();
        kinds.iter().for_each(|kind| log.push(reply(*kind)));
        log.verdict(Duration::ZERO, None, failure)
    }

    #[test]
    fn a_publish_without_an_attempt_is_rejected_as_not_transmitted() {
        let PublishOutcome::Rejected(rejection) = verdict(&[]) else { panic!("not rejected") };
        assert_eq!(rejection.transmission(), Transmission::NotTransmitted);
    }

    #[test]
    fn a_confirmation_after_an_unknown_attempt_may_be_a_duplicate() {
        for (kinds, expected) in [
            (&[2][..], Duplicate::No),
            (&[0, 2], Duplicate::No),
            (&[1, 2], Duplicate::Possible),
            (&[1, 0, 2], Duplicate::Possible),
        ] {
            let PublishOutcome::Confirmed(confirmation) = verdict(kinds) else { panic!("not confirmed") };
            assert_eq!(confirmation.duplicate(), expected, "{kinds:?}");
        }
    }

    proptest! {
        #[test]
        fn the_verdict_is_the_best_attempt(kinds in proptest::collection::vec(0u8..3, 1..8)) {
            let outcome = verdict(&kinds);
            match kinds.iter().max() {
                Some(2) => prop_assert!(outcome.is_confirmed()),
                Some(1) => prop_assert!(outcome.is_ambiguous()),
                _ => prop_assert!(outcome.is_rejected()),
            }
            if let PublishOutcome::Confirmed(confirmation) = outcome {
                prop_assert_eq!(confirmation.attempts().get() as usize, kinds.len());
                let risky = kinds.contains(&1);
                prop_assert_eq!(confirmation.duplicate() == Duplicate::Possible, risky);
            }
        }
    }
}
