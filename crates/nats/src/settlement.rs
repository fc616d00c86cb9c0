//! Settling, giving back and extending deliveries.

use std::sync::Arc;
use std::time::Duration;

use async_nats::Message;
use async_nats::Subject;
use async_nats::message::OutboundMessage;
use bytes::Bytes;
use consign_core_api::settlement::state::SettlePermit;
use consign_core_api::spi::{Completion, DeliveryToken, SettlementReply, Settler, UnitId};
use tokio::time::Instant;

use crate::codes;
use crate::connection::Shared;
use crate::consumer::Ledger;
use crate::exchange::{Ask, Exchange, Lane, Outgoing, Unsent};
use crate::outcome;

/// How long a settlement may wait to be sent, and how long for its answer.
const PATIENCE: Duration = Duration::from_secs(10);

const ACK: Bytes = Bytes::from_static(b"+ACK");
const NAK: Bytes = Bytes::from_static(b"-NAK");
const TERM: Bytes = Bytes::from_static(b"+TERM");
const PROGRESS: Bytes = Bytes::from_static(b"+WPI");

/// Settlements as exchanges.
pub(crate) struct Settling;

impl Exchange for Settling {
    type Reply = SettlementReply;
    type Context = ();
    const PATIENCE: Option<Duration> = Some(PATIENCE);

    fn judge(_context: &(), answer: &Message) -> SettlementReply {
        outcome::of_settlement(answer.status.map(|status| status.as_u16()), &answer.payload)
    }

    fn not_sent(error: &async_nats::PublishError) -> SettlementReply {
        outcome::settlement_not_sent(error)
    }

    fn never_sent() -> Option<SettlementReply> {
        Some(outcome::settlement_unanswered())
    }

    fn unanswered() -> SettlementReply {
        outcome::settlement_unanswered()
    }
}

/// The settlement side of a subscription. An answer of the server proves that it settled the message for the group, not
/// that this delivery was still the current one.
pub(crate) struct NatsSettler {
    shared: Arc<Shared>,
    ledger: Arc<Ledger>,
    lane: Lane<Settling>,
}

impl NatsSettler {
    pub(crate) fn start(shared: &Arc<Shared>, ledger: Arc<Ledger>, outstanding: usize) -> Self {
        // One settlement per delivery, and room for extensions.
        let room = outstanding.saturating_mul(2).saturating_add(64);
        let (lane, watch) = Lane::start(shared.link.clone(), Arc::clone(&shared.settlements), room);
        shared.watch(watch);
        Self { shared: Arc::clone(shared), ledger, lane }
    }

    /// Gives deliveries back that nobody will settle any more, without asking what became of it.
    pub(crate) fn give_back(&self, deliveries: impl IntoIterator<Item = Subject>) {
        for delivery in deliveries {
            self.tell(delivery, NAK);
        }
    }

    fn tell(&self, delivery: Subject, word: Bytes) {
        let message = OutboundMessage { subject: delivery, reply: None, payload: word, headers: None };
        // Lost where the lane is full: the server gives the delivery out again after ack_wait by itself.
        let _ = self.lane.offer(Outgoing { message, until: Instant::now() + PATIENCE, ask: None });
    }

    fn ask(&self, token: DeliveryToken, word: Bytes, done: Completion<SettlementReply>) {
        let Some(delivery) = self.ledger.take(token) else {
            let text = "the delivery belongs to an interrupted subscription, or was settled before";
            return done.resolve(outcome::settlement_unknown(codes::NATS_STALE_DELIVERY, text));
        };
        // Every subscription numbers its deliveries for itself, so keys of two of them may be equal.
        let number = self.shared.settlements.number();
        let reply = Some(self.shared.settlements.reply_to(number));
        let message = OutboundMessage { subject: delivery, reply, payload: word, headers: None };
        let ask = Some(Ask { number, done, context: () });
        let (unsent, code) =
            match self.lane.offer(Outgoing { message, until: Instant::now() + PATIENCE, ask }) {
                Ok(()) => return,
                Err(Unsent::Full(unsent)) => (unsent, codes::NATS_SETTLEMENT_QUEUE_FULL),
                Err(Unsent::Closed(unsent)) => (unsent, codes::TRANSPORT_CLOSED),
            };
        if let Some(Ask { done, .. }) = unsent.ask {
            done.resolve(outcome::settlement_unknown(code, "the settlement was not sent"));
        }
    }
}

impl Settler for NatsSettler {
    fn settle(&self, permit: SettlePermit, done: Completion<SettlementReply>) {
        self.ask(permit.token(), ACK, done);
    }

    fn terminate(&self, permit: SettlePermit, done: Completion<SettlementReply>) {
        self.ask(permit.token(), TERM, done);
    }

    fn redeliver(&self, token: DeliveryToken, after: Duration, done: Completion<SettlementReply>) {
        let word = if after.is_zero() {
            NAK
        } else {
            let nanos =
                u64::try_from(after.min(consign_core_api::time::LONGEST).as_nanos()).unwrap_or(u64::MAX);
            Bytes::from(format!("-NAK {{\"delay\":{nanos}}}"))
        };
        self.ask(token, word, done);
    }

    fn release(&self, token: DeliveryToken, done: Completion<SettlementReply>) {
        self.ask(token, NAK, done);
    }

    fn extend(&self, tokens: &[DeliveryToken]) {
        for token in tokens {
            if let Some(delivery) = self.ledger.peek(*token) {
                self.tell(delivery, PROGRESS);
            }
        }
    }

    fn pause(&self, unit: UnitId) {
        self.ledger.pause(unit, true);
    }

    fn resume(&self, unit: UnitId) {
        self.ledger.pause(unit, false);
    }
}
