//! The client, and whether it is connected.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::Client;
use async_nats::connection::State;
use futures_util::Stream;
use tokio::sync::watch;

/// The client's events come through a channel that drops when it is full, so a change is looked for by itself too.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Hears of the client's events. Made before the client is.
#[derive(Debug, Clone)]
pub(crate) struct LinkEvents(Arc<Events>);

#[derive(Debug)]
struct Events {
    changes: watch::Sender<u64>,
    closed: AtomicBool,
}

impl LinkEvents {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Events { changes: watch::Sender::new(0), closed: AtomicBool::new(false) }))
    }

    /// Something changed about the connection.
    pub(crate) fn changed(&self) {
        self.0.changes.send_modify(|n| *n = n.wrapping_add(1));
    }

    /// Nobody needs the connection any more.
    pub(crate) fn close(&self) {
        self.0.closed.store(true, Ordering::Release);
        self.changed();
    }

    /// Tells whether nobody needs the connection any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::Acquire)
    }
}

/// A connected client. Cloning is cheap.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    client: Client,
    changes: watch::Receiver<u64>,
}

impl Link {
    pub(crate) fn new(client: Client, events: &LinkEvents) -> Self {
        Self { client, changes: events.0.changes.subscribe() }
    }

    pub(crate) const fn client(&self) -> &Client {
        &self.client
    }

    /// Tells whether the client is connected now.
    pub(crate) fn is_up(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Counts the connections that were made: while the count stays and the link is up, it is the same connection.
    pub(crate) fn generation(&self) -> u64 {
        self.client.statistics().connects.load(Ordering::Relaxed)
    }

    /// Waits until the link is up. Cancel safe. Not bounded: the caller bounds it.
    pub(crate) async fn up(&self) {
        self.until(Self::is_up).await;
    }

    /// Waits until this is no longer the connection of that generation. Cancel safe.
    pub(crate) async fn gone(&self, generation: u64) {
        self.until(|link| !link.is_up() || link.generation() != generation).await;
    }

    /// Tells of each connection that is gone, once, after it was made.
    pub(crate) fn losses(self) -> impl Stream<Item = ()> {
        futures_util::stream::unfold(self, |link| async move {
            link.up().await;
            let generation = link.generation();
            link.gone(generation).await;
            Some(((), link))
        })
    }

    async fn until(&self, holds: impl Fn(&Self) -> bool) {
        let mut changes = self.changes.clone();
        loop {
            changes.mark_unchanged();
            if holds(self) {
                return;
            }
            // A closed channel means that the client's events have ended; the state is still looked at.
            match tokio::time::timeout(LOOK_AGAIN, changes.changed()).await {
                Ok(Ok(())) | Err(_) => {}
                Ok(Err(_)) => tokio::time::sleep(LOOK_AGAIN).await,
            }
        }
    }
}
