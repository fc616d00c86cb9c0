//! Faults at random places, the same for the same seed.

use std::num::NonZeroU32;
use std::time::Duration;

use consign_core_api::limit::OutOfRange;
use consign_core_api::spi::partition_of;
use consign_core_api::time::Delay;
use fastrand::Rng;

use crate::broker::DeliveryFault;
use crate::script::{PublishFault, SettleFault};

/// Where randomness starts. The same seed, and the same calls in the same order per destination, give the same faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a number with a name")]
pub struct Seed(pub u64);

/// How often which fault happens.
///
/// Publishes, settlements and deliveries of each destination draw from sequences of their own, so that how they
/// interleave does not matter.
///
/// ```
/// use consign_in_memory::{Broker, Chaos, Seed};
/// let chaos = Chaos::new(Seed(42)).ambiguous(0.05)?.rejected(0.02)?.redelivered(0.1)?;
/// let broker = Broker::chaotic(chaos);
/// assert!(Chaos::new(Seed(42)).ambiguous(1.5).is_err());
/// # drop(broker);
/// # Ok::<(), consign_core_api::limit::OutOfRange>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use = "chaos does nothing until a broker is made of it"]
pub struct Chaos {
    seed: Seed,
    ambiguous: f64,
    no_reply: f64,
    rejected: f64,
    late: f64,
    delay: Duration,
    settle_reply_lost: f64,
    redelivered: f64,
    interrupted: f64,
}

impl Chaos {
    /// Starts without faults.
    pub const fn new(seed: Seed) -> Self {
        Self {
            seed,
            ambiguous: 0.0,
            no_reply: 0.0,
            rejected: 0.0,
            late: 0.0,
            delay: Duration::ZERO,
            settle_reply_lost: 0.0,
            redelivered: 0.0,
            interrupted: 0.0,
        }
    }

    /// Loses the reply of this share of publishes at once; a fair coin decides whether the message is stored.
    ///
    /// # Errors
    /// [`OutOfRange`] where the share is not from 0 to 1, or the faults of publishes together are above 1.
    pub fn ambiguous(mut self, share: f64) -> Result<Self, OutOfRange> {
        self.ambiguous = checked(share)?;
        self.publishes_checked()
    }

    /// Never answers this share of publishes; a fair coin decides whether the message is stored.
    ///
    /// # Errors
    /// As [`ambiguous`](Self::ambiguous).
    pub fn no_reply(mut self, share: f64) -> Result<Self, OutOfRange> {
        self.no_reply = checked(share)?;
        self.publishes_checked()
    }

    /// Refuses this share of publishes.
    ///
    /// # Errors
    /// As [`ambiguous`](Self::ambiguous).
    pub fn rejected(mut self, share: f64) -> Result<Self, OutOfRange> {
        self.rejected = checked(share)?;
        self.publishes_checked()
    }

    /// Confirms this share of publishes only after `delay`.
    ///
    /// # Errors
    /// As [`ambiguous`](Self::ambiguous), and for a delay above 30 days.
    pub fn confirmed_late(mut self, share: f64, delay: Duration) -> Result<Self, OutOfRange> {
        self.late = checked(share)?;
        self.delay = Delay::new(delay)?.get();
        self.publishes_checked()
    }

    /// Loses this share of settlements and their replies: SETTLEMENT_UNKNOWN, and the message comes again.
    ///
    /// # Errors
    /// [`OutOfRange`] where the share is not from 0 to 1.
    pub fn settle_reply_lost(mut self, share: f64) -> Result<Self, OutOfRange> {
        self.settle_reply_lost = checked(share)?;
        Ok(self)
    }

    /// Delivers this share of messages a second time although the first delivery is not answered, as if its lease had
    /// run out: the first can no longer be settled. Only first deliveries are drawn.
    ///
    /// # Errors
    /// [`OutOfRange`] where the share is not from 0 to 1, or together with [`interrupted`](Self::interrupted) above 1.
    pub fn redelivered(mut self, share: f64) -> Result<Self, OutOfRange> {
        self.redelivered = checked(share)?;
        together(self.redelivered + self.interrupted)?;
        Ok(self)
    }

    /// Breaks the group's stream after this share of first deliveries.
    ///
    /// # Errors
    /// As [`redelivered`](Self::redelivered).
    pub fn interrupted(mut self, share: f64) -> Result<Self, OutOfRange> {
        self.interrupted = checked(share)?;
        together(self.redelivered + self.interrupted)?;
        Ok(self)
    }

    fn publishes_checked(self) -> Result<Self, OutOfRange> {
        together(self.ambiguous + self.no_reply + self.rejected + self.late)?;
        Ok(self)
    }

    /// The dice of one destination.
    pub(crate) fn dice(&self, destination: &str) -> Dice {
        let place = u64::from(partition_of(destination.as_bytes(), NonZeroU32::MAX));
        let rng = |kind: u64| Rng::with_seed(self.seed.0 ^ (place << 8) ^ kind);
        Dice { chaos: self.clone(), publishes: rng(1), settlements: rng(2), deliveries: rng(3) }
    }
}

