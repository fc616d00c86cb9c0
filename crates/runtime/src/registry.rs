//! The consumers that run, for shutdown and health.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};

use crate::health::ConsumerHealth;
use crate::shutdown::LeftDelivery;

/// What shutdown and health need of a consumer.
pub(crate) trait Running: Send + Sync {
    /// Stops it by `within`. Twice or concurrently: harmless.
    fn stop(&self, within: Duration) -> BoxFuture<'static, Stopped>;

    /// Tells how it is.
    fn health(&self) -> ConsumerHealth;

    /// Tells whether it ended and can be forgotten.
    fn is_finished(&self) -> bool;
}

/// What a stopped consumer, or all of them, left behind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stopped {
    pub(crate) settled: u64,
    pub(crate) unsettled: Vec<LeftDelivery>,
    pub(crate) timed_out: bool,
}

/// The consumers that run.
#[derive(Default)]
pub(crate) struct Consumers(Mutex<Vec<Arc<dyn Running>>>);

impl Consumers {
    /// Adds a consumer and forgets those that ended without being counted on.
    pub(crate) fn add(&self, consumer: Arc<dyn Running>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| !known.is_finished());
        all.push(consumer);
    }

    fn all(&self) -> Vec<Arc<dyn Running>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stops all at once, by `within`.
    pub(crate) async fn stop_all(&self, within: Duration) -> Stopped {
        let mut sum = Stopped::default();
        for stopped in join_all(self.all().iter().map(|consumer| consumer.stop(within))).await {
            sum.settled += stopped.settled;
            sum.unsettled.extend(stopped.unsettled);
            sum.timed_out |= stopped.timed_out;
        }
        sum
    }

    /// Tells how each is.
    pub(crate) fn health(&self) -> Vec<ConsumerHealth> {
        self.all().iter().map(|consumer| consumer.health()).collect()
    }
}
