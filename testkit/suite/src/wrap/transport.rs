//! The seam with a meddler in front.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use consign_core_api::settlement::state::SettlePermit;
use consign_core_api::spi::{
    Batch, Completion, ConnectContext, Connection, ConnectionHealth, DeliveryToken, Destination,
    DestinationSetup, Event, Lookup, PublishReply, PublishRequest, SettlementReply, Settler, SlotKey,
    Subscription, SubscriptionSpec, Transaction, Transport, TransportError, UnitId, Withdrawal,
};
use consign_core_api::{Capabilities, CapabilityUnavailable, MessageId, Problem};

use super::meddle::{Meddle, Site, Verb};

/// Puts a meddler in front of a transport.
///
/// What goes around [`Destination`] objects, a broker transaction, is not meddled with.
pub fn meddled(inner: Arc<dyn Transport>, meddle: Arc<dyn Meddle>) -> Arc<dyn Transport> {
    Arc::new(Meddled { inner, meddle, site: () })
}

/// One level of the seam and the meddler in front of it.
struct Meddled<T: ?Sized, S> {
    inner: Arc<T>,
    meddle: Arc<dyn Meddle>,
    site: S,
}

#[async_trait]
impl Transport for Meddled<dyn Transport, ()> {
    fn kind(&self) -> &'static str {
        self.inner.kind()
    }

    fn validate(&self, setup: &DestinationSetup) -> Vec<Problem> {
        self.meddle.validate(setup, self.inner.validate(setup))
    }

    fn capabilities(&self, setup: &DestinationSetup) -> Capabilities {
        self.meddle.capabilities(setup, self.inner.capabilities(setup))
    }

    async fn connect(&self, context: ConnectContext) -> Result<Arc<dyn Connection>, TransportError> {
        let inner = self.inner.connect(context).await?;
        Ok(Arc::new(Meddled { inner, meddle: Arc::clone(&self.meddle), site: () }))
    }
}

#[async_trait]
impl Connection for Meddled<dyn Connection, ()> {
    async fn open(&self, setup: &DestinationSetup) -> Result<Arc<dyn Destination>, Vec<Problem>> {
        let site = Site::new(setup.name.clone(), None);
        let inner = self.inner.open(&self.meddle.open(setup.clone())).await?;
        Ok(Arc::new(Meddled { inner, meddle: Arc::clone(&self.meddle), site }))
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
impl Destination for Meddled<dyn Destination, Site> {
    fn publish(&self, request: PublishRequest, done: Completion<PublishReply>) {
        self.meddle.publish(&self.site, &self.inner, request, done);
    }

    fn withdraw(&self, key: SlotKey) -> Withdrawal {
        self.meddle.withdraw(&self.site, &self.inner, key)
    }

    async fn lookup(&self, id: &MessageId) -> Result<Lookup, CapabilityUnavailable> {
        self.inner.lookup(id).await
    }

    async fn subscribe(&self, spec: SubscriptionSpec) -> Result<Box<dyn Subscription>, TransportError> {
        let site = Site::new(self.site.destination.clone(), Some(spec.group.clone()));
        let inner = self.inner.subscribe(spec).await?;
        let settler = Arc::new(Meddled { inner: inner.settler(), meddle: Arc::clone(&self.meddle), site });
        Ok(Box::new(MeddledSubscription { inner, settler, ready: VecDeque::new() }))
    }
}

struct MeddledSubscription {
    inner: Box<dyn Subscription>,
    settler: Arc<Meddled<dyn Settler, Site>>,
    ready: VecDeque<Event>,
}

#[async_trait]
impl Subscription for MeddledSubscription {
    async fn next(&mut self, max: NonZeroUsize) -> Batch {
        while self.ready.is_empty() {
            // What was pulled is kept in `ready`, so that a dropped future loses nothing.
            for event in self.inner.next(max).await {
                let settler = &self.settler;
                self.ready.extend(settler.meddle.event(&settler.site, &settler.inner, event));
            }
        }
        // A meddler may have made more deliveries than were asked for; the rest waits for the next call.
        let mut room = max.get();
        let mut batch = Batch::new();
        while let Some(event) = self.ready.pop_front() {
            if matches!(event, Event::Delivery(_)) {
                if room == 0 {
                    self.ready.push_front(event);
                    break;
                }
                room -= 1;
            }
            batch.push(event);
        }
        batch
    }

    fn settler(&self) -> Arc<dyn Settler> {
        self.settler.clone()
    }

    async fn close(&mut self) {
        self.inner.close().await;
    }
}

impl Settler for Meddled<dyn Settler, Site> {
    fn settle(&self, permit: SettlePermit, done: Completion<SettlementReply>) {
        self.meddle.verb(&self.site, &self.inner, Verb::Settle(permit), done);
    }

    fn terminate(&self, permit: SettlePermit, done: Completion<SettlementReply>) {
        self.meddle.verb(&self.site, &self.inner, Verb::Terminate(permit), done);
    }

    fn redeliver(&self, token: DeliveryToken, after: Duration, done: Completion<SettlementReply>) {
        self.meddle.verb(&self.site, &self.inner, Verb::Redeliver(token, after), done);
    }

    fn release(&self, token: DeliveryToken, done: Completion<SettlementReply>) {
        self.meddle.verb(&self.site, &self.inner, Verb::Release(token), done);
    }

    fn extend(&self, tokens: &[DeliveryToken]) {
        self.meddle.extend(&self.site, &self.inner, tokens);
    }

    fn pause(&self, unit: UnitId) {
        self.meddle.flow(&self.site, &self.inner, unit, true);
    }

    fn resume(&self, unit: UnitId) {
        self.meddle.flow(&self.site, &self.inner, unit, false);
    }
}
