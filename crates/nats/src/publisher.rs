//! Publishing to one destination.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_nats::message::OutboundMessage;
use async_nats::{Message, Subject};
use async_trait::async_trait;
use consign_core_api::guarantee::{DeliveryGuarantee, OrderingScope};
use consign_core_api::message::EncodedMessage;
use consign_core_api::spi::{
    Completion, Destination, DestinationSetup, PublishReply, PublishRequest, SlotKey, Subscription,
    SubscriptionSpec, TransportError, Withdrawal,
};
use consign_core_api::time::Moment;
use tokio::time::Instant;

use crate::connection::Shared;
use crate::consumer::NatsSubscription;
use crate::exchange::{Ask, Exchange, Lane, Outgoing, Unsent};
use crate::outcome::{self, Expected};
use crate::topology::Prepared;
use crate::{partition, wire};

/// After its deadline a queued message is dropped without an answer; the runtime answers at the deadline, so this only
/// has to come after it.
const GRACE: Duration = Duration::from_secs(1);

/// Publishes as exchanges.
pub(crate) struct Publishing;

impl Exchange for Publishing {
    type Reply = PublishReply;
    type Context = Expected;
    // The runtime alone decides at the deadline, and says so by `withdraw`.
    const PATIENCE: Option<Duration> = None;

    fn judge(expected: &Expected, answer: &Message) -> PublishReply {
        outcome::of_publish(expected, answer.status.map(|status| status.as_u16()), &answer.payload)
    }

    fn not_sent(error: &async_nats::PublishError) -> PublishReply {
        outcome::publish_not_sent(error)
    }

    fn never_sent() -> Option<PublishReply> {
        None
    }

    fn unanswered() -> PublishReply {
        outcome::publish_unanswered()
    }

    /// Told at once where another attempt settles the question; elsewhere an answer may still come, for a request that
    /// the client had not written yet.
    fn lost(expected: &Expected) -> Option<PublishReply> {
        expected.repeatable.then(outcome::publish_lost)
    }
}

/// An open destination: one lane, so that calls reach the wire in their order.
pub(crate) struct Publisher {
    shared: Arc<Shared>,
    setup: Arc<DestinationSetup>,
    prepared: Arc<Prepared>,
    stream: Arc<str>,
    subjects: Vec<Subject>,
    lane: Lane<Publishing>,
    /// Where the next message without key and partition goes.
    turn: AtomicU32,
    /// Whether the runtime sends messages with an id again where their end is unknown.
    repeats: bool,
}

impl Publisher {
    pub(crate) fn start(shared: &Arc<Shared>, setup: &DestinationSetup, prepared: Prepared) -> Self {
        let inbox = Arc::clone(&shared.publishes);
        let (lane, watch) = Lane::start(shared.link.clone(), inbox, setup.publish.in_flight.get());
        shared.watch(watch);
        Self {
            shared: Arc::clone(shared),
            setup: Arc::new(setup.clone()),
            stream: prepared.names.stream().into(),
            subjects: prepared.names.subjects().iter().map(|subject| Subject::from(&**subject)).collect(),
            prepared: Arc::new(prepared),
            lane,
            turn: AtomicU32::new(0),
            // JetStream recognises ids always; the runtime repeats no attempt where an order or AT_MOST_ONCE forbids it.
            repeats: setup.ordering == OrderingScope::None
                && setup.delivery == DeliveryGuarantee::AtLeastOnce,
        }
    }

    fn subject(&self, message: &EncodedMessage) -> Result<Subject, PublishReply> {
        let partitions = u32::try_from(self.subjects.len()).unwrap_or(u32::MAX);
        let chosen = match (message.partition(), message.key()) {
            (Some(partition), _) if !self.prepared.names.is_partitioned() => {
                return Err(outcome::no_such_partition(partition));
            }
            (Some(partition), _) => partition,
            (None, _) if partitions == 1 => 0,
            (None, Some(key)) => partition::of_key(key, partitions),
            (None, None) => self.turn.fetch_add(1, Ordering::Relaxed) % partitions,
        };
        let subject = usize::try_from(chosen).ok().and_then(|chosen| self.subjects.get(chosen));
        subject.cloned().ok_or_else(|| outcome::no_such_partition(chosen))
    }

    fn prepare(&self, request: &PublishRequest, key: SlotKey) -> Result<OutboundMessage, PublishReply> {
        if self.shared.is_closed() {
            return Err(outcome::publish_closed());
        }
        let subject = self.subject(&request.message)?;
        let (headers, payload) =
            wire::encode(&request.message, &self.stream).map_err(|header| outcome::uncarried(&header))?;
        let reply = Some(self.shared.publishes.reply_to(key.get().get()));
        Ok(OutboundMessage { subject, reply, payload, headers: Some(headers) })
    }

    fn until(&self, deadline: Moment) -> Instant {
        let left = deadline.since(self.shared.clock.now()).min(consign_core_api::time::LONGEST);
        Instant::now() + left + GRACE
    }
}

#[async_trait]
impl Destination for Publisher {
    fn publish(&self, request: PublishRequest, done: Completion<PublishReply>) {
        let message = match self.prepare(&request, done.key()) {
            Ok(message) => message,
            Err(refused) => return done.resolve(refused),
        };
        let context = Expected {
            stream: Arc::clone(&self.stream),
            evidence: self.prepared.evidence,
            resend: request.resend,
            repeatable: self.repeats && request.message.id().is_some(),
        };
        // Its key is its number, so that a withdrawal finds it.
        let ask = Ask { number: done.key().get().get(), done, context };
        let outgoing = Outgoing { message, until: self.until(request.deadline), ask: Some(ask) };
        let (unsent, reply) = match self.lane.offer(outgoing) {
            Ok(()) => return,
            Err(Unsent::Full(unsent)) => (unsent, outcome::publish_queue_full()),
            Err(Unsent::Closed(unsent)) => (unsent, outcome::publish_closed()),
        };
        if let Some(Ask { done, .. }) = unsent.ask {
            done.resolve(reply);
        }
    }

    /// Never withdrawn: once it is handed over, the client may write it at any time. What still waits in the lane is
    /// taken back by the runtime alone.
    fn withdraw(&self, key: SlotKey) -> Withdrawal {
        self.shared.publishes.given_up(key);
        Withdrawal::TooLate
    }

    async fn subscribe(&self, spec: SubscriptionSpec) -> Result<Box<dyn Subscription>, TransportError> {
        let subscription = NatsSubscription::start(&self.shared, &self.setup, &self.prepared, spec).await?;
        Ok(Box::new(subscription))
    }
}
