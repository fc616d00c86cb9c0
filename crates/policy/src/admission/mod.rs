//! Admission: how much may be in flight, decided before a byte is sent.
//!
//! A publish asks the [`Gate`] of its destination and gets a [`Permit`] or a [`Refused`]. Four checks, in this order:
//! the message's size, whether its [`Class`] takes new work, a slot of the destination, and the process-wide count
//! and bytes. Only the last waits, and no longer than a bound.
//!
//! | file | what it holds |
//! |---|---|
//! | `limits` | the process-wide limits, checked |
//! | `class` | who publishes, and what each has in flight |
//! | `gate` | the four checks of one destination |
//! | `permit`, `refused` | the two answers |
//! | `slot` | the slots of one destination |
//! | `ledger` | the process-wide side: pools, queue, tallies |
//! | `pool`, `tally`, `units` | atomic words |
//! | `queue`, `wait`, `timer` | waiting |
//! | `sync` | what loom stands in for |

mod class;
mod gate;
mod ledger;
mod limits;
mod permit;
mod pool;
mod queue;
mod refused;
mod slot;
mod sync;
mod tally;
#[cfg(test)]
mod tests;
mod timer;
mod units;
mod wait;

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

use consign_core_api::MaxPayload;

pub use class::{Class, ClassUsage, Usage};
pub use gate::Gate;
pub use limits::AdmissionLimits;
pub use permit::Permit;
pub use refused::{Refusal, Refused};

use ledger::Ledger;
use slot::Slots;

/// The process-wide side of admission. A cheap clone; clones share everything.
///
/// ```
/// use std::num::NonZeroUsize;
/// use consign_core_api::MaxPayload;
/// use consign_policy::admission::{Admission, AdmissionLimits, Class};
///
/// let admission = Admission::new(AdmissionLimits::default());
/// let gate = admission.destination(NonZeroUsize::MIN, MaxPayload::default());
/// let permit = gate.try_admit(Class::External, 100).expect("nothing is in flight");
/// let refused = gate.try_admit(Class::External, 100).expect_err("the only slot is taken");
/// assert_eq!(refused.code(), "DESTINATION_IN_FLIGHT_LIMIT_EXCEEDED");
/// drop(permit);
/// assert!(gate.try_admit(Class::External, 100).is_ok());
/// ```
#[derive(Clone)]
pub struct Admission {
    limits: AdmissionLimits,
    ledger: Arc<Ledger>,
}

impl Admission {
    /// Starts with nothing in flight and all classes open.
    #[must_use]
    pub fn new(limits: AdmissionLimits) -> Self {
        Self { limits, ledger: Arc::new(Ledger::new(&limits)) }
    }

    /// Opens the gate of a destination: at most `in_flight` publishes at once, of whatever class, and no message
    /// above `max_payload`. Each call makes slots of its own, so call it once per destination and clone the gate.
    #[must_use]
    pub fn destination(&self, in_flight: NonZeroUsize, max_payload: MaxPayload) -> Gate {
        let largest = |class| max_payload.get().min(self.limits.largest_message(class));
        let (ordinary, internal) = (largest(Class::External), largest(Class::Internal));
        let slots = Slots::new(in_flight, ordinary, internal, Arc::clone(&self.ledger));
        Gate::new(Arc::new(slots), self.limits.wait())
    }

    /// Refuses a class from now on with `SHUTTING_DOWN`, and so answers those of it who wait. What is in flight stays.
    /// A class is not opened again; a second call has no effect.
    pub fn close(&self, class: Class) {
        self.ledger.close(class);
    }

    /// Tells whether a class was closed.
    #[must_use]
    pub fn is_closed(&self, class: Class) -> bool {
        self.ledger.tally(class).is_closed()
    }

    /// Returns what is in flight.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.ledger.usage()
    }

    /// Returns the limits.
    #[must_use]
    pub const fn limits(&self) -> &AdmissionLimits {
        &self.limits
    }

    /// Waits until nothing of a class is in flight. After [`close`](Self::close) it stays so. Bytes may be charged on
    /// (see [`Permit::verdict`]). Without a bound of its own: bound it by the shutdown's deadline. Dropping the future
    /// has no effect.
    pub async fn drained(&self, class: Class) {
        self.ledger.tally(class).drained().await;
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission")
            .field("limits", &self.limits)
            .field("usage", &self.usage())
            .finish_non_exhaustive()
    }
}
