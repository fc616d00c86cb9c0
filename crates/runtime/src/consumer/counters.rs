//! What a consumer has done so far.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// What a consumer has done so far. Read while it runs, it is a sum of moments, not one moment.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[non_exhaustive]
        pub struct ConsumerCounters {
            $($(#[$doc])* pub $name: u64,)+
        }

        #[derive(Debug, Default)]
        pub(super) struct Counters {
            $(pub(super) $name: Counter,)+
        }

        impl Counters {
            pub(super) fn read(&self) -> ConsumerCounters {
                ConsumerCounters { $($name: self.$name.get(),)+ }
            }
        }
    };
}

counters! {
    /// Deliveries that came.
    received,
    /// Handler runs that failed, panicked or timed out. Cancelled ones are none.
    failed,
    /// Deliveries that are SETTLED on the broker's evidence.
    settled,
    /// Settlements without proof: SETTLEMENT_UNKNOWN.
    unknown,
    /// Failed messages that were tried again: in place, by redelivery, by a copy.
    retried,
    /// Copies that are CONFIRMED in a dead letter.
    dead_lettered,
    /// Messages that were discarded, as their profile says.
    discarded,
    /// Deliveries of other groups that were passed over, and malformed headers of ours.
    filtered,
    /// Unprocessed deliveries that were given back, or taken back by the broker.
    released,
    /// Replies to settlements that came after nobody waited for them.
    late,
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(super) fn one(&self) {
        self.add(1);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
