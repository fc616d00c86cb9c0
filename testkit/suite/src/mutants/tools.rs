//! What mutants are made with.

use std::sync::Arc;

use consign_core_api::outcome::{ConfirmationEvidence, Copies, Evidenced, Persistence};
use consign_core_api::settlement::state::{Received, SettlePermit};
use consign_core_api::settlement::{SettlementEvidence, SettlementLevel};
use consign_core_api::spi::{
    Acceptance, Completion, CompletionSink, DeliveryToken, PublishReply, Reply, SettlementReply, SlotKey,
};
use consign_core_api::{EncodedMessage, message::MessageParts};

/// A sink that nobody listens to.
struct Nobody;

impl<R: Reply> CompletionSink<R> for Nobody {
    fn hand_over(&self, _: SlotKey) -> bool {
        true
    }
    fn resolve(&self, batch: &mut Vec<(SlotKey, R)>) {
        batch.clear();
    }
    fn resolve_one(&self, _: SlotKey, _: R) {}
    fn released(&self, _: SlotKey) {}
    fn dropped(&self, _: SlotKey) {}
}

/// A completion under the same key whose answer nobody hears.
pub(super) fn unheard<R: Reply>(like: &Completion<R>) -> Completion<R> {
    Completion::new(Arc::new(Nobody), like.key())
}

/// A sink that says yes to every hand-over.
struct Yes<R: Reply>(Arc<dyn CompletionSink<R>>);

impl<R: Reply> CompletionSink<R> for Yes<R> {
    fn hand_over(&self, key: SlotKey) -> bool {
        let _ = self.0.hand_over(key);
        true
    }
    fn resolve(&self, batch: &mut Vec<(SlotKey, R)>) {
        self.0.resolve(batch);
    }
    fn resolve_one(&self, key: SlotKey, reply: R) {
        self.0.resolve_one(key, reply);
    }
    fn released(&self, key: SlotKey) {
        self.0.released(key);
    }
    fn dropped(&self, key: SlotKey) {
        self.0.dropped(key);
    }
}

/// The same completion, handed over whether that is still allowed or not.
pub(super) fn unconditional<R: Reply>(done: Completion<R>) -> Completion<R> {
    let sink = Arc::new(Yes(Arc::clone(done.sink())));
    Completion::new(sink, done.into_raw())
}

/// An acceptance that nothing backs.
pub(super) fn accepted() -> PublishReply {
    let copies = Evidenced::observed(Copies::Leader);
    PublishReply::Accepted(Acceptance::new(ConfirmationEvidence::new(
        copies,
        Evidenced::observed(Persistence::Memory),
    )))
}

/// Evidence that nothing backs.
pub(super) const fn settled(level: SettlementLevel) -> SettlementReply {
    SettlementReply::Evidence(SettlementEvidence::observed(level))
}

/// A right to settle that no handler gave.
pub(super) fn stolen(token: DeliveryToken) -> SettlePermit {
    Received::new(token).decode().decoded().succeed().settle().1
}

/// Takes a message apart.
pub(super) fn parts_of(message: &EncodedMessage) -> MessageParts {
    let mut parts = MessageParts::default();
    parts.key = message.key().cloned();
    parts.headers = message.headers().clone();
    parts.id = message.id().cloned();
    parts.timestamp = message.timestamp();
    parts.partition = message.partition();
    parts
}
