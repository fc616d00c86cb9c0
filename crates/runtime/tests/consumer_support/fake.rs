//! The fake broker.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use consign_core_api::capability::{DeliveryCount, HeaderModel, Ordering};
use consign_core_api::outcome::{ConfirmationEvidence, Copies, Evidenced, Persistence, Transmission};
use consign_core_api::settlement::state::SettlePermit;
use consign_core_api::settlement::{SettledBecause, SettlementEvidence};
use consign_core_api::spi::{
    Acceptance, Batch, Completion, ConnectContext, Connection, ConnectionHealth, DeliveryToken, Destination,
    DestinationSetup, Event, Inbound, PublishReply, PublishRequest, Refusal, SettlementReply, Settler,
    SlotKey, Subscription, SubscriptionSpec, Transport, TransportError, UnitId, Withdrawal,
};
use consign_core_api::{
    Capabilities, Capability, EncodedMessage, Failure, FailureCategory, MessagePosition, Problem,
    SettlementLevel, Support,
};
use tokio::sync::mpsc;

/// How a publish or a settlement is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Accepted, or settled as committed.
    Yes,
    /// Accepted as a duplicate of something.
    Deduplicated,
    /// Accepted as a duplicate of what stands at this sequence of the stream `S`.
    DeduplicatedAs(u64),
    /// Settled, as processed only.
    Processed,
    /// Refused, or no evidence.
    No,
    /// The answer is lost.
    Unknown,
    /// The completion is dropped.
    Drop,
    /// The adapter panics.
    Panic,
    /// No answer until the test says so.
    Hold,
}

/// What a settler was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verb {
    Settle(u64, SettledBecause),
    Terminate(u64, SettledBecause),
    Redeliver(u64, Duration),
    Release(u64),
    Pause(u32),
    Resume(u32),
}

#[derive(Clone, Default)]
pub struct Fake(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    readers: BTreeMap<String, mpsc::UnboundedSender<Event>>,
    specs: BTreeMap<String, SubscriptionSpec>,
    published: Vec<(String, EncodedMessage)>,
    verbs: Vec<Verb>,
    extended: Vec<Vec<u64>>,
    publish: VecDeque<Answer>,
    settle: VecDeque<Answer>,
    held_publishes: Vec<Completion<PublishReply>>,
    held_settlements: Vec<Completion<SettlementReply>>,
    window: Option<Duration>,
    closed: Vec<String>,
}

impl Fake {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub fn deduplicating(window: Duration) -> Self {
        let fake = Self::default();
        fake.lock().window = Some(window);
        fake
    }

    pub fn deliver(&self, inbound: Inbound) {
        self.deliver_on("orders", inbound);
    }

    pub fn deliver_on(&self, destination: &str, inbound: Inbound) {
        self.tell_on(destination, Event::Delivery(Box::new(inbound)));
    }

    pub fn tell(&self, event: Event) {
        self.tell_on("orders", event);
    }

    pub fn tell_on(&self, destination: &str, event: Event) {
        let state = self.lock();
        // A reader that is gone misses what comes, as with any broker.
        drop(state.readers.get(destination).expect("nobody reads it").send(event));
    }

    /// Answers the next publishes so; after them, with `Yes`.
    pub fn answer_publishes(&self, answers: impl IntoIterator<Item = Answer>) {
        self.lock().publish.extend(answers);
    }

    /// Answers the next settlements, redeliveries and releases so; after them, with `Yes`.
    pub fn answer_settlements(&self, answers: impl IntoIterator<Item = Answer>) {
        self.lock().settle.extend(answers);
    }

    pub fn accept_held_publishes(&self) {
        let held = std::mem::take(&mut self.lock().held_publishes);
        held.into_iter().for_each(|done| done.resolve(accepted()));
    }

    pub fn settle_held(&self) {
        let held = std::mem::take(&mut self.lock().held_settlements);
        held.into_iter().for_each(|done| done.resolve(evidence(SettlementLevel::Committed)));
    }

