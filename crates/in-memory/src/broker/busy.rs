//! Which partitions have something to hand out.

/// A set of partitions, one bit each.
#[derive(Debug)]
pub(crate) struct Busy(Vec<u64>);

impl Busy {
    pub(crate) fn none_of(partitions: usize) -> Self {
        Self(vec![0; partitions.div_ceil(64)])
    }

    pub(crate) fn set(&mut self, partition: usize, busy: bool) {
        if let Some(word) = self.0.get_mut(partition / 64) {
            let bit = 1 << (partition % 64);
            if busy { *word |= bit } else { *word &= !bit }
        }
    }

    /// The busy partitions from `turn` on, and then those before it. O(partitions / 64 + result).
    pub(crate) fn round(&self, turn: usize) -> impl Iterator<Item = usize> {
        let (mut from, mut to, mut then) = (turn, self.0.len() * 64, turn);
        std::iter::from_fn(move || {
            loop {
                if let Some(partition) = self.first(from, to) {
                    from = partition + 1;
                    return Some(partition);
                }
                if then == 0 {
                    return None;
                }
                (from, to, then) = (0, then, 0);
            }
        })
    }

    fn first(&self, from: usize, to: usize) -> Option<usize> {
        let mut mask = u64::MAX << (from % 64);
        for (at, word) in self.0.iter().enumerate().skip(from / 64) {
            let bits = word & mask;
            mask = u64::MAX;
            if bits != 0 {
                let partition = at * 64 + bits.trailing_zeros() as usize;
                return (partition < to).then_some(partition);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_round_visits_each_busy_partition_once_and_starts_at_its_turn(
            partitions in 1usize..300,
            busy in proptest::collection::btree_set(0usize..300, 0..40),
            turn in 0usize..310,
        ) {
            let busy: BTreeSet<_> = busy.into_iter().filter(|p| *p < partitions).collect();
            let mut set = Busy::none_of(partitions);
            (0..partitions).for_each(|p| set.set(p, true));
            (0..partitions).filter(|p| !busy.contains(p)).for_each(|p| set.set(p, false));
            let expected: Vec<_> = busy.range(turn..).chain(busy.range(..turn)).copied().collect();
            prop_assert_eq!(set.round(turn).collect::<Vec<_>>(), expected);
        }
    }
}
