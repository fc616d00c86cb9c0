//! The outstanding deliveries of a group, each under a tag that is used once.

use consign_core_api::spi::Epoch;

use super::Place;
use super::member::MemberId;

/// One delivery that is handed out and not answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outstanding {
    pub(crate) member: MemberId,
    pub(crate) epoch: Epoch,
    pub(crate) place: Place,
}

/// A slab. A tag is a slot and the number of its use; a slot whose numbers are used up is used no more. All O(1)
/// but [`drain_epoch`](Self::drain_epoch).
#[derive(Debug, Default)]
pub(crate) struct Deliveries {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot {
    uses: u32,
    held: Option<Outstanding>,
}

impl Deliveries {
    /// Keeps a delivery and returns its tag; `None` when there are 2^32 slots, which the bound on outstanding
    /// deliveries does not let happen.
    pub(crate) fn insert(&mut self, delivery: Outstanding) -> Option<u64> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                let index = u32::try_from(self.slots.len()).ok()?;
                self.slots.push(Slot { uses: 0, held: None });
                index
            }
        };
        let slot = self.slots.get_mut(index as usize)?;
        slot.held = Some(delivery);
        Some(u64::from(slot.uses) << 32 | u64::from(index))
    }

    pub(crate) fn get(&self, tag: u64) -> Option<&Outstanding> {
        let (uses, index) = parts(tag);
        self.slots.get(index as usize).filter(|slot| slot.uses == uses)?.held.as_ref()
    }

    pub(crate) fn remove(&mut self, tag: u64) -> Option<Outstanding> {
        let (uses, index) = parts(tag);
        let slot = self.slots.get_mut(index as usize).filter(|slot| slot.uses == uses)?;
        let held = slot.held.take()?;
        if let Some(next) = slot.uses.checked_add(1) {
            slot.uses = next;
            self.free.push(index);
        }
        Some(held)
    }

    /// Takes every delivery of an epoch out. O(slots).
    pub(crate) fn drain_epoch(&mut self, epoch: Epoch) -> Vec<Outstanding> {
        let tags: Vec<u64> = (0u64..)
            .zip(&self.slots)
            .filter(|(_, slot)| slot.held.is_some_and(|held| held.epoch == epoch))
            .map(|(index, slot)| u64::from(slot.uses) << 32 | index)
            .collect();
        tags.into_iter().filter_map(|tag| self.remove(tag)).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Outstanding> {
        self.slots.iter().filter_map(|slot| slot.held.as_ref())
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves of the tag")]
const fn parts(tag: u64) -> (u32, u32) {
    ((tag >> 32) as u32, tag as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_never_used_twice_and_a_slot_is() {
        let delivery = Outstanding {
            member: MemberId::new(1),
            epoch: Epoch::new(1),
            place: Place { partition: 0, offset: 0 },
        };
        let mut deliveries = Deliveries::default();
        let first = deliveries.insert(delivery).unwrap();
        assert!(deliveries.remove(first).is_some());
        let second = deliveries.insert(delivery).unwrap();
        assert_ne!(first, second);
        assert!(deliveries.remove(first).is_none() && deliveries.get(second).is_some());
        assert_eq!(deliveries.slots.len(), 1);
        deliveries.slots[0].uses = u32::MAX;
        let last = deliveries.iter().count();
        assert_eq!((last, deliveries.drain_epoch(Epoch::new(1)).len()), (1, 1));
        deliveries.insert(delivery).unwrap();
        assert_eq!(deliveries.slots.len(), 2, "a slot without numbers is not used again");
    }
}