fn checked(share: f64) -> Result<f64, OutOfRange> {
    // `contains` is false for what is not a number.
    if (0.0..=1.0).contains(&share) {
        Ok(share)
    } else {
        Err(OutOfRange::new("share", share.to_string(), "0 to 1, together with the other shares of its kind"))
    }
}

/// Checks a sum of shares, which may be above 1 by no more than its rounding.
fn together(sum: f64) -> Result<f64, OutOfRange> {
    checked(if sum <= 1.0 + 1e-9 { sum.min(1.0) } else { sum })
}

/// The random sequences of one destination.
#[derive(Debug)]
pub(crate) struct Dice {
    chaos: Chaos,
    publishes: Rng,
    settlements: Rng,
    deliveries: Rng,
}

impl Dice {
    pub(crate) fn publish(&mut self) -> Option<PublishFault> {
        // Both are drawn every time, so that a changed share changes no later draw.
        let (mut at, stored) = (self.publishes.f64(), self.publishes.bool());
        let chaos = &self.chaos;
        let faults = [
            (
                chaos.ambiguous,
                if stored { PublishFault::AmbiguousStored } else { PublishFault::AmbiguousLost },
            ),
            (chaos.no_reply, if stored { PublishFault::NoReplyStored } else { PublishFault::NoReplyLost }),
            (chaos.rejected, PublishFault::Refused),
            (chaos.late, PublishFault::ConfirmedLate(chaos.delay)),
        ];
        faults.into_iter().find_map(|(share, fault)| {
            at -= share;
            (at < 0.0).then_some(fault)
        })
    }

    pub(crate) fn settlement(&mut self) -> Option<SettleFault> {
        (self.settlements.f64() < self.chaos.settle_reply_lost).then_some(SettleFault::ReplyLost)
    }

    pub(crate) fn delivery(&mut self) -> Option<DeliveryFault> {
        let at = self.deliveries.f64();
        let (redelivered, interrupted) = (self.chaos.redelivered, self.chaos.interrupted);
        if at < redelivered {
            Some(DeliveryFault::Redelivered)
        } else {
            (at < redelivered + interrupted).then_some(DeliveryFault::Interrupted)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_that_are_no_probability_are_refused() {
        let new = || Chaos::new(Seed(1));
        for odd in [-0.1, 1.1, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(new().ambiguous(odd).is_err(), "{odd}");
            assert!(new().no_reply(odd).is_err(), "{odd}");
            assert!(new().rejected(odd).is_err(), "{odd}");
            assert!(new().confirmed_late(odd, Duration::ZERO).is_err(), "{odd}");
            assert!(new().settle_reply_lost(odd).is_err(), "{odd}");
            assert!(new().redelivered(odd).is_err(), "{odd}");
            assert!(new().interrupted(odd).is_err(), "{odd}");
        }
        assert!(new().ambiguous(0.6).unwrap().rejected(0.5).is_err());
        assert!(new().redelivered(0.6).unwrap().interrupted(0.5).is_err());
        let whole = new().ambiguous(0.7).and_then(|c| c.rejected(0.2)).and_then(|c| c.no_reply(0.1));
        assert!(whole.is_ok(), "rounding is no mistake");
        assert!(new().confirmed_late(0.1, Duration::MAX).is_err());
        assert!(new().ambiguous(0.0).is_ok() && new().ambiguous(1.0).is_ok());
    }

    fn draws(seed: u64, destination: &str) -> Vec<Option<PublishFault>> {
        let chaos = Chaos::new(Seed(seed)).ambiguous(0.3).unwrap().rejected(0.2).unwrap();
        let mut dice = chaos.dice(destination);
        (0..1000).map(|_| dice.publish()).collect()
    }

    #[test]
    fn the_same_seed_draws_the_same_faults_and_another_draws_others() {
        assert_eq!(draws(42, "orders"), draws(42, "orders"));
        assert_ne!(draws(42, "orders"), draws(43, "orders"));
        assert_ne!(draws(42, "orders"), draws(42, "receipts"));
    }

    #[test]
    fn shares_are_kept_and_ambiguous_publishes_are_stored_by_a_fair_coin() {
        let all = draws(7, "orders");
        let count = |fault| all.iter().filter(|f| **f == Some(fault)).count();
        let (stored, lost) = (count(PublishFault::AmbiguousStored), count(PublishFault::AmbiguousLost));
        assert!((100..200).contains(&stored) && (100..200).contains(&lost), "{stored} {lost}");
        assert!((140..260).contains(&count(PublishFault::Refused)));
    }

    #[test]
    fn a_share_of_zero_never_happens_and_a_share_of_one_always() {
        let mut never = Chaos::new(Seed(1)).dice("orders");
        let mut always =
            Chaos::new(Seed(1)).settle_reply_lost(1.0).unwrap().redelivered(1.0).unwrap().dice("o");
        for _ in 0..1000 {
            assert_eq!((never.publish(), never.settlement(), never.delivery()), (None, None, None));
            assert_eq!(always.settlement(), Some(SettleFault::ReplyLost));
            assert_eq!(always.delivery(), Some(DeliveryFault::Redelivered));
        }
    }
}