    pub fn verbs(&self) -> Vec<Verb> {
        self.lock().verbs.clone()
    }

    pub fn published(&self) -> Vec<(String, EncodedMessage)> {
        self.lock().published.clone()
    }

    pub fn extended(&self) -> Vec<Vec<u64>> {
        self.lock().extended.clone()
    }

    pub fn spec(&self, destination: &str) -> SubscriptionSpec {
        self.lock().specs.get(destination).expect("nobody reads it").clone()
    }

    pub fn reads(&self, destination: &str) -> bool {
        self.lock().readers.contains_key(destination)
    }

    pub fn closed(&self) -> Vec<String> {
        self.lock().closed.clone()
    }

    fn settle(&self, verb: Verb, done: Completion<SettlementReply>) {
        let answer = {
            let mut state = self.lock();
            state.verbs.push(verb);
            state.settle.pop_front().unwrap_or(Answer::Yes)
        };
        assert!(done.hand_over(), "a settlement was given up before it was handed over");
        match answer {
            Answer::Yes | Answer::Deduplicated | Answer::DeduplicatedAs(_) => {
                done.resolve(evidence(SettlementLevel::Committed));
            }
            Answer::Processed => done.resolve(evidence(SettlementLevel::Processed)),
            Answer::No | Answer::Unknown => done.resolve(SettlementReply::Unknown(failure("LOST"))),
            Answer::Drop => drop(done),
            Answer::Panic => panic!("an adapter panics"),
            Answer::Hold => self.lock().held_settlements.push(done),
        }
    }
}

/// A place in the stream `S`.
pub fn sequence_of(sequence: u64) -> MessagePosition {
    MessagePosition::Sequence { stream: "S".into(), sequence }
}

fn evidence(level: SettlementLevel) -> SettlementReply {
    SettlementReply::Evidence(SettlementEvidence::observed(level))
}

fn strength() -> ConfirmationEvidence {
    ConfirmationEvidence::new(
        Evidenced::observed(Copies::Leader),
        Evidenced::observed(Persistence::PageCache),
    )
}

fn accepted() -> PublishReply {
    PublishReply::Accepted(Acceptance::new(strength()))
}

fn failure(code: &'static str) -> Failure {
    Failure::new(FailureCategory::TransientInfrastructure, code.into(), "as the test says")
}

#[async_trait]
impl Transport for Fake {
    fn kind(&self) -> &'static str {
        "fake"
    }

    fn validate(&self, _: &DestinationSetup) -> Vec<Problem> {
        Vec::new()
    }

    fn capabilities(&self, _: &DestinationSetup) -> Capabilities {
        let window = self.lock().window;
        let mut all = Capabilities::builder(Ordering::Key(Support::Native("".into())))
            .strongest_evidence(strength())
            .settlement_level(SettlementLevel::Committed)
            .pipelined_order(true)
            .redelivery_keeps_order(true)
            .delivery_count(DeliveryCount::Counted)
            .headers(HeaderModel::FULL)
            .tombstones(true);
        if let Some(window) = window {
            all = all.deduplication_window(window);
        }
        for capability in Capability::ALL {
            let missing = window.is_none() && capability == Capability::PublishDeduplication;
            all = if missing { all.unsupported(capability, "") } else { all.native(capability, "") };
        }
        all.build()
    }

    async fn connect(&self, _: ConnectContext) -> Result<Arc<dyn Connection>, TransportError> {
        Ok(Arc::new(self.clone()))
    }
}

#[async_trait]
impl Connection for Fake {
    async fn open(&self, setup: &DestinationSetup) -> Result<Arc<dyn Destination>, Vec<Problem>> {
        Ok(Arc::new(Place { fake: self.clone(), name: setup.name.as_str().to_owned() }))
    }

