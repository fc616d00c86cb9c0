//! The one place where what the broker did becomes an answer.

use consign_core_api::code::Code;
use consign_core_api::outcome::{ConfirmationEvidence, Copies, Evidenced, Persistence, Transmission};
use consign_core_api::settlement::SettlementEvidence;
use consign_core_api::spi::{Acceptance, PublishReply, Refusal, SettlementReply};
use consign_core_api::{Failure, FailureCategory, MessagePosition, SettlementLevel};

use crate::broker::{Appended, Full, Place, Stale};
use crate::codes;

/// One copy, in the memory of this process, and the broker itself says so.
pub(crate) const EVIDENCE: ConfirmationEvidence =
    ConfirmationEvidence::new(Evidenced::observed(Copies::Leader), Evidenced::observed(Persistence::Memory));

/// What cut an answer off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    Down,
    Closed,
    Restarted,
    Interrupted,
    ReplyLost,
}

impl Cut {
    const fn words(self) -> (Code, &'static str) {
        match self {
            Self::Down => (codes::IN_MEMORY_DOWN, "the broker is unreachable"),
            Self::Closed => (codes::TRANSPORT_CLOSED, "the connection is closed"),
            Self::Restarted => (codes::IN_MEMORY_RESTARTED, "the broker was restarted"),
            Self::Interrupted => (codes::IN_MEMORY_INTERRUPTED, "the stream of deliveries was interrupted"),
            Self::ReplyLost => (codes::IN_MEMORY_REPLY_LOST, "the broker's reply was lost"),
        }
    }

    /// Describes the cut.
    pub(crate) fn failure(self) -> Failure {
        let (code, text) = self.words();
        Failure::new(FailureCategory::TransientInfrastructure, code, text)
    }

    /// The message was handed over, and no answer came.
    pub(crate) fn unknown(self) -> PublishReply {
        PublishReply::Unknown(self.failure())
    }

    /// The message provably never reached the broker.
    pub(crate) fn not_transmitted(self) -> PublishReply {
        PublishReply::Refused(Refusal::new(Transmission::NotTransmitted, self.failure()))
    }

    /// The settlement's end is not known.
    pub(crate) fn settlement(self) -> SettlementReply {
        SettlementReply::Unknown(self.failure())
    }
}

impl From<Place> for MessagePosition {
    fn from(place: Place) -> Self {
        Self::Offset { partition: place.partition, offset: place.offset }
    }
}

/// The broker's answer to an append.
pub(crate) fn appended(result: Result<Appended, Full>) -> PublishReply {
    match result {
        Ok(Appended::Stored(place)) => PublishReply::Accepted(Acceptance::new(EVIDENCE).at(place.into())),
        Ok(Appended::Known(place)) => {
            PublishReply::Accepted(Acceptance::new(EVIDENCE).at(place.into()).deduplicated())
        }
        Err(Full) => refused(
            Transmission::RefusedByBroker,
            FailureCategory::Capacity,
            codes::IN_MEMORY_FULL,
            "the destination is full",
        ),
    }
}

/// The client's own queue of held publishes, or of answers, is full.
pub(crate) fn queue_full() -> PublishReply {
    refused(
        Transmission::NotTransmitted,
        FailureCategory::Capacity,
        codes::IN_MEMORY_FULL,
        "the queue of held publishes or confirmations is full",
    )
}

/// The message asks for a partition that is not there.
pub(crate) fn no_such_partition(partition: u32, partitions: u32) -> PublishReply {
    let text = format!("partition {partition} does not exist; the destination has {partitions}");
    let failure = Failure::new(FailureCategory::PermanentBusiness, codes::PARTITION_NOT_CARRIED, text);
    PublishReply::Refused(Refusal::new(Transmission::NotTransmitted, failure))
}

/// The broker was told to refuse.
pub(crate) fn scripted_refusal() -> PublishReply {
    refused(
        Transmission::RefusedByBroker,
        FailureCategory::TransientInfrastructure,
        codes::IN_MEMORY_REFUSED,
        "the broker was told to refuse",
    )
}

/// The broker was told to find nowhere to put the message.
pub(crate) fn scripted_unroutable() -> PublishReply {
    refused(
        Transmission::Unroutable,
        FailureCategory::Configuration,
        codes::IN_MEMORY_UNROUTABLE,
        "the broker was told to find no route",
    )
}

fn refused(at: Transmission, category: FailureCategory, code: Code, text: &'static str) -> PublishReply {
    PublishReply::Refused(Refusal::new(at, Failure::new(category, code, text)))
}

/// The broker's answer to a settlement, a redelivery or a release.
pub(crate) fn settled(result: Result<(), Stale>) -> SettlementReply {
    let (code, text) = match result {
        // Applied before it is answered; it dies with the process, so it is not `Committed`.
        Ok(()) => {
            return SettlementReply::Evidence(SettlementEvidence::observed(SettlementLevel::Processed));
        }
        Err(Stale::Epoch) => (codes::STALE_EPOCH, "the unit was lost before"),
        Err(Stale::NotOutstanding) => (codes::DELIVERY_NOT_OUTSTANDING, "the delivery is not outstanding"),
    };
    SettlementReply::Unknown(Failure::new(FailureCategory::TransientInfrastructure, code, text))
}
