//! The right to publish one message.

use super::class::Class;
use super::queue::Source;
use super::refused::{Refusal, Refused};
use super::slot::Slot;
use super::units::Units;

/// The right to publish one message: a slot of its destination, and its place in the process-wide count and bytes.
///
/// Dropping it gives everything back that was not given back before. That may wake one who waits, and is otherwise
/// a few atomic operations. It may be moved to another thread, and lives as long as it must: it borrows nothing.
#[derive(Debug)]
#[must_use = "dropping a permit gives its room away"]
pub struct Permit {
    slot: Slot,
    source: Source,
    class: Class,
    size: u64,
    counted: bool,
}

impl Permit {
    /// Makes a permit of a slot and units that were taken. A class that was closed in the meantime is refused, and
    /// everything is given back.
    pub(super) fn new(mut slot: Slot, source: Source, class: Class, size: u64) -> Result<Self, Refused> {
        let units = Units::message(size);
        if slot.ledger().tally(class).enter(units) {
            return Ok(Self { slot, source, class, size, counted: true });
        }
        slot.free();
        slot.ledger().give(source, units);
        Err(Refused::new(Refusal::Closed(class)))
    }

    /// The publish has its verdict: returns the slot and the count now. The bytes stay charged until the permit is
    /// dropped, because a client may still hold them after AMBIGUOUS. A second call has no effect.
    pub fn verdict(&mut self) {
        if std::mem::take(&mut self.counted) {
            self.slot.free();
            self.give(Units::ONE);
        }
    }

    /// Returns on whose behalf the message is published.
    #[must_use]
    pub const fn class(&self) -> Class {
        self.class
    }

    /// Returns how many bytes are charged.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The tally comes last, so that a drained class has nothing left anywhere.
    fn give(&self, units: Units) {
        let ledger = self.slot.ledger();
        ledger.give(self.source, units);
        ledger.tally(self.class).leave(units);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.slot.free();
        self.give(if self.counted { Units::message(self.size) } else { Units::bytes_only(self.size) });
    }
}
