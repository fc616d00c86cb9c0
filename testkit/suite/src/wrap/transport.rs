//! The seam with a meddler in front.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use consign_core_api::settlement::state::SettlePermit;
use consign_core_api::spi::{
    Batch, Completion, ConnectContext, Connection, ConnectionHealth, DeliveryToken, Destination, DestinationSetup,
    Event, Lookup, PublishReply, PublishRequest, SettlementReply, Settler, SlotKey, Subscription, SubscriptionSpec,
    Transaction, Transport, TransportError, UnitId, Withdrawal,
};
use consign_core_api::{Capabilities, CapabilityUnavailable, MessageId, Problem};

use super::meddle::{Meddle, Verb};

/// Puts a meddler in front of a transport.
pub fn meddled(inner: Arc<dyn Transport>, meddle: Arc<dyn Meddle>) -> Arc<dyn Transport> {
    Arc::new(Meddled { inner, meddle })
}

/// One level of the seam and the meddler in front of it.
struct Meddled<T: ?Sized> {
    inner: Arc<T>,
    meddle: Arc<dyn Meddle>,
}

#[async_trait]
impl Transport for Meddled<dyn Transport> {
    fn kind(&self) -> &'static str {
        self.inner.kind()
    }

    fn validate(&self, setup: &DestinationSetup) -> Vec<Problem> {
        self.meddle.validate(setup, self.inner.validate(setup))
    }

    fn capabilities(&self, setup: &DestinationSetup) -> Capabilities {
        self.meddle.capabilities(self.inner.capabilities(setup))
    }

    async fn connect(&self, context: ConnectContext) -> Result<Arc<dyn Connection>, TransportError> {
        let inner = self.inner.connect(context).await?;
        Ok(Arc::new(Meddled { inner, meddle: Arc::clone(&self.meddle) }))
    }
}

#[async_trait]
impl Connection for Meddled<dyn Connection> {
    async fn open(&self, setup: &DestinationSetup) -> Result<Arc<dyn Destination>, Vec<Problem>> {
        let inner = self.inner.open(setup).await?;
        Ok(Arc::new(Meddled { inner, meddle: Arc::clone(&self.meddle) }))
    }

    async fn health(&self) -> ConnectionHealth {
        self.inner.health().await
    }

    async fn begin(&self) -> Result<Box<dyn Transaction>, CapabilityUnavailable> {
        self.inner.begin().await
    }

    async fn close(&self, within: Duration) {
        self.inner.close(within).await;
    }
}

#[async_trait]
impl Destination for Meddled<dyn Destination> {
    fn publish(&self, request: PublishRequest, done: Completion<PublishReply>) {
        self.meddle.publish(&self.inner, request, done);
    }

    fn withdraw(&self, key: SlotKey) -> Withdrawal {
        self.meddle.withdraw(&self.inner, key)
    }

    async fn lookup(&self, id: &MessageId) -> Result<Lookup, CapabilityUnavailable> {
        self.inner.lookup(id).await
    }

    async fn subscribe(&self, spec: SubscriptionSpec) -> Result<Box<dyn Subscription>, TransportError> {
        let inner = self.inner.subscribe(spec).await?;
        let settler = Arc::new(Meddled { inner: inner.settler(), meddle: Arc::clone(&self.meddle) });
        Ok(Box::new(MeddledSubscription { inner, settler, ready: VecDeque::new() }))
    }
}

struct MeddledSubscription {
    inner: Box<dyn Subscription>,
    settler: Arc<Meddled<dyn Settler>>,
    ready: VecDeque<Event>,
}

#[async_trait]
impl Subscription for MeddledSubscription {
    async fn next(&mut self, max: NonZeroUsize) -> Batch {
        while self.ready.is_empty() {
            // What was pulled is kept in `ready`, so that a dropped future loses nothing.
            for event in self.inner.next(max).await {
                self.ready.extend(self.settler.meddle.event(&self.settler.inner, event));
            }
        }
        let most = max.get().min(self.ready.len());
        self.ready.drain(..most).collect()
    }

    fn settler(&self) -> Arc<dyn Settler> {
        self.settler.clone()
    }

    async fn close(&mut self) {
        self.inner.close().await;
    }
}

impl Settler for Meddled<dyn Settler> {
    fn settle(&self, permit: SettlePermit, done: Completion<SettlementReply>) {
        self.meddle.verb(&self.inner, Verb::Settle(permit), done);
    }

    fn terminate(&self, permit: SettlePermit, done: Completion<SettlementReply>) {
        self.meddle.verb(&self.inner, Verb::Terminate(permit), done);
    }

    fn redeliver(&self, token: DeliveryToken, after: Duration, done: Completion<SettlementReply>) {
        self.meddle.verb(&self.inner, Verb::Redeliver(token, after), done);
    }

    fn release(&self, token: DeliveryToken, done: Completion<SettlementReply>) {
        self.meddle.verb(&self.inner, Verb::Release(token), done);
    }

    fn extend(&self, tokens: &[DeliveryToken]) {
        self.meddle.extend(&self.inner, tokens);
    }

    fn pause(&self, unit: UnitId) {
        self.meddle.flow(&self.inner, unit, true);
    }

    fn resume(&self, unit: UnitId) {
        self.meddle.flow(&self.inner, unit, false);
    }
}
