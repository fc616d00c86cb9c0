//! The order of first handlings.

use std::collections::{HashMap, HashSet};

use super::{Counts, Lie, LieKind};

/// What each group handled first of each key, in the order of handling.
#[derive(Debug, Default)]
pub(super) struct Order<'h> {
    seen: HashSet<(&'h str, &'h str)>,
    first: HashMap<(&'h str, &'h str), Vec<(u64, &'h str)>>,
}

impl<'h> Order<'h> {
    pub(super) fn handled(&mut self, group: &'h str, key: &'h str, n: u64, id: &'h str) {
        if self.seen.insert((group, id)) {
            self.first.entry((group, key)).or_default().push((n, id));
        }
    }

    /// Only CONFIRMED ones have a place in the order; the others are counted.
    pub(super) fn check(&self, confirmed: impl Fn(&str) -> bool, counts: &mut Counts, lies: &mut Vec<Lie>) {
        for ((group, key), handled) in &self.first {
            let (mut latest, mut latest_confirmed) = (None, None);
            for (n, id) in handled {
                if confirmed(id) {
                    if latest_confirmed > Some(*n) {
                        let after = latest_confirmed.unwrap_or_default();
                        let text =
                            format!("number {n} of key {key:?} was first handled by {group} after {after}");
                        lies.push(Lie::new(LieKind::OutOfOrder, Some(id), text));
                    }
                    latest_confirmed = latest_confirmed.max(Some(*n));
                } else if latest > Some(*n) {
                    counts.unconfirmed_out_of_order += 1;
                }
                latest = latest.max(Some(*n));
            }
        }
    }
}
