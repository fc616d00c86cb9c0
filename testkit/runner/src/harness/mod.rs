//! The brokers as the contract suite sees them.

/// The harness that the suite's own tests use: one file, so that both run the same profiles.
#[cfg(feature = "in-memory")]
#[path = "../../../suite/tests/support/in_memory.rs"]
pub mod in_memory;
#[cfg(feature = "nats")]
pub mod nats;

use std::sync::Arc;

use consign_testkit::Contract;

use crate::Result;
use crate::adapters::Adapter;

/// Starts an adapter's broker and returns its contract, with all its profiles.
///
/// # Errors
/// If the adapter is not built in, or its broker cannot be had.
pub async fn contract(adapter: Adapter) -> Result<Contract> {
    adapter.require()?;
    match adapter {
        #[cfg(feature = "in-memory")]
        Adapter::InMemory => Ok(with(Arc::new(in_memory::InMemoryHarness::new()), in_memory::profiles())),
        #[cfg(feature = "nats")]
        Adapter::Nats => Ok(with(Arc::new(nats::NatsHarness::start().await?), nats::NatsHarness::profiles())),
        #[allow(unreachable_patterns, reason = "reached where a feature is off, after `require` has refused")]
        other => Err(crate::Error::Adapter(format!("{other} is not built in"))),
    }
}

fn with(harness: Arc<dyn consign_testkit::Harness>, profiles: Vec<consign_testkit::Profile>) -> Contract {
    profiles.into_iter().fold(Contract::shared(harness), Contract::profile)
}
