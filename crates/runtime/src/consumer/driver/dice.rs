//! Randomness for back-offs. It needs to differ between processes, nothing more.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// SplitMix64, seeded by the standard library's source of hash keys.
#[derive(Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new() -> Self {
        Self(RandomState::new().build_hasher().finish())
    }

    /// Returns a number from 0 to below 1.
    pub(super) fn roll(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let bits = u32::try_from((mixed ^ (mixed >> 31)) >> 32).unwrap_or(0);
        f64::from(bits) / (f64::from(u32::MAX) + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rolls_spread_over_zero_to_one() {
        let mut dice = Dice::new();
        let rolls: Vec<f64> = (0..1000).map(|_| dice.roll()).collect();
        assert!(rolls.iter().all(|roll| (0.0..1.0).contains(roll)));
        assert!(rolls.iter().any(|roll| *roll < 0.1) && rolls.iter().any(|roll| *roll > 0.9));
    }
}
