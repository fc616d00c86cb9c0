//! A completion sink that checks its contract, and a destination to play with.

use std::collections::{BTreeMap, BTreeSet};
use std::num::{NonZeroU64, NonZeroUsize};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use consign_core_api::message::Message;
use consign_core_api::settlement::state::Received;
use consign_core_api::spi::*;
use consign_core_api::time::{Clock, Moment};
use consign_core_api::{
    Code, DeliveryGuarantee, DestinationName, EncodedMessage, GroupName, MessageId, MessagePosition,
    OrderingScope, TransportName,
};
use tokio::time::Instant;

use crate::Broker;

pub(super) struct TestClock(Instant);

impl Clock for TestClock {
    fn now(&self) -> Moment {
        Moment::from_start(self.0.elapsed())
    }
    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

/// Keeps every answer, and fails the test when the adapter breaks the contract.
pub(super) struct Sink<R: Reply>(Mutex<SinkState<R>>);

struct SinkState<R> {
    next: u64,
    handed_over: BTreeSet<SlotKey>,
    given_up: BTreeSet<SlotKey>,
    released: BTreeSet<SlotKey>,
    answers: BTreeMap<SlotKey, R>,
    ended: BTreeSet<SlotKey>,
}

impl<R: Reply> Sink<R> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(SinkState {
            next: 0,
            handed_over: BTreeSet::new(),
            given_up: BTreeSet::new(),
            released: BTreeSet::new(),
            answers: BTreeMap::new(),
            ended: BTreeSet::new(),
        })))
    }

    pub(super) fn completion(self: &Arc<Self>) -> (SlotKey, Completion<R>) {
        let mut state = self.0.lock().unwrap();
        state.next += 1;
        let key = SlotKey::new(NonZeroU64::new(state.next).unwrap());
        let sink: Arc<dyn CompletionSink<R>> = Arc::<Self>::clone(self);
        (key, Completion::new(sink, key))
    }

    pub(super) fn give_up(&self, key: SlotKey) {
        self.0.lock().unwrap().given_up.insert(key);
    }

    pub(super) fn take(&self, key: SlotKey) -> Option<R> {
        self.0.lock().unwrap().answers.remove(&key)
    }

    pub(super) fn was_released(&self, key: SlotKey) -> bool {
        self.0.lock().unwrap().released.contains(&key)
    }

    pub(super) fn was_handed_over(&self, key: SlotKey) -> bool {
        self.0.lock().unwrap().handed_over.contains(&key)
    }
}

impl<R: Reply> CompletionSink<R> for Sink<R> {
    fn hand_over(&self, key: SlotKey) -> bool {
        let mut state = self.0.lock().unwrap();
        let given_up = state.given_up.contains(&key);
        assert!(given_up || state.handed_over.insert(key), "handed over twice");
        !given_up
    }
    fn resolve(&self, batch: &mut Vec<(SlotKey, R)>) {
        batch.drain(..).for_each(|(key, reply)| self.resolve_one(key, reply));
    }
    fn resolve_one(&self, key: SlotKey, reply: R) {
        let mut state = self.0.lock().unwrap();
        assert!(state.ended.insert(key), "answered twice");
        state.answers.insert(key, reply);
    }
    fn released(&self, key: SlotKey) {
        self.0.lock().unwrap().released.insert(key);
    }
    fn dropped(&self, key: SlotKey) {
        let handed_over = self.was_handed_over(key);
        self.resolve_one(key, R::dropped(handed_over));
    }
}

pub(super) fn setup(ordering: OrderingScope, partitions: u32) -> DestinationSetup {
    let name = DestinationName::new("orders").unwrap();
    let mut setup = DestinationSetup::new(name, DeliveryGuarantee::AtLeastOnce, ordering);
    setup.native = NativeSettings::default().with("partitions", partitions);
    setup
}

pub(super) fn message(text: &str) -> EncodedMessage {
    let (_, parts) = Message::<()>::tombstone().id(MessageId::new(text).unwrap()).into_parts();
    EncodedMessage::new(text.to_owned(), parts)
}

pub(super) fn keyed(text: &str, key: &str) -> EncodedMessage {
    let mut message = message(text);
    message.set_key(Some(key.to_owned().into()));
    message
}

/// A broker, a connection and one open destination.
pub(super) struct Bench {
    pub(super) broker: Broker,
    pub(super) connection: Arc<dyn Connection>,
    pub(super) destination: Arc<dyn Destination>,
    pub(super) publishes: Arc<Sink<PublishReply>>,
    pub(super) settlements: Arc<Sink<SettlementReply>>,
}

impl Bench {
    pub(super) async fn of(broker: Broker, setup: DestinationSetup) -> Self {
        let connection = connect(&broker).await.unwrap();
        let destination = connection.open(&setup).await.unwrap();
        Self { broker, connection, destination, publishes: Sink::new(), settlements: Sink::new() }
    }

    pub(super) async fn new(ordering: OrderingScope, partitions: u32) -> Self {
        Self::of(Broker::new(), setup(ordering, partitions)).await
    }

