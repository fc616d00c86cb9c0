//! Publishing: one short lock, then the answer.

use std::sync::Arc;

use async_trait::async_trait;
use consign_core_api::MessageId;
use consign_core_api::error::CapabilityUnavailable;
use consign_core_api::spi::{
    Completion, Destination, DestinationSetup, Lookup, PublishReply, PublishRequest, SlotKey, Subscription,
    SubscriptionSpec, TransportError, Withdrawal,
};

use crate::broker::{ConnectionState, DestinationState, WakeList, tell};
use crate::{consumer, outcome};

/// An open destination.
#[derive(Debug)]
pub(crate) struct InMemoryDestination {
    connection: Arc<ConnectionState>,
    state: Arc<DestinationState>,
    setup: DestinationSetup,
}

impl InMemoryDestination {
    pub(crate) fn new(
        connection: Arc<ConnectionState>,
        state: Arc<DestinationState>,
        setup: &DestinationSetup,
    ) -> Self {
        Self { connection, state, setup: setup.clone() }
    }
}

#[async_trait]
impl Destination for InMemoryDestination {
    /// The order of calls is the order of the log. The answer comes before this returns, unless a test holds it.
    fn publish(&self, request: PublishRequest, done: Completion<PublishReply>) {
        let message = request.message;
        if let Some(partition) = message.partition().filter(|p| *p >= self.state.partitions()) {
            done.resolve(outcome::no_such_partition(partition, self.state.partitions()));
            return;
        }
        let mut wakes = WakeList::default();
        let accepted = self.state.lock().publish(&self.connection, message, done, &mut wakes);
        wakes.wake();
        tell(&self.state, accepted, self.connection.runtime.as_ref());
    }

    /// Only publishes held by [`Broker::hold_publishes`](crate::Broker::hold_publishes) can be withdrawn. O(held).
    fn withdraw(&self, key: SlotKey) -> Withdrawal {
        if self.state.lock().withdraw(key) { Withdrawal::Withdrawn } else { Withdrawal::TooLate }
    }

    /// O(messages), under the destination's lock.
    async fn lookup(&self, id: &MessageId) -> Result<Lookup, CapabilityUnavailable> {
        let inner = self.state.lock();
        if inner.switches.down {
            return Ok(Lookup::Unknown);
        }
        Ok(match inner.model.find(id) {
            Some(place) => Lookup::Found(place.into()),
            None if inner.model.has_forgotten() || inner.may_still_come(id) => Lookup::Unknown,
            None => Lookup::Absent,
        })
    }

    async fn subscribe(&self, spec: SubscriptionSpec) -> Result<Box<dyn Subscription>, TransportError> {
        consumer::subscribe(&self.connection, &self.state, &self.setup, &spec)
    }
}
