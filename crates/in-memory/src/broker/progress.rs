//! How far a group is in one partition: what is settled, what was handed out, what came back.

use std::collections::{BTreeMap, VecDeque};

use tokio::time::Instant;

/// Everything below `floor` is settled (or was there before the group); everything from the end of `cells` on was
/// never handed out; between them each offset has its cell. Memory: one cell per offset between the oldest
/// unsettled one and the newest handed out, so no more than the destination's capacity.
#[derive(Debug)]
pub(crate) struct Progress {
    start: u64,
    floor: u64,
    cells: VecDeque<Cell>,
    returned: BTreeMap<u64, Option<Instant>>,
}

#[derive(Debug)]
struct Cell {
    settled: bool,
    deliveries: u32,
}

/// What comes next in a partition whose order is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Head {
    /// A message came back and is due.
    Again(u64),
    /// A message that was never handed out.
    New,
    /// A message came back and is not due yet; later ones wait for it.
    Wait(Instant),
    /// Nothing.
    Nothing,
}

impl Head {
    /// When a message is due that is not yet.
    pub(crate) const fn due(self) -> Option<Instant> {
        match self {
            Self::Wait(due) => Some(due),
            Self::Again(_) | Self::New | Self::Nothing => None,
        }
    }
}

impl Progress {
    /// Starts at an offset; what is below it is none of the group's business.
    pub(crate) const fn starting_at(start: u64) -> Self {
        Self { start, floor: start, cells: VecDeque::new(), returned: BTreeMap::new() }
    }

    /// The oldest offset that is not settled.
    pub(crate) const fn floor(&self) -> u64 {
        self.floor
    }

    /// The first offset that was never handed out.
    pub(crate) fn fresh(&self) -> u64 {
        self.floor + self.cells.len() as u64
    }

    /// Tells what comes next where order is kept: what came back, oldest first, then what is new.
    pub(crate) fn head(&self, end: u64, now: Instant) -> Head {
        match self.returned.first_key_value() {
            Some((_, Some(due))) if *due > now => Head::Wait(*due),
            Some((offset, _)) => Head::Again(*offset),
            None if self.fresh() < end => Head::New,
            None => Head::Nothing,
        }
    }

    /// Hands out the next new offset. Its delivery count is 1.
    pub(crate) fn hand_out_fresh(&mut self) -> u64 {
        let offset = self.fresh();
        self.cells.push_back(Cell { settled: false, deliveries: 1 });
        offset
    }

    /// Hands out an offset once more and returns its delivery count.
    pub(crate) fn hand_out_again(&mut self, offset: u64) -> u32 {
        self.returned.remove(&offset);
        self.cell(offset).map_or(1, |cell| {
            cell.deliveries = cell.deliveries.saturating_add(1);
            cell.deliveries
        })
    }

    /// Puts an offset back to its place, not to be handed out before `due`. Only where order is kept.
    pub(crate) fn put_back(&mut self, offset: u64, due: Option<Instant>) {
        self.returned.insert(offset, due);
    }

    /// Settles an offset that is handed out. Amortized O(1).
    pub(crate) fn settle(&mut self, offset: u64) {
        if let Some(cell) = self.cell(offset) {
            cell.settled = true;
        }
        while self.cells.front().is_some_and(|cell| cell.settled) {
            self.cells.pop_front();
            self.floor += 1;
        }
    }

    /// Every settled offset from `base` on, in order. O(result + cells).
    pub(crate) fn settled(&self, base: u64) -> impl Iterator<Item = u64> {
        let above =
            (self.floor..).zip(&self.cells).filter(|(_, cell)| cell.settled).map(|(offset, _)| offset);
        (self.start.max(base)..self.floor).chain(above)
    }

    fn cell(&mut self, offset: u64) -> Option<&mut Cell> {
        let index = usize::try_from(offset.checked_sub(self.floor)?).ok()?;
        self.cells.get_mut(index)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_came_back_goes_before_what_is_new_and_blocks_it_until_it_is_due() {
        let now = Instant::now();
        let mut progress = Progress::starting_at(5);
        assert_eq!(progress.head(5, now), Head::Nothing);
        assert_eq!((progress.hand_out_fresh(), progress.hand_out_fresh()), (5, 6));
        let due = now + Duration::from_secs(1);
        progress.put_back(6, None);
        progress.put_back(5, Some(due));
        assert_eq!(progress.head(9, now), Head::Wait(due));
        assert_eq!(progress.head(9, due), Head::Again(5));
        assert_eq!(progress.hand_out_again(5), 2);
        assert_eq!(progress.head(9, now), Head::Again(6));
        assert_eq!(progress.hand_out_again(6), 2);
        assert_eq!(progress.head(9, now), Head::New);
    }

    #[test]
    fn settling_out_of_order_moves_the_floor_only_over_what_is_settled() {
        let mut progress = Progress::starting_at(0);
        for _ in 0..3 {
            progress.hand_out_fresh();
        }
        progress.settle(1);
        assert_eq!((progress.floor(), progress.settled(0).collect::<Vec<_>>()), (0, vec![1]));
        progress.settle(0);
        assert_eq!((progress.floor(), progress.fresh()), (2, 3));
        progress.settle(2);
        assert_eq!((progress.floor(), progress.settled(1).collect::<Vec<_>>()), (3, vec![1, 2]));
    }
}
