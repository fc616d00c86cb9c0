//! The embedded broker as the suite sees it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use consign_core_api::spi::Transport;
use consign_core_api::{DeliveryGuarantee, OrderingScope};
use consign_in_memory::Broker;
use consign_testkit::{BrokerFault, FaultKind, Harness, NotOffered, Profile, Stored};

/// One embedded broker.
#[derive(Debug, Clone, Default)]
pub struct InMemoryHarness {
    broker: Broker,
}

impl InMemoryHarness {
    /// Makes a broker of its own.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

/// Returns every configuration under test.
#[must_use]
pub fn profiles() -> Vec<Profile> {
    vec![
        Profile::new("plain"),
        Profile::new("destination-ordered").ordering(OrderingScope::Destination),
        Profile::new("partition-ordered").ordering(OrderingScope::Partition).native("partitions", 4),
        Profile::new("key-ordered").ordering(OrderingScope::Key).native("partitions", 4),
        Profile::new("at-most-once").delivery(DeliveryGuarantee::AtMostOnce),
        Profile::new("deduplicating").native("deduplication_window", "5m"),
        Profile::new("briefly-deduplicating").native("deduplication_window", "1s"),
    ]
}

#[async_trait]
impl Harness for InMemoryHarness {
    fn adapter(&self) -> &'static str {
        "in-memory"
    }

    async fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn transport(&self) -> Arc<dyn Transport> {
        Arc::new(self.broker.clone())
    }

    async fn read_back(&self, _: &Profile, destination: &str) -> Result<Vec<Stored>, String> {
        let all = self.broker.stored(destination);
        Ok(all.iter().map(|held| Stored::new(held.message().clone(), Some(held.position()))).collect())
    }

    async fn inflict(&self, fault: BrokerFault<'_>) -> Result<(), NotOffered> {
        match fault {
            BrokerFault::Restart => self.broker.restart(),
            BrokerFault::Interrupt { destination, .. } => self.broker.interrupt(destination),
            BrokerFault::Revoke { destination, group } => {
                self.broker.revoke_within(destination, group, Duration::from_secs(5));
            }
            BrokerFault::Freeze => self.broker.hold_confirms(true),
            BrokerFault::Thaw => self.broker.hold_confirms(false),
            other => return Err(NotOffered(other.kind())),
        }
        Ok(())
    }

    fn offers(&self) -> &'static [FaultKind] {
        &[FaultKind::Restart, FaultKind::Freeze, FaultKind::Interrupt, FaultKind::Revoke]
    }
}