    async fn health(&self) -> ConnectionHealth {
        ConnectionHealth::Up
    }

    async fn close(&self, _: Duration) {}
}

struct Place {
    fake: Fake,
    name: String,
}

#[async_trait]
impl Destination for Place {
    fn publish(&self, request: PublishRequest, done: Completion<PublishReply>) {
        if !done.hand_over() {
            return;
        }
        let answer = {
            let mut state = self.fake.lock();
            state.published.push((self.name.clone(), request.message));
            state.publish.pop_front().unwrap_or(Answer::Yes)
        };
        match answer {
            Answer::Yes | Answer::Processed => done.resolve(accepted()),
            Answer::Deduplicated => {
                done.resolve(PublishReply::Accepted(Acceptance::new(strength()).deduplicated()));
            }
            Answer::DeduplicatedAs(sequence) => {
                let acceptance = Acceptance::new(strength()).at(sequence_of(sequence)).deduplicated();
                done.resolve(PublishReply::Accepted(acceptance));
            }
            Answer::No => {
                let refusal = Refusal::new(Transmission::RefusedByBroker, failure("REFUSED"));
                done.resolve(PublishReply::Refused(refusal));
            }
            Answer::Unknown => done.resolve(PublishReply::Unknown(failure("LOST"))),
            Answer::Drop => drop(done),
            Answer::Panic => panic!("an adapter panics"),
            Answer::Hold => self.fake.lock().held_publishes.push(done),
        }
    }

    fn withdraw(&self, _: SlotKey) -> Withdrawal {
        Withdrawal::TooLate
    }

    async fn subscribe(&self, spec: SubscriptionSpec) -> Result<Box<dyn Subscription>, TransportError> {
        let (sender, events) = mpsc::unbounded_channel();
        let mut state = self.fake.lock();
        state.readers.insert(self.name.clone(), sender);
        state.specs.insert(self.name.clone(), spec);
        Ok(Box::new(Reader { fake: self.fake.clone(), name: self.name.clone(), events }))
    }
}

struct Reader {
    fake: Fake,
    name: String,
    events: mpsc::UnboundedReceiver<Event>,
}

#[async_trait]
impl Subscription for Reader {
    async fn next(&mut self, max: NonZeroUsize) -> Batch {
        let Some(first) = self.events.recv().await else { return std::future::pending().await };
        let mut batch = vec![first];
        while batch.len() < max.get() {
            let Ok(event) = self.events.try_recv() else { break };
            batch.push(event);
        }
        batch
    }

    fn settler(&self) -> Arc<dyn Settler> {
        Arc::new(self.fake.clone())
    }

    async fn close(&mut self) {
        self.fake.lock().closed.push(self.name.clone());
    }
}

impl Settler for Fake {
    fn settle(&self, permit: SettlePermit, done: Completion<SettlementReply>) {
        self.settle(Verb::Settle(permit.token().tag(), permit.because()), done);
    }

    fn terminate(&self, permit: SettlePermit, done: Completion<SettlementReply>) {
        self.settle(Verb::Terminate(permit.token().tag(), permit.because()), done);
    }

    fn redeliver(&self, token: DeliveryToken, after: Duration, done: Completion<SettlementReply>) {
        self.settle(Verb::Redeliver(token.tag(), after), done);
    }

    fn release(&self, token: DeliveryToken, done: Completion<SettlementReply>) {
        self.settle(Verb::Release(token.tag()), done);
    }

    fn extend(&self, tokens: &[DeliveryToken]) {
        let mut tags: Vec<u64> = tokens.iter().map(|token| token.tag()).collect();
        tags.sort_unstable();
        self.lock().extended.push(tags);
    }

    fn pause(&self, unit: UnitId) {
        self.lock().verbs.push(Verb::Pause(unit.get()));
    }

    fn resume(&self, unit: UnitId) {
        self.lock().verbs.push(Verb::Resume(unit.get()));
    }
}
