//! One trait that is told of everything that happens.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use consign_core_api::spi::{PublishReply, UnitId};
use consign_core_api::{
    Attempt, DestinationName, Failure, GroupName, MessageId, MessagePosition, PublishOutcome,
    SettlementOutcome,
};

/// Is told of every event. Calls come from whatever task or thread makes them, and must not block.
///
/// A panic is caught and logged: other observers, outcomes and consumers go on.
pub trait Observer: Send + Sync + 'static {
    /// Takes note of an event.
    fn observe(&self, event: &Observed<'_>);
}

/// Something that happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Observed<'a> {
    /// Admission let a publish in.
    Admitted {
        /// The destination.
        destination: &'a DestinationName,
        /// Its size in bytes.
        size: usize,
    },
    /// A publish was given to its adapter.
    Sent {
        /// The destination.
        destination: &'a DestinationName,
        /// The message.
        id: Option<&'a MessageId>,
    },
    /// A publish ended. Told exactly once for each publish, also if nobody waits for it any more.
    Outcome {
        /// The destination.
        destination: &'a DestinationName,
        /// The message.
        id: Option<&'a MessageId>,
        /// How it ended.
        outcome: &'a PublishOutcome,
    },
    /// A broker's answer came after the verdict, which stands.
    LateResolution {
        /// The destination, where it is still known.
        destination: Option<&'a DestinationName>,
        /// The message, where it is still known.
        id: Option<&'a MessageId>,
        /// The answer.
        reply: &'a PublishReply,
    },
    /// A delivery came.
    Received {
        /// Whose delivery.
        delivery: DeliveryInfo<'a>,
    },
    /// A delivery of another group, or a malformed header of ours, was passed over.
    Filtered {
        /// Whose delivery.
        delivery: DeliveryInfo<'a>,
        /// What was passed over.
        what: &'static str,
    },
    /// A handler failed.
    HandlerFailed {
        /// Whose delivery.
        delivery: DeliveryInfo<'a>,
        /// Which attempt failed.
        attempt: Attempt,
        /// Why.
        failure: &'a Failure,
    },
    /// A settlement ended.
    Settled {
        /// Whose delivery.
        delivery: DeliveryInfo<'a>,
        /// How it ended.
        outcome: &'a SettlementOutcome,
    },
    /// A failed message is tried again.
    Retried {
        /// Whose delivery.
        delivery: DeliveryInfo<'a>,
        /// The attempt that comes.
        attempt: Attempt,
        /// How long it waits.
        after: Duration,
        /// `in place`, `redelivery` or `copy`.
        how: &'static str,
    },
    /// A copy in the dead letter is confirmed.
    DeadLettered {
        /// Whose delivery.
        delivery: DeliveryInfo<'a>,
        /// The dead-letter destination.
        dead_letter: &'a DestinationName,
        /// Why it went there.
        failure: &'a Failure,
    },
    /// A message was discarded, as its profile says.
    Discarded {
        /// Whose delivery.
        delivery: DeliveryInfo<'a>,
        /// Why.
        failure: &'a Failure,
    },
    /// An unprocessed delivery was given back (shutdown, revocation).
    Released {
        /// Whose delivery.
        delivery: DeliveryInfo<'a>,
    },
    /// A unit stands still, unsettled, until somebody looks.
    Halted {
        /// Whose delivery.
        delivery: DeliveryInfo<'a>,
        /// Why.
        failure: &'a Failure,
    },
    /// The stream of deliveries broke and is being rebuilt.
    Interrupted {
        /// The destination.
        destination: &'a DestinationName,
        /// The group.
        group: &'a GroupName,
        /// Why.
        failure: &'a Failure,
    },
    /// A unit was assigned to a consumer or taken from it.
    Assignment {
        /// The destination.
        destination: &'a DestinationName,
        /// The group.
        group: &'a GroupName,
        /// The unit.
        unit: UnitId,
        /// `assigned`, `revoking` or `lost`.
        what: &'static str,
    },
}

/// Which delivery an event is about.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct DeliveryInfo<'a> {
    /// The destination that it was delivered from.
    pub destination: &'a DestinationName,
    /// The group.
    pub group: &'a GroupName,
    /// The message.
    pub id: Option<&'a MessageId>,
    /// Where it stands.
    pub position: Option<&'a MessagePosition>,
}

impl<'a> DeliveryInfo<'a> {
    pub(crate) const fn new(
        destination: &'a DestinationName,
        group: &'a GroupName,
        id: Option<&'a MessageId>,
        position: Option<&'a MessagePosition>,
    ) -> Self {
        Self { destination, group, id, position }
    }
}

/// All observers of one `Messaging`. Tracing is always one of them.
#[derive(Clone, Default)]
pub(crate) struct Observers(Arc<[Arc<dyn Observer>]>);

impl Observers {
    pub(crate) fn new(observers: Vec<Arc<dyn Observer>>) -> Self {
        Self(observers.into())
    }

    /// Tells an event in the middle of a verdict, perhaps on an adapter's thread, or in the task of a consumer: there, an
    /// observer that panics must cost nobody his outcome or his consumer, and the others not their event.
    pub(crate) fn tell(&self, event: &Observed<'_>) {
        trace(event);
        for observer in self.0.iter() {
            if catch_unwind(AssertUnwindSafe(|| observer.observe(event))).is_err() {
                tracing::error!(target: "consign", "an observer panicked");
            }
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} observers", self.0.len())
    }
}

/// Writes an event to `tracing`: what needs attention as a warning, the rest for debugging.
fn trace(event: &Observed<'_>) {
    use tracing::{debug, trace, warn};
    match event {
        Observed::Outcome { outcome: PublishOutcome::Confirmed(_), .. }
        | Observed::Admitted { .. }
        | Observed::Sent { .. }
        | Observed::Received { .. } => trace!(target: "consign", ?event),
        Observed::Outcome { outcome: PublishOutcome::Ambiguous(_), .. }
        | Observed::Settled { outcome: SettlementOutcome::Unknown(_), .. }
        | Observed::LateResolution { .. }
        | Observed::DeadLettered { .. }
        | Observed::Discarded { .. }
        | Observed::Halted { .. }
        | Observed::Interrupted { .. } => warn!(target: "consign", ?event),
        _ => debug!(target: "consign", ?event),
    }
}
