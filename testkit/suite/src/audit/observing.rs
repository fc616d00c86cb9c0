//! The runtime's events as records.

use consign_core_api::outcome::Duplicate;
use consign_core_api::spi::PublishReply;
use consign_core_api::{MessageId, PublishOutcome, SettlementOutcome};
use consign_runtime::observer::DeliveryInfo;
use consign_runtime::{Observed, Observer};

use super::history::{Delivery, Event, Outcome, Recorder, Told, Verdict};

impl From<&PublishOutcome> for Verdict {
    fn from(outcome: &PublishOutcome) -> Self {
        let failed = |outcome, code: String| Self {
            outcome,
            code: Some(code),
            attempts: None,
            once: false,
            position: None,
        };
        match outcome {
            PublishOutcome::Confirmed(confirmation) => Self {
                outcome: Outcome::Confirmed,
                code: None,
                attempts: Some(confirmation.attempts().get()),
                once: confirmation.duplicate() != Duplicate::Possible,
                position: confirmation.position().map(ToString::to_string),
            },
            PublishOutcome::Rejected(rejection) => {
                failed(Outcome::Rejected, rejection.failure().code().to_string())
            }
            PublishOutcome::Ambiguous(ambiguity) => {
                failed(Outcome::Ambiguous, ambiguity.failure().code().to_string())
            }
        }
    }
}

impl From<&DeliveryInfo<'_>> for Delivery {
    fn from(info: &DeliveryInfo<'_>) -> Self {
        Self {
            group: info.group.to_string(),
            id: info.id.map(ToString::to_string).unwrap_or_default(),
            position: info.position.map(ToString::to_string),
        }
    }
}

/// Publishes without an id are not recorded: nobody could find them again.
impl Observer for Recorder {
    fn observe(&self, event: &Observed<'_>) {
        let text = |id: &Option<&MessageId>| id.map(ToString::to_string);
        let event = match event {
            Observed::Sent { id, .. } => text(id).map(|id| Event::Sent { id }),
            Observed::Outcome { id, outcome, .. } => {
                text(id).map(|id| Event::Told { id, to: Told::Observer, verdict: (*outcome).into() })
            }
            Observed::LateResolution { id, reply, .. } => {
                text(id).map(|id| Event::Late { id, accepted: matches!(reply, PublishReply::Accepted(_)) })
            }
            Observed::Received { delivery } => Some(Event::Delivered(delivery.into())),
            Observed::Settled { delivery, outcome } => {
                let level = match outcome {
                    SettlementOutcome::Settled(evidence) => Some(evidence.level()),
                    SettlementOutcome::Unknown(_) => None,
                };
                Some(Event::Settled { delivery: delivery.into(), level })
            }
            _ => None,
        };
        if let Some(event) = event {
            self.note(event);
        }
    }
}
