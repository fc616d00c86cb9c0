//! The gate of one destination: the four checks, in their order.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use super::class::Class;
use super::permit::Permit;
use super::queue::Answer;
use super::refused::{Refusal, Refused};
use super::slot::{Slot, Slots};
use super::timer::within;
use super::units::Units;
use super::wait::Wait;

/// The gate of one destination. A cheap clone; clones share the destination's slots.
#[derive(Clone)]
pub struct Gate {
    slots: Arc<Slots>,
    wait: Duration,
}

impl Gate {
    pub(super) const fn new(slots: Arc<Slots>, wait: Duration) -> Self {
        Self { slots, wait }
    }

    /// Admits a message of `size` bytes (payload, key and headers), or refuses it. Checks, in this order: its size,
    /// whether its class takes new work, a slot of the destination, the process-wide count and bytes. Only for the
    /// last it waits: at most for the smaller of the limits' `wait` and what is left of the publish's deadline, in
    /// the order of arrival.
    ///
    /// Without waiters it takes a few atomic operations and neither locks nor allocates. Dropping the future gives
    /// back whatever it took. Waiting needs a tokio runtime with a timer.
    ///
    /// # Errors
    /// `MESSAGE_TOO_LARGE`, `SHUTTING_DOWN` (also when the class is closed during the wait),
    /// `DESTINATION_IN_FLIGHT_LIMIT_EXCEEDED`, `IN_FLIGHT_LIMIT_EXCEEDED`.
    pub async fn admit(
        &self,
        class: Class,
        size: usize,
        rest_of_deadline: Duration,
    ) -> Result<Permit, Refused> {
        let (slot, bytes) = self.take_slot(class, size)?;
        let units = Units::message(bytes);
        if let Some(source) = self.slots.ledger().take(class, units) {
            return Permit::new(slot, source, class, bytes);
        }
        let bound = self.wait.min(rest_of_deadline);
        if bound.is_zero() {
            return Err(self.refuse(slot, class, size));
        }
        // Boxed, so that the timer does not make every admission larger.
        Box::pin(self.wait_for_room(slot, class, size, units, bound)).await
    }

    async fn wait_for_room(
        &self,
        slot: Slot,
        class: Class,
        size: usize,
        units: Units,
        bound: Duration,
    ) -> Result<Permit, Refused> {
        let mut wait = Wait::new(self.slots.ledger(), class, units);
        let answer = match within(bound, &mut wait).await {
            Some(answer) => Some(answer),
            None => wait.give_up(),
        };
        match answer {
            Some(Answer::Taken(source)) => Permit::new(slot, source, class, units.bytes()),
            Some(Answer::Closed) => Err(give_back(slot, Refusal::Closed(class))),
            None => Err(self.refuse(slot, class, size)),
        }
    }

    /// Admits a message as [`admit`](Self::admit) does, without waiting.
    ///
    /// # Errors
    /// As [`admit`](Self::admit). It does not overtake those who wait.
    pub fn try_admit(&self, class: Class, size: usize) -> Result<Permit, Refused> {
        let (slot, bytes) = self.take_slot(class, size)?;
        match self.slots.ledger().take(class, Units::message(bytes)) {
            Some(source) => Permit::new(slot, source, class, bytes),
            None => Err(self.refuse(slot, class, size)),
        }
    }

    /// Returns how many slots are taken, those of messages that wait for room included.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.slots.taken()
    }

    /// Returns how many slots there are.
    #[must_use]
    pub fn limit(&self) -> NonZeroUsize {
        self.slots.limit()
    }

    /// Returns the size of the largest message that passes the first check.
    #[must_use]
    pub fn largest_message(&self, class: Class) -> usize {
        self.slots.largest(class)
    }

    fn take_slot(&self, class: Class, size: usize) -> Result<(Slot, u64), Refused> {
        let limit = self.slots.largest(class);
        if size > limit {
            return Err(Refused::new(Refusal::TooLarge { size, limit }));
        }
        if self.slots.ledger().tally(class).is_closed() {
            return Err(Refused::new(Refusal::Closed(class)));
        }
        let slot = self
            .slots
            .take()
            .ok_or_else(|| Refused::new(Refusal::Destination { limit: self.slots.limit().get() }))?;
        Ok((slot, size as u64))
    }

    fn refuse(&self, slot: Slot, class: Class, size: usize) -> Refused {
        let count = self.slots.ledger().count_is_full(class);
        give_back(slot, if count { Refusal::Count } else { Refusal::Bytes { size } })
    }
}

/// A refusal after the slot was taken: the slot is free before the refusal exists.
fn give_back(slot: Slot, refusal: Refusal) -> Refused {
    drop(slot);
    Refused::new(refusal)
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("in_flight", &self.in_flight())
            .field("limit", &self.limit())
            .finish_non_exhaustive()
    }
}
