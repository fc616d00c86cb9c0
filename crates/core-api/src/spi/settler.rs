//! The settlement side of a subscription.

use std::time::Duration;

use super::{Completion, DeliveryToken, Reply, UnitId};
use crate::codes;
use crate::failure::{Failure, FailureCategory};
use crate::settlement::SettlementEvidence;
use crate::settlement::state::SettlePermit;

/// What the broker said of a settlement, a redelivery or a release.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_enums, reason = "there is evidence or there is none")]
pub enum SettlementReply {
    /// The broker answered, and this is what the answer proves.
    Evidence(SettlementEvidence),
    /// There is no proof: no answer, a stale epoch, a lost connection, or an answer that proves nothing.
    Unknown(Failure),
}

impl Reply for SettlementReply {
    fn dropped(_handed_over: bool) -> Self {
        Self::Unknown(Failure::new(
            FailureCategory::TransientInfrastructure,
            codes::COMPLETION_DROPPED,
            "the adapter dropped the settlement without an answer",
        ))
    }
}

/// The settlement side of a subscription. All methods return at once; they may be called from any task, and calls
/// for one unit reach the wire in call order.
///
/// A token of an older epoch is answered [`SettlementReply::Unknown`] without I/O. The adapter retries nothing.
pub trait Settler: Send + Sync + 'static {
    /// Settles a delivery for good. The permit comes only from a state that may be settled.
    ///
    /// Requires redelivery not to happen once evidence was given, as firmly as its level says.
    fn settle(&self, permit: SettlePermit, done: Completion<SettlementReply>);

    /// Settles a delivery whose CONFIRMED copy stands elsewhere or that is discarded. Where the broker has no word of
    /// its own for it, this is [`settle`](Self::settle).
    fn terminate(&self, permit: SettlePermit, done: Completion<SettlementReply>);

    /// Gives a failed delivery back, to come again not earlier than `after`. Counts as a failed delivery where the
    /// broker tells the two apart. Requires redelivery, and delayed redelivery where `after` is not zero.
    fn redeliver(&self, token: DeliveryToken, after: Duration, done: Completion<SettlementReply>);

    /// Gives an unprocessed delivery back (shutdown, revocation), to come again at once, to anyone.
    fn release(&self, token: DeliveryToken, done: Completion<SettlementReply>);

    /// Extends the settlement deadline of deliveries that wait or are handled. Without effect where the broker has no
    /// such deadline. Lost extensions are not told.
    fn extend(&self, tokens: &[DeliveryToken]);

    /// Stops deliveries of a unit. What was delivered already may still come. Idempotent.
    fn pause(&self, unit: UnitId);

    /// Lets deliveries of a unit go on. Idempotent.
    fn resume(&self, unit: UnitId);
}
