//! A connection: one client, one inbox for each kind of request, and the destinations that use them.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::jetstream::{Context, context::ContextBuilder};
use async_trait::async_trait;
use consign_core_api::error::Problem;
use consign_core_api::failure::{Failure, FailureCategory};
use consign_core_api::spi::{Connection, ConnectionHealth, Destination, DestinationSetup};
use consign_core_api::time::Clock;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::codes;
use crate::config::NatsConfig;
use crate::exchange::{Exchange, Inbox, LaneWatch, Link, LinkEvents};
use crate::publisher::{Publisher, Publishing};
use crate::settlement::Settling;
use crate::topology;

/// How often a close looks whether everything was answered.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// What everything on one connection shares.
pub(crate) struct Shared {
    pub(crate) link: Link,
    pub(crate) jetstream: Context,
    pub(crate) publishes: Arc<Inbox<Publishing>>,
    pub(crate) settlements: Arc<Inbox<Settling>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) request_timeout: Duration,
    events: LinkEvents,
    lanes: Mutex<Vec<LaneWatch>>,
    receivers: Mutex<Vec<AbortHandle>>,
}

impl Shared {
    /// Tells whether the connection was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.events.is_closed()
    }

    /// Notes a lane, so that a close waits for it.
    pub(crate) fn watch(&self, lane: LaneWatch) {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.retain(|lane| !lane.is_finished());
        lanes.push(lane);
    }

    fn lanes(&self) -> Vec<LaneWatch> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn is_quiet(&self) -> bool {
        self.lanes().iter().all(LaneWatch::is_empty)
            && self.publishes.live() == 0
            && self.settlements.live() == 0
    }

    fn end(&self) {
        for lane in self.lanes() {
            lane.abort();
        }
        self.publishes.close();
        self.settlements.close();
        for receiver in self.receivers.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            receiver.abort();
        }
    }
}

/// A connection to NATS.
pub(crate) struct NatsConnection(Arc<Shared>);

impl NatsConnection {
    /// Subscribes the two inboxes.
    pub(crate) async fn start(
        link: Link,
        config: &NatsConfig,
        clock: Arc<dyn Clock>,
        events: LinkEvents,
    ) -> Result<Arc<dyn Connection>, Failure> {
        let (publishes, first) = listen::<Publishing>(&link).await?;
        let (settlements, second) = listen::<Settling>(&link).await?;
        let jetstream = ContextBuilder::new().timeout(config.request_timeout).build(link.client().clone());
        Ok(Arc::new(Self(Arc::new(Shared {
            link,
            jetstream,
            publishes,
            settlements,
            clock,
            request_timeout: config.request_timeout,
            events,
            lanes: Mutex::default(),
            receivers: Mutex::new(vec![first, second]),
        }))))
    }
}

async fn listen<X: Exchange>(link: &Link) -> Result<(Arc<Inbox<X>>, AbortHandle), Failure> {
    let client = link.client();
    let inbox = Inbox::new(&client.new_inbox());
    let answers = client.subscribe(inbox.wildcard()).await.map_err(|error| {
        Failure::new(
            FailureCategory::TransientInfrastructure,
            codes::NATS_CONNECT_FAILED,
            format!("the client took no subscription: {}", error.kind()),
        )
    })?;
    let task = tokio::spawn(Arc::clone(&inbox).receive(answers, link.clone()));
    Ok((inbox, task.abort_handle()))
}

#[async_trait]
impl Connection for NatsConnection {
    async fn open(&self, setup: &DestinationSetup) -> Result<Arc<dyn Destination>, Vec<Problem>> {
        let prepared = topology::prepare(&self.0, setup).await?;
        Ok(Arc::new(Publisher::start(&self.0, setup, prepared)))
    }

    async fn health(&self) -> ConnectionHealth {
        let down = |code, text| {
            ConnectionHealth::Down(Failure::new(FailureCategory::TransientInfrastructure, code, text))
        };
        if self.0.is_closed() {
            down(codes::TRANSPORT_CLOSED, "the connection was closed")
        } else if self.0.link.is_up() {
            ConnectionHealth::Up
        } else {
            down(codes::NATS_DISCONNECTED, "the connection is being rebuilt")
        }
    }

    async fn close(&self, within: Duration) {
        let shared = &self.0;
        let until = Instant::now() + within.min(consign_core_api::time::LONGEST);
        shared.events.close();
        while !shared.is_quiet() && Instant::now() < until {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        shared.end();
        // Writes what the client still holds, then ends it; a client that is not connected sleeps from now on.
        let _ = tokio::time::timeout_at(until, shared.link.client().drain()).await;
    }
}

/// Without a close nothing is waited for: what is unanswered is resolved as such, and the client ends.
impl Drop for NatsConnection {
    fn drop(&mut self) {
        self.0.events.close();
        self.0.end();
    }
}

impl fmt::Debug for NatsConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsConnection").field("up", &self.0.link.is_up()).finish_non_exhaustive()
    }
}
