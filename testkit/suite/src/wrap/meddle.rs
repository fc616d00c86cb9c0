//! What can be meddled with.

use std::sync::Arc;
use std::time::Duration;

use consign_core_api::settlement::state::SettlePermit;
use consign_core_api::spi::{
    Completion, DeliveryToken, Destination, DestinationSetup, Event, PublishReply, PublishRequest,
    SettlementReply, Settler, SlotKey, UnitId, Withdrawal,
};
use consign_core_api::{Capabilities, DestinationName, GroupName, Problem};

/// Where something happens.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Site {
    /// The destination.
    pub destination: DestinationName,
    /// The group; `None` where publishing is meddled with.
    pub group: Option<GroupName>,
}

impl Site {
    pub(super) const fn new(destination: DestinationName, group: Option<GroupName>) -> Self {
        Self { destination, group }
    }
}

/// Meddles with a transport. Every method passes through unless it is overridden.
pub trait Meddle: Send + Sync + 'static {
    /// Changes what the adapter declares.
    fn capabilities(&self, setup: &DestinationSetup, declared: Capabilities) -> Capabilities {
        let _ = setup;
        declared
    }

    /// Changes what the adapter's validator says.
    fn validate(&self, setup: &DestinationSetup, problems: Vec<Problem>) -> Vec<Problem> {
        let _ = setup;
        problems
    }

    /// Changes what the adapter is told of a destination when it opens it.
    fn open(&self, setup: DestinationSetup) -> DestinationSetup {
        setup
    }

    /// Publishes.
    fn publish(
        &self,
        site: &Site,
        inner: &Arc<dyn Destination>,
        request: PublishRequest,
        done: Completion<PublishReply>,
    ) {
        let _ = site;
        inner.publish(request, done);
    }

    /// Takes a publish back.
    fn withdraw(&self, site: &Site, inner: &Arc<dyn Destination>, key: SlotKey) -> Withdrawal {
        let _ = site;
        inner.withdraw(key)
    }

    /// Changes an event of a subscription. An empty list swallows it.
    fn event(&self, site: &Site, settler: &Arc<dyn Settler>, event: Event) -> Vec<Event> {
        let _ = (site, settler);
        vec![event]
    }

    /// Settles, terminates, redelivers or releases.
    fn verb(&self, site: &Site, inner: &Arc<dyn Settler>, verb: Verb, done: Completion<SettlementReply>) {
        let _ = site;
        verb.pass(inner.as_ref(), done);
    }

    /// Pauses (`true`) or resumes a unit.
    fn flow(&self, site: &Site, inner: &Arc<dyn Settler>, unit: UnitId, pause: bool) {
        let _ = site;
        if pause { inner.pause(unit) } else { inner.resume(unit) }
    }

    /// Extends settlement deadlines.
    fn extend(&self, site: &Site, inner: &Arc<dyn Settler>, tokens: &[DeliveryToken]) {
        let _ = site;
        inner.extend(tokens);
    }
}

/// What is done to a delivery.
#[derive(Debug)]
#[non_exhaustive]
pub enum Verb {
    /// See [`Settler::settle`].
    Settle(SettlePermit),
    /// See [`Settler::terminate`].
    Terminate(SettlePermit),
    /// See [`Settler::redeliver`].
    Redeliver(DeliveryToken, Duration),
    /// See [`Settler::release`].
    Release(DeliveryToken),
}

impl Verb {
    /// Does it.
    pub fn pass(self, settler: &dyn Settler, done: Completion<SettlementReply>) {
        match self {
            Self::Settle(permit) => settler.settle(permit, done),
            Self::Terminate(permit) => settler.terminate(permit, done),
            Self::Redeliver(token, after) => settler.redeliver(token, after, done),
            Self::Release(token) => settler.release(token, done),
        }
    }

    /// Returns the delivery that it is done to.
    #[must_use]
    pub const fn token(&self) -> DeliveryToken {
        match self {
            Self::Settle(permit) | Self::Terminate(permit) => permit.token(),
            Self::Redeliver(token, _) | Self::Release(token) => *token,
        }
    }

    /// Tells whether it ends the delivery for good.
    #[must_use]
    pub const fn ends(&self) -> bool {
        matches!(self, Self::Settle(_) | Self::Terminate(_))
    }
}