    /// Publishes and returns the key.
    pub(super) fn send(&self, message: EncodedMessage) -> SlotKey {
        let (key, done) = self.publishes.completion();
        self.destination.publish(PublishRequest::new(message, Moment::NEVER), done);
        key
    }

    /// Publishes and returns the answer, if there is one at once.
    pub(super) fn publish(&self, message: EncodedMessage) -> Option<PublishReply> {
        let key = self.send(message);
        self.publishes.take(key)
    }

    pub(super) fn publish_all(&self, texts: &[&str]) {
        for text in texts {
            assert!(matches!(self.publish(message(text)), Some(PublishReply::Accepted(_))), "{text}");
        }
    }

    pub(super) async fn subscribe(&self, group: &str, outstanding: usize) -> Box<dyn Subscription> {
        let spec =
            SubscriptionSpec::new(GroupName::new(group).unwrap(), NonZeroUsize::new(outstanding).unwrap());
        self.destination.subscribe(spec).await.unwrap()
    }

    pub(super) fn settle(
        &self,
        subscription: &dyn Subscription,
        token: DeliveryToken,
    ) -> Option<SettlementReply> {
        let (key, done) = self.settlements.completion();
        let (_, permit) = Received::new(token).decode().decoded().succeed().settle();
        subscription.settler().settle(permit, done);
        self.settlements.take(key)
    }

    pub(super) fn redeliver(
        &self,
        subscription: &dyn Subscription,
        token: DeliveryToken,
        after: Duration,
    ) -> Option<SettlementReply> {
        let (key, done) = self.settlements.completion();
        subscription.settler().redeliver(token, after, done);
        self.settlements.take(key)
    }

    pub(super) fn release(
        &self,
        subscription: &dyn Subscription,
        token: DeliveryToken,
    ) -> Option<SettlementReply> {
        let (key, done) = self.settlements.completion();
        subscription.settler().release(token, done);
        self.settlements.take(key)
    }

    pub(super) fn stored(&self) -> Vec<String> {
        self.broker.stored("orders").iter().map(|stored| text(stored.message())).collect()
    }
}

pub(super) async fn connect(broker: &Broker) -> Result<Arc<dyn Connection>, TransportError> {
    let name = TransportName::new("main").unwrap();
    let clock = Arc::new(TestClock(Instant::now()));
    broker.connect(ConnectContext::new(name, Duration::from_secs(1), clock)).await
}

pub(super) fn text(message: &EncodedMessage) -> String {
    String::from_utf8(message.payload().as_bytes().unwrap().to_vec()).unwrap()
}

/// What a batch holds, by kind.
#[derive(Default, Debug)]
pub(super) struct Seen {
    pub(super) texts: Vec<String>,
    pub(super) deliveries: Vec<Inbound>,
    pub(super) assigned: Vec<(UnitId, Epoch)>,
    pub(super) revoking: Vec<(UnitId, Epoch, Moment)>,
    pub(super) lost: Vec<(UnitId, Epoch)>,
    pub(super) interrupted: Vec<Code>,
}

impl Seen {
    pub(super) fn tokens(&self) -> Vec<DeliveryToken> {
        self.deliveries.iter().map(|delivery| delivery.token).collect()
    }

    fn add(&mut self, batch: Batch) {
        for event in batch {
            match event {
                Event::Delivery(inbound) => {
                    self.texts.push(text(&inbound.message));
                    self.deliveries.push(*inbound);
                }
                Event::Assigned(unit, epoch) => self.assigned.push((unit, epoch)),
                Event::Revoking { unit, epoch, drain_by } => self.revoking.push((unit, epoch, drain_by)),
                Event::Lost(unit, epoch) => self.lost.push((unit, epoch)),
                Event::Interrupted(failure) => self.interrupted.push(failure.code()),
                other => panic!("unexpected event: {other:?}"),
            }
        }
    }
}

pub(super) const MANY: NonZeroUsize = NonZeroUsize::new(1000).unwrap();

/// Everything that is there now; never waits. Each wait that it begins is dropped.
pub(super) fn read(subscription: &mut dyn Subscription) -> Seen {
    let mut seen = Seen::default();
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        let mut next = pin!(subscription.next(MANY));
        match next.as_mut().poll(&mut cx) {
            Poll::Ready(batch) => {
                assert!(!batch.is_empty(), "an empty batch");
                seen.add(batch);
            }
            Poll::Pending => return seen,
        }
    }
}

/// One call of `next`, waiting.
pub(super) async fn wait(subscription: &mut dyn Subscription) -> Seen {
    let mut seen = Seen::default();
    seen.add(subscription.next(MANY).await);
    seen
}

pub(super) fn is_settled(reply: Option<SettlementReply>) -> bool {
    matches!(reply, Some(SettlementReply::Evidence(_)))
}

pub(super) fn unknown(reply: Option<SettlementReply>) -> Code {
    match reply {
        Some(SettlementReply::Unknown(failure)) => failure.code(),
        other => panic!("not unknown: {other:?}"),
    }
}

pub(super) fn offset(partition: u32, offset: u64) -> MessagePosition {
    MessagePosition::Offset { partition, offset }
}
