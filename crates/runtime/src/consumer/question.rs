//! One settlement outside a driver: asked once, answered once.

use std::sync::Arc;

use consign_core_api::spi::{Completion, CompletionSink, SettlementReply};
use consign_core_api::{Failure, FailureCategory, SettlementLevel};

use super::mailbox::Mailbox;
use super::works::WorkKey;
use crate::codes;

/// A settlement, a redelivery or a release whose answer is awaited in line.
#[derive(Debug, Default)]
pub(crate) struct Question(Arc<Mailbox>);

const KEY: WorkKey = WorkKey::new(0, 0);

impl Question {
    pub(crate) fn new() -> Self {
        let question = Self::default();
        question.0.open(KEY);
        question
    }

    /// Returns what the adapter answers with. To be called once.
    pub(crate) fn completion(&self) -> Completion<SettlementReply> {
        Completion::new(Arc::clone(&self.0) as Arc<dyn CompletionSink<SettlementReply>>, KEY.slot())
    }

    /// Waits for the answer; unbounded, so that the caller bounds it.
    pub(crate) async fn answer(self) -> SettlementReply {
        let mut replies = Vec::with_capacity(1);
        loop {
            std::future::poll_fn(|cx| self.0.poll_replies(cx, &mut replies)).await;
            if let Some((_, reply)) = replies.pop() {
                return reply;
            }
        }
    }
}

/// Evidence below what the profile demands is no proof.
pub(crate) fn weigh(reply: SettlementReply, demand: SettlementLevel) -> SettlementReply {
    match reply {
        SettlementReply::Evidence(evidence) if evidence.level() < demand => {
            SettlementReply::Unknown(Failure::new(
                FailureCategory::TransientInfrastructure,
                codes::SETTLEMENT_BELOW_DEMAND,
                format!("settled as {}, but the profile demands {demand}", evidence.level()),
            ))
        }
        other => other,
    }
}
