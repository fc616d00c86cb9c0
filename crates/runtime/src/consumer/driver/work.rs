//! One delivery on its way through the driver.

use std::sync::Arc;
use std::time::Duration;

use consign_core_api::EncodedMessage;
use consign_core_api::message::Timestamp;
use consign_core_api::settlement::state::{Failed, Processing, Received, SettlePermit, SettlementSending};
use consign_core_api::spi::DeliveryToken;
use consign_core_api::time::Moment;
use tokio_util::sync::CancellationToken;

use crate::consumer::delivery::Content;
use crate::consumer::lanes::LaneId;
use crate::consumer::memory::Failures;
use crate::core::OpenDestination;

/// A delivery that the driver holds.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) content: Arc<Content>,
    pub(super) token: DeliveryToken,
    pub(super) lane: LaneId,
    pub(super) received: Moment,
    /// How many attempts have failed, over all retry destinations.
    pub(super) failed: u32,
    pub(super) first_failed: Option<Timestamp>,
    /// Its unit is gone, or the stream broke: what still comes of it leads to no settlement.
    pub(super) stale: bool,
    pub(super) stage: Stage,
}

/// Where a delivery is. Each stage holds the state of settlement that allows what may follow.
#[derive(Debug)]
pub(super) enum Stage {
    /// Waits for its turn in its lane.
    Waiting(Received),
    /// A retry copy that came before its time.
    Delayed(Received),
    /// AT_MOST_ONCE: its settlement is sent, and it is handled once that is proven.
    SettlingFirst(SettlementSending),
    /// In a handler.
    Handling(Processing, CancellationToken),
    /// In a handler, settled before.
    HandlingSettled(CancellationToken),
    /// Failed, and handled again when its time has come.
    BackingOff(Failed),
    /// Failed, and given back when its time has come.
    HeldForRedelivery(Failed),
    /// Failed, and a copy of it is on its way, or waits to be sent again.
    Copying(Box<Copying>),
    /// Failed, and nobody may decide what becomes of it. Keeps its lane standing.
    Halted,
    /// Ended, and waits for those before it in its lane.
    Ready(Ending),
    /// Its settlement is sent.
    Settling(SettlementSending),
    /// It is being given back.
    GivingBack,
    /// Between two stages; never seen from outside one step.
    Between,
}

/// A copy on its way.
#[derive(Debug)]
pub(super) struct Copying {
    pub(super) failed: Failed,
    pub(super) to: Arc<OpenDestination>,
    pub(super) message: EncodedMessage,
    pub(super) kind: CopyKind,
    /// How many times it was sent and not confirmed.
    pub(super) tries: u32,
    /// One of them may be stored.
    pub(super) unproven: bool,
    /// It is with the broker now.
    pub(super) in_flight: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyKind {
    Retry { after: Duration },
    DeadLetter,
}

/// What is to be handed over when it is the delivery's turn.
#[derive(Debug)]
pub(super) enum Ending {
    Settle(SettlementSending, SettlePermit),
    /// A confirmed copy stands elsewhere.
    Terminate(SettlementSending, SettlePermit),
    Redeliver(Duration),
    /// It was settled before it was handled; nothing is left to send.
    Nothing,
}

impl Work {
    pub(super) const fn take_stage(&mut self) -> Stage {
        std::mem::replace(&mut self.stage, Stage::Between)
    }

    /// What to remember of it until it comes again.
    pub(super) fn failures(&self) -> Option<Failures> {
        let first = self.first_failed?;
        (self.failed > 0).then_some(Failures { failed: self.failed, first })
    }

    /// It is held for later, unsettled, and nothing of it is under way.
    pub(super) fn is_at_rest(&self) -> bool {
        match &self.stage {
            Stage::Waiting(_)
            | Stage::Delayed(_)
            | Stage::BackingOff(_)
            | Stage::HeldForRedelivery(_)
            | Stage::Halted => true,
            Stage::Copying(copying) => !copying.in_flight,
            _ => false,
        }
    }

    /// The broker counts the time until its settlement.
    pub(super) const fn is_held(&self) -> bool {
        !matches!(
            self.stage,
            Stage::SettlingFirst(_) | Stage::HandlingSettled(_) | Stage::Settling(_) | Stage::GivingBack
        )
    }

    pub(super) const fn awaits_reply(&self) -> bool {
        matches!(self.stage, Stage::SettlingFirst(_) | Stage::Settling(_) | Stage::GivingBack)
    }
}
