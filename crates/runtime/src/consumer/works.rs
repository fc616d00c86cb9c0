//! Where the driver keeps its deliveries: slots with generations, so that a late reply finds nobody.

use std::num::NonZeroU64;

use consign_core_api::spi::SlotKey;

/// Names a delivery that a driver holds. Never used twice, up to 2^32 uses of one slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct WorkKey {
    index: u32,
    generation: u32,
}

impl WorkKey {
    pub(crate) const fn new(index: u32, generation: u32) -> Self {
        Self { index, generation }
    }

    pub(super) const fn index(self) -> usize {
        self.index as usize
    }

    pub(super) const fn generation(self) -> u32 {
        self.generation
    }

    /// Returns the key as completions carry it.
    pub(super) fn slot(self) -> SlotKey {
        let number = (u64::from(self.generation) << 32) | (u64::from(self.index) + 1);
        SlotKey::new(NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN))
    }

    #[expect(clippy::cast_possible_truncation, reason = "the halves of the key are 32 bits wide")]
    pub(super) fn from_slot(slot: SlotKey) -> Option<Self> {
        let number = slot.get().get();
        let index = (number as u32).checked_sub(1)?;
        Some(Self { index, generation: (number >> 32) as u32 })
    }
}

/// Slots of deliveries. All operations but the iteration are O(1).
#[derive(Debug)]
pub(super) struct Works<W> {
    slots: Vec<(u32, Option<W>)>,
    free: Vec<u32>,
}

impl<W> Works<W> {
    pub(super) const fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    pub(super) const fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Puts in what `make` makes of its key.
    pub(super) fn insert_with(&mut self, make: impl FnOnce(WorkKey) -> W) -> WorkKey {
        if let Some(index) = self.free.pop()
            && let Some((generation, slot)) = self.slots.get_mut(index as usize)
        {
            let key = WorkKey { index, generation: *generation };
            *slot = Some(make(key));
            return key;
        }
        let key = WorkKey { index: u32::try_from(self.slots.len()).unwrap_or(u32::MAX), generation: 0 };
        self.slots.push((0, Some(make(key))));
        key
    }

    pub(super) fn get(&self, key: WorkKey) -> Option<&W> {
        let (generation, slot) = self.slots.get(key.index())?;
        slot.as_ref().filter(|_| *generation == key.generation)
    }

    pub(super) fn get_mut(&mut self, key: WorkKey) -> Option<&mut W> {
        let (generation, slot) = self.slots.get_mut(key.index())?;
        slot.as_mut().filter(|_| *generation == key.generation)
    }

    pub(super) fn remove(&mut self, key: WorkKey) -> Option<W> {
        let (generation, slot) = self.slots.get_mut(key.index())?;
        if *generation != key.generation {
            return None;
        }
        let work = slot.take()?;
        *generation = generation.wrapping_add(1);
        self.free.push(key.index);
        Some(work)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (WorkKey, &W)> {
        (0_u32..).zip(&self.slots).filter_map(|(index, (generation, slot))| {
            slot.as_ref().map(|work| (WorkKey { index, generation: *generation }, work))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_a_former_use_finds_nobody() {
        let mut works = Works::new();
        let one = works.insert_with(|_| "one");
        assert_eq!(works.remove(one), Some("one"));
        let two = works.insert_with(|_| "two");
        assert_eq!((one.index(), works.len()), (two.index(), 1));
        assert_eq!(works.get(one), None);
        assert_eq!(works.remove(one), None);
        assert_eq!(works.get(two), Some(&"two"));
        assert_eq!(works.iter().map(|(key, _)| key).collect::<Vec<_>>(), [two]);
    }

    #[test]
    fn keys_cross_a_completion() {
        for key in [WorkKey::new(0, 0), WorkKey::new(7, u32::MAX), WorkKey::new(u32::MAX - 1, 3)] {
            assert_eq!(WorkKey::from_slot(key.slot()), Some(key));
        }
    }
}
