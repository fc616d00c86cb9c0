//! Deliveries and settlements.

use std::collections::{HashMap, HashSet};

use consign_core_api::SettlementLevel;

use super::super::history::Delivery;
use super::{Counts, Lie, LieKind};

/// What each group had of each message.
#[derive(Debug, Default)]
pub(super) struct Consuming<'h> {
    spots: HashMap<(&'h str, &'h str), Spot>,
    handled: HashSet<(&'h str, &'h str)>,
    drained: HashSet<(&'h str, &'h str)>,
}

/// One message at one place, as one group sees it.
#[derive(Debug, Default)]
struct Spot {
    delivered: bool,
    handled: bool,
    settled: Option<SettlementLevel>,
}

/// What stands at two places is two messages; without places, the id is all there is.
fn place(delivery: &Delivery) -> &str {
    delivery.position.as_deref().unwrap_or(&delivery.id)
}

impl<'h> Consuming<'h> {
    fn spot(&mut self, delivery: &'h Delivery) -> &mut Spot {
        self.spots.entry((&delivery.group, place(delivery))).or_default()
    }

    pub(super) fn delivered(&mut self, delivery: &'h Delivery, counts: &mut Counts, lies: &mut Vec<Lie>) {
        let spot = self.spot(delivery);
        counts.redelivered += u64::from(spot.delivered);
        spot.delivered = true;
        // Taken: what comes a third time is not counted twice.
        match spot.settled.take() {
            Some(SettlementLevel::Processed) => counts.processed_redelivered += 1,
            Some(level) => {
                let text = format!("delivered to {} again after it was settled as {level}", delivery.group);
                lies.push(Lie::new(LieKind::CommittedRedelivered, Some(&delivery.id), text));
            }
            None => {}
        }
    }

    pub(super) fn handled(&mut self, delivery: &'h Delivery) {
        self.spot(delivery).handled = true;
        self.handled.insert((&delivery.group, &delivery.id));
    }

    pub(super) fn settled(
        &mut self,
        delivery: &'h Delivery,
        level: Option<SettlementLevel>,
        counts: &mut Counts,
        lies: &mut Vec<Lie>,
    ) {
        let spot = self.spot(delivery);
        if !spot.handled {
            let text = format!("settled for {} and not handled before", delivery.group);
            lies.push(Lie::new(LieKind::SettledUnhandled, Some(&delivery.id), text));
        }
        match level {
            Some(level) => {
                spot.settled = Some(level);
                counts.settled += 1;
            }
            None => counts.settlement_unknown += 1,
        }
    }

    pub(super) fn drained(&mut self, group: &'h str, destination: &'h str) {
        self.drained.insert((group, destination));
    }

    pub(super) fn check_handled(&self, id: &str, destination: &str, lies: &mut Vec<Lie>) {
        let of_it = self.drained.iter().filter(|(_, drained)| *drained == destination);
        for (group, _) in of_it.filter(|(group, _)| !self.handled.contains(&(*group, id))) {
            let text = format!("{group} was drained and never handled it");
            lies.push(Lie::new(LieKind::NeverHandled, Some(id), text));
        }
    }
}
