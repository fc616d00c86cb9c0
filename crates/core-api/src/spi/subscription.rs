//! A subscription is pulled.

use std::num::NonZeroUsize;
use std::sync::Arc;

use async_trait::async_trait;

use super::{Epoch, Inbound, Settler, UnitId};
use crate::failure::Failure;
use crate::name::GroupName;
use crate::time::Moment;

/// What a consumer asks of a subscription, beside the destination's set-up.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SubscriptionSpec {
    /// The group that shares the deliveries.
    pub group: GroupName,
    /// How many deliveries may be outstanding: delivered and not yet settled or given back.
    pub outstanding: NonZeroUsize,
    /// The reader keeps deliveries unsettled and wants those behind them all the same, whatever the destination's
    /// ordering: it looks, it does not process in order. Default `false`.
    pub any_order: bool,
}

impl SubscriptionSpec {
    /// Makes a specification.
    #[must_use]
    pub const fn new(group: GroupName, outstanding: NonZeroUsize) -> Self {
        Self { group, outstanding, any_order: false }
    }

    /// Asks for deliveries also while earlier ones are unsettled, whatever the destination's ordering.
    #[must_use]
    pub const fn in_any_order(mut self) -> Self {
        self.any_order = true;
        self
    }
}

/// Something that happened to a subscription.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// A message.
    Delivery(Box<Inbound>),
    /// A unit belongs to this subscription from now on, in this epoch.
    Assigned(UnitId, Epoch),
    /// A unit is about to go. What is settled until `drain_by` still counts; the unit is lost at the latest then.
    Revoking {
        /// The unit.
        unit: UnitId,
        /// The epoch that ends.
        epoch: Epoch,
        /// When it ends at the latest.
        drain_by: Moment,
    },
    /// A unit is gone. Settlements of that epoch are unknown from now on.
    Lost(UnitId, Epoch),
    /// The stream of deliveries broke and is being rebuilt: outstanding deliveries may come again.
    Interrupted(Failure),
}

/// Events in the order in which they happened.
pub type Batch = Vec<Event>;

/// A stream of deliveries that the runtime pulls. Dropping it gives outstanding deliveries back as the broker does it.
#[async_trait]
pub trait Subscription: Send + 'static {
    /// Waits for at least one event and returns at most `max` deliveries, with the other events between them.
    ///
    /// Not calling it is the back-pressure: an adapter buffers no more than the specification's `outstanding`.
    /// It never ends silently: a broken stream is [`Event::Interrupted`], and the adapter rebuilds it with back-off.
    ///
    /// Cancel safe: an event that was not returned is returned by a later call.
    async fn next(&mut self, max: NonZeroUsize) -> Batch;

    /// Returns the settlement side, which outlives this value harmlessly.
    fn settler(&self) -> Arc<dyn Settler>;

    /// Ends the subscription, its outstanding deliveries already settled or given back. Bounded by the caller.
    async fn close(&mut self);
}
