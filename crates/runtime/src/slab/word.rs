//! A slot's generation and phase in one atomic word.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

use consign_core_api::spi::SlotKey;

/// Where a publish is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Free = 0,
    Queued = 1,
    HandedOver = 2,
    Resolved = 3,
}

/// What came of an attempt to give the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    /// The verdict is the caller's to give.
    Won(Phase),
    /// Somebody else gave it.
    Late,
    /// The slot belongs to another publish by now.
    Stale,
}

pub(super) struct Word(AtomicU64);

const PHASES: u64 = 0xff;

impl Word {
    pub(super) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Starts a use of the slot and returns its generation.
    pub(super) fn occupy(&self) -> u32 {
        let word = self.0.load(Ordering::Relaxed);
        self.0.store((word & !PHASES) | Phase::Queued as u64, Ordering::SeqCst);
        generation(word)
    }

    /// Ends a use of the slot: the next one has another generation.
    pub(super) fn free(&self) {
        let word = self.0.load(Ordering::Relaxed);
        let next = u64::from(generation(word).wrapping_add(1)) << 8;
        self.0.store(next | Phase::Free as u64, Ordering::SeqCst);
    }

    /// Returns the phase, if the slot is still in this generation.
    pub(super) fn phase(&self, of: u32) -> Option<Phase> {
        let word = self.0.load(Ordering::SeqCst);
        (generation(word) == of).then(|| phase(word))
    }

    /// Returns the generation and the phase.
    pub(super) fn load(&self) -> (u32, Phase) {
        let word = self.0.load(Ordering::SeqCst);
        (generation(word), phase(word))
    }

    pub(super) fn hand_over(&self, of: u32) -> bool {
        let at = u64::from(of) << 8;
        let (queued, handed) = (at | Phase::Queued as u64, at | Phase::HandedOver as u64);
        self.0.compare_exchange(queued, handed, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Takes a publish that was handed over back to `Queued`, for another attempt.
    pub(super) fn requeue(&self, of: u32) -> bool {
        let at = u64::from(of) << 8;
        let (handed, queued) = (at | Phase::HandedOver as u64, at | Phase::Queued as u64);
        self.0.compare_exchange(handed, queued, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Takes the slot to `Resolved` if it is in `only` (or, with `None`, in any phase before).
    pub(super) fn claim(&self, of: u32, only: Option<Phase>) -> Claim {
        let mut word = self.0.load(Ordering::SeqCst);
        loop {
            if generation(word) != of {
                return Claim::Stale;
            }
            let before = phase(word);
            match before {
                Phase::Free => return Claim::Stale,
                Phase::Resolved => return Claim::Late,
                Phase::Queued | Phase::HandedOver if only.is_some_and(|only| only != before) => {
                    return Claim::Late;
                }
                Phase::Queued | Phase::HandedOver => {}
            }
            let next = (word & !PHASES) | Phase::Resolved as u64;
            match self.0.compare_exchange_weak(word, next, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return Claim::Won(before),
                Err(now) => word = now,
            }
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the generation is the word above the phase, 32 bits wide"
)]
const fn generation(word: u64) -> u32 {
    (word >> 8) as u32
}

const fn phase(word: u64) -> Phase {
    match word & PHASES {
        1 => Phase::Queued,
        2 => Phase::HandedOver,
        3 => Phase::Resolved,
        _ => Phase::Free,
    }
}

/// Joins generation and index into a key. Never zero, since the index is counted from one.
pub(super) fn key(generation: u32, index: u32) -> SlotKey {
    let number = (u64::from(generation) << 32) | (u64::from(index) + 1);
    SlotKey::new(NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN))
}

/// Splits a key into generation and index.
#[expect(clippy::cast_possible_truncation, reason = "the halves of the key are 32 bits wide")]
pub(super) fn parts(key: SlotKey) -> Option<(u32, u32)> {
    let number = key.get().get();
    let index = (number as u32).checked_sub(1)?;
    Some(((number >> 32) as u32, index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_one_use_of_one_slot() {
        for (generation, index) in [(0, 0), (1, 0), (u32::MAX, 7), (3, u32::MAX - 1)] {
            assert_eq!(parts(key(generation, index)), Some((generation, index)));
        }
    }

    #[test]
    fn only_the_first_claim_wins_and_a_freed_slot_is_stale() {
        let word = Word::new();
        let generation = word.occupy();
        assert!(word.hand_over(generation) && !word.hand_over(generation));
        assert_eq!(word.claim(generation, Some(Phase::Queued)), Claim::Late);
        assert_eq!(word.claim(generation, None), Claim::Won(Phase::HandedOver));
        assert_eq!(word.claim(generation, None), Claim::Late);
        word.free();
        assert_eq!(word.claim(generation, None), Claim::Stale);
        assert_ne!(word.occupy(), generation);
    }

    #[test]
    fn a_given_up_publish_cannot_be_handed_over() {
        let word = Word::new();
        let generation = word.occupy();
        assert_eq!(word.claim(generation, Some(Phase::Queued)), Claim::Won(Phase::Queued));
        assert!(!word.hand_over(generation));
    }
}
