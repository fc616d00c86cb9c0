//! Connecting: no I/O, nothing spawned, and yet a connection that can be down or closed.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use consign_core_api::capability::Capabilities;
use consign_core_api::error::Problem;
use consign_core_api::spi::{
    ConnectContext, Connection, ConnectionHealth, Destination, DestinationSetup, Transport, TransportError,
};
use tokio::time::Instant;

use crate::broker::{Behaviour, ConnectionState};
use crate::config::Settings;
use crate::native::Broker;
use crate::outcome::Cut;
use crate::{capability, profile, topology};

#[async_trait]
impl Transport for Broker {
    fn kind(&self) -> &'static str {
        "in-memory"
    }

    fn validate(&self, setup: &DestinationSetup) -> Vec<Problem> {
        profile::validate(setup, &self.shared.behaviour)
    }

    fn capabilities(&self, setup: &DestinationSetup) -> Capabilities {
        // Set-ups with a fault do not come here; one that does is answered as if its native settings were absent.
        let settings = Settings::read(setup).unwrap_or_default();
        capability::capabilities(setup, &settings)
    }

    /// Never waits. Fails while the broker is down, and where a script has a mistake.
    async fn connect(&self, context: ConnectContext) -> Result<Arc<dyn Connection>, TransportError> {
        if let Behaviour::Scripted(script) = &self.shared.behaviour {
            let problems = script.problems();
            if !problems.is_empty() {
                return Err(TransportError::Refused(problems));
            }
        }
        if self.shared.is_down() {
            return Err(TransportError::Failed(Cut::Down.failure()));
        }
        let state = ConnectionState::new(Arc::clone(&self.shared), context.clock);
        Ok(Arc::new(InMemoryConnection { state: Arc::new(state) }))
    }
}

/// A connection to the embedded broker.
#[derive(Debug)]
struct InMemoryConnection {
    state: Arc<ConnectionState>,
}

impl InMemoryConnection {
    fn owed(&self) -> usize {
        self.state.shared.all().iter().map(|d| d.lock().owed_to(self.state.id)).sum()
    }
}

#[async_trait]
impl Connection for InMemoryConnection {
    async fn open(&self, setup: &DestinationSetup) -> Result<Arc<dyn Destination>, Vec<Problem>> {
        topology::open(&self.state, setup)
    }

    async fn health(&self) -> ConnectionHealth {
        if self.state.is_closed() {
            ConnectionHealth::Down(Cut::Closed.failure())
        } else if self.state.shared.is_down() {
            ConnectionHealth::Down(Cut::Down.failure())
        } else {
            ConnectionHealth::Up
        }
    }

    /// Dropping the future leaves the connection refusing work, and what is owed to it unanswered until it is dropped
    /// or closed again.
    async fn close(&self, within: Duration) {
        self.state.refuse_work();
        let end = Instant::now().checked_add(within);
        loop {
            let let_go = self.state.shared.let_go.notified();
            tokio::pin!(let_go);
            let_go.as_mut().enable();
            if self.owed() == 0 {
                break;
            }
            let waited = match end {
                Some(end) => tokio::time::timeout_at(end, let_go).await.is_ok(),
                None => {
                    let_go.await;
                    true
                }
            };
            if !waited {
                break;
            }
        }
        self.state.close();
    }
}
