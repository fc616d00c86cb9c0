//! Which deliveries are out, per unit and epoch: shared by the subscription and its settler.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_nats::Subject;
use consign_core_api::spi::{DeliveryToken, Epoch, UnitId};
use tokio::sync::Notify;

/// The deliveries that are out. Bounded by what the units pull.
pub(crate) struct Ledger {
    units: Vec<Unit>,
}

struct Unit {
    state: Mutex<State>,
    /// Something was settled, paused or resumed: the unit may pull anew.
    changed: Notify,
}

#[derive(Default)]
struct State {
    epoch: Epoch,
    out: HashMap<u64, Subject>,
    next_tag: u64,
    paused: bool,
}

impl Ledger {
    pub(super) fn new(units: usize) -> Self {
        let unit = || Unit { state: Mutex::default(), changed: Notify::new() };
        Self { units: std::iter::repeat_with(unit).take(units).collect() }
    }

    /// Notes a delivery and names it.
    pub(super) fn add(&self, unit: UnitId, reply: Subject) -> Option<DeliveryToken> {
        let mut state = self.state(unit)?;
        let tag = state.next_tag;
        state.next_tag = tag.wrapping_add(1);
        state.out.insert(tag, reply);
        Some(DeliveryToken::new(unit, state.epoch, tag))
    }

    /// Takes a delivery out, to settle it. `None` for one of an older epoch, and for one that is out no more.
    pub(crate) fn take(&self, token: DeliveryToken) -> Option<Subject> {
        let taken = {
            let mut state = self.state(token.unit())?;
            if state.epoch == token.epoch() { state.out.remove(&token.tag()) } else { None }
        };
        if taken.is_some() {
            self.notify(token.unit());
        }
        taken
    }

    /// Looks at a delivery that is still out.
    pub(crate) fn peek(&self, token: DeliveryToken) -> Option<Subject> {
        let state = self.state(token.unit())?;
        if state.epoch == token.epoch() { state.out.get(&token.tag()).cloned() } else { None }
    }

    /// Stops or resumes pulls of a unit.
    pub(crate) fn pause(&self, unit: UnitId, paused: bool) {
        if let Some(mut state) = self.state(unit) {
            state.paused = paused;
        }
        self.notify(unit);
    }

    /// Ends the epoch of a unit and starts the next one; returns what was out.
    pub(super) fn turn(&self, unit: UnitId) -> Vec<Subject> {
        let Some(mut state) = self.state(unit) else { return Vec::new() };
        state.epoch = state.epoch.next();
        std::mem::take(&mut state.out).into_values().collect()
    }

    pub(super) fn epoch(&self, unit: UnitId) -> Epoch {
        self.state(unit).map_or_else(Epoch::default, |state| state.epoch)
    }

    /// Returns how many deliveries are out; `None` while the unit is paused.
    pub(super) fn out(&self, unit: UnitId) -> Option<usize> {
        self.state(unit).filter(|state| !state.paused).map(|state| state.out.len())
    }

    /// Waits until something was settled, paused or resumed. Cancel safe: one change is remembered.
    pub(super) async fn changed(&self, unit: UnitId) {
        match self.unit(unit) {
            Some(unit) => unit.changed.notified().await,
            None => std::future::pending().await,
        }
    }

    fn notify(&self, unit: UnitId) {
        if let Some(unit) = self.unit(unit) {
            unit.changed.notify_one();
        }
    }

    fn unit(&self, unit: UnitId) -> Option<&Unit> {
        self.units.get(usize::try_from(unit.get()).ok()?)
    }

    fn state(&self, unit: UnitId) -> Option<MutexGuard<'_, State>> {
        Some(self.unit(unit)?.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: UnitId = UnitId::new(0);

    #[test]
    fn a_delivery_is_settled_once_and_only_in_its_epoch() {
        let ledger = Ledger::new(1);
        let first = ledger.add(UNIT, Subject::from("a")).unwrap();
        assert!(ledger.take(first).is_some());
        assert!(ledger.take(first).is_none(), "settled twice");
        let old = ledger.add(UNIT, Subject::from("b")).unwrap();
        assert_eq!(ledger.turn(UNIT), [Subject::from("b")]);
        let new = ledger.add(UNIT, Subject::from("c")).unwrap();
        assert!(ledger.peek(old).is_none() && ledger.take(old).is_none(), "stale");
        let mixed = DeliveryToken::new(UNIT, old.epoch(), new.tag());
        assert!(ledger.peek(mixed).is_none() && ledger.take(mixed).is_none(), "the epoch counts by itself");
        assert!(ledger.peek(new).is_some());
    }

    #[test]
    fn units_that_do_not_exist_are_harmless() {
        let ledger = Ledger::new(1);
        let odd = UnitId::new(7);
        assert!(ledger.add(odd, Subject::from("a")).is_none());
        ledger.pause(odd, true);
        assert!(ledger.out(odd).is_none() && ledger.turn(odd).is_empty());
    }

    #[test]
    fn a_paused_unit_pulls_nothing() {
        let ledger = Ledger::new(1);
        ledger.pause(UNIT, true);
        assert_eq!(ledger.out(UNIT), None);
        ledger.pause(UNIT, false);
        assert_eq!(ledger.out(UNIT), Some(0));
    }
}
