//! Whose a unit is: assignment, revocation, loss, interruption.

use std::collections::BTreeMap;

use consign_core_api::Failure;
use consign_core_api::spi::{DeliveryToken, Epoch, UnitId};
use consign_core_api::time::Moment;

use super::work::{Stage, Work};
use super::{Driver, Due};
use crate::consumer::works::WorkKey;
use crate::observer::Observed;

/// A unit that this driver reads.
#[derive(Debug)]
pub(super) struct Unit {
    epoch: Epoch,
    revoking: bool,
}

impl Driver {
    /// Tells whether a delivery belongs to the current epoch of its unit. An adapter that has one unit for ever need not
    /// announce it.
    pub(super) fn owns(&mut self, token: DeliveryToken) -> bool {
        let current = self.units.get(&token.unit()).map(|unit| unit.epoch);
        if current.is_none_or(|epoch| epoch < token.epoch()) {
            self.assigned(token.unit(), token.epoch());
        }
        current.is_none_or(|epoch| epoch <= token.epoch())
    }

    /// Tells whether nothing of this unit is to be started any more.
    pub(super) fn is_draining(&self, unit: UnitId) -> bool {
        self.stopping.is_some() || self.units.get(&unit).is_some_and(|unit| unit.revoking)
    }

    pub(super) fn assigned(&mut self, unit: UnitId, epoch: Epoch) {
        if self.is_former(unit, epoch) {
            return;
        }
        let before = self.units.insert(unit, Unit { epoch, revoking: false });
        if let Some(before) = before.filter(|before| before.epoch < epoch) {
            self.lose_all(unit, before.epoch);
        }
        self.lanes.forget_unit(unit);
        self.tell_assignment(unit, "assigned");
    }

    /// Starts nothing more of the unit, gives back what has not started, and lets what runs finish until `drain_by`.
    pub(super) fn revoking(&mut self, unit: UnitId, epoch: Epoch, drain_by: Moment) {
        if self.is_former(unit, epoch) {
            return;
        }
        self.units.insert(unit, Unit { epoch, revoking: true });
        self.tell_assignment(unit, "revoking");
        for key in self.of_unit(unit, epoch, Work::is_at_rest) {
            self.give_back(key);
        }
        self.timers.set(drain_by, Due::Drained(unit, epoch));
    }

    /// The time of a revoked unit is over, whether or not the adapter says so.
    pub(super) fn drained(&mut self, unit: UnitId, epoch: Epoch) {
        if self.units.get(&unit).is_some_and(|known| known.epoch == epoch && known.revoking) {
            self.lose_all(unit, epoch);
        }
    }

    pub(super) fn lost(&mut self, unit: UnitId, epoch: Epoch) {
        if self.units.get(&unit).is_some_and(|known| known.epoch <= epoch) {
            self.units.remove(&unit);
            self.lanes.forget_unit(unit);
        }
        self.tell_assignment(unit, "lost");
        self.lose_all(unit, epoch);
    }

    /// Everything that is held may come again.
    pub(super) fn interrupted(&mut self, failure: &Failure) {
        self.tell(&Observed::Interrupted {
            destination: self.source.here.name(),
            group: &self.source.group,
            failure,
        });
        let mut units: BTreeMap<UnitId, Epoch> = BTreeMap::new();
        for (_, work) in self.works.iter() {
            let latest = units.entry(work.token.unit()).or_default();
            *latest = work.token.epoch().max(*latest);
        }
        for (unit, epoch) in units {
            self.lanes.forget_unit(unit);
            self.lose_all(unit, epoch);
        }
    }

    /// Forgets what the broker has taken back. A handler that runs is told; its place in the lane stays taken until it
    /// has finished, so that on an ordered destination the message does not run twice at once here. Without an order each
    /// delivery has a lane of its own, and it may. A settlement that is on its way has its answer from the adapter.
    fn lose_all(&mut self, unit: UnitId, epoch: Epoch) {
        for key in self.of_unit(unit, epoch, |_| true) {
            let Some(work) = self.works.get_mut(key) else { continue };
            match &work.stage {
                Stage::Handling(_, cancellation) => {
                    cancellation.cancel();
                    work.stale = true;
                }
                Stage::Ready(_) => work.stale = true,
                Stage::SettlingFirst(_)
                | Stage::HandlingSettled(_)
                | Stage::Settling(_)
                | Stage::GivingBack
                | Stage::Between => {}
                Stage::Waiting(_)
                | Stage::Delayed(_)
                | Stage::BackingOff(_)
                | Stage::HeldForRedelivery(_)
                | Stage::Copying(_)
                | Stage::Halted => self.lose(key),
            }
        }
    }

    /// Returns the deliveries of a unit up to an epoch, those that came first in front.
    fn of_unit(&self, unit: UnitId, epoch: Epoch, which: impl Fn(&Work) -> bool) -> Vec<WorkKey> {
        let of = |work: &Work| work.token.unit() == unit && work.token.epoch() <= epoch;
        let fit = self.works.iter().filter(|(_, work)| of(work) && which(work));
        let mut found: Vec<_> = fit.map(|(key, work)| (work.received, work.token.tag(), key)).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, _, key)| key).collect()
    }

    /// A delivery came to rest while its unit is going or everything stops: it is given back.
    pub(super) fn after_rest(&mut self, key: WorkKey) {
        let unit = self.works.get(key).filter(|work| work.is_at_rest()).map(|work| work.token.unit());
        if unit.is_some_and(|unit| self.is_draining(unit)) {
            self.give_back(key);
        }
    }

    /// Tells whether a later epoch of the unit has begun.
    fn is_former(&self, unit: UnitId, epoch: Epoch) -> bool {
        self.units.get(&unit).is_some_and(|known| known.epoch > epoch)
    }

    fn tell_assignment(&self, unit: UnitId, what: &'static str) {
        let (destination, group) = (self.source.here.name(), &self.source.group);
        self.tell(&Observed::Assignment { destination, group, unit, what });
    }
}
