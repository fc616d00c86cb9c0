//! The states of one delivery. A transition consumes the state before it, so that nothing is settled twice or
//! before its time:
//!
//! ```compile_fail,E0599
//! use consign_core_api::settlement::state::Processing;
//! fn too_early(processing: Processing) { let _ = processing.settle(); }
//! ```
//! ```compile_fail,E0382
//! use consign_core_api::settlement::state::HandlerSucceeded;
//! fn twice(done: HandlerSucceeded) { let _ = done.settle(); let _ = done.settle(); }
//! ```
//! This guards the runtime against its own mistakes, from one [`Received`] on. It does not guard a delivery against code
//! that holds its token, because a life can be started from a token more than once; that is why no handler is given one.

use super::{SettledBecause, SettlementOutcome, SettlementUnknown};
use crate::failure::Failure;
use crate::guarantee::DeliveryGuarantee;
use crate::outcome::Confirmation;
use crate::spi::{DeliveryToken, SettlementReply};

/// A delivery arrived.
#[derive(Debug)]
#[must_use]
pub struct Received(DeliveryToken);

/// Its payload is being decoded.
#[derive(Debug)]
#[must_use]
pub struct Decoding(DeliveryToken);

/// Its handler runs.
#[derive(Debug)]
#[must_use]
pub struct Processing(DeliveryToken);

/// Its handler succeeded.
#[derive(Debug)]
#[must_use]
pub struct HandlerSucceeded(DeliveryToken);

/// Decoding or handling failed; a retry decision follows.
#[derive(Debug)]
#[must_use]
pub struct Failed {
    token: DeliveryToken,
    failure: Failure,
}

/// The settlement is on its way, or about to be.
#[derive(Debug)]
#[must_use]
pub struct SettlementSending {
    token: DeliveryToken,
    because: SettledBecause,
}

/// The right to hand one settlement to an adapter. Only a state that may be settled gives it.
#[derive(Debug)]
#[must_use]
pub struct SettlePermit {
    token: DeliveryToken,
    because: SettledBecause,
}

impl Received {
    /// Starts the life of a delivery. The runtime calls it, once for each token that it was delivered.
    pub const fn new(token: DeliveryToken) -> Self {
        Self(token)
    }

    /// Returns the token, to give the delivery back without settling it.
    #[must_use]
    pub const fn token(&self) -> DeliveryToken {
        self.0
    }

    /// Starts to decode.
    pub const fn decode(self) -> Decoding {
        Decoding(self.0)
    }

    /// The delivery cannot be handled at all, such as one that came too often.
    pub const fn fail(self, failure: Failure) -> Failed {
        Failed { token: self.0, failure }
    }

    /// Settles before handling, which only [`DeliveryGuarantee::AtMostOnce`] allows; otherwise the state is given
    /// back.
    ///
    /// # Errors
    /// The state itself, where the guarantee does not allow it.
    pub fn before_handling(
        self,
        guarantee: DeliveryGuarantee,
    ) -> Result<(SettlementSending, SettlePermit), Self> {
        match guarantee {
            DeliveryGuarantee::AtMostOnce => Ok(sending(self.0, SettledBecause::BeforeHandling)),
            DeliveryGuarantee::AtLeastOnce => Err(self),
        }
    }
}

impl Decoding {
    /// The payload was decoded.
    pub const fn decoded(self) -> Processing {
        Processing(self.0)
    }

    /// The payload could not be decoded.
    pub const fn fail(self, failure: Failure) -> Failed {
        Failed { token: self.0, failure }
    }
}

impl Processing {
    /// The handler succeeded.
    pub const fn succeed(self) -> HandlerSucceeded {
        HandlerSucceeded(self.0)
    }

    /// The handler failed, panicked or ran out of time.
    pub const fn fail(self, failure: Failure) -> Failed {
        Failed { token: self.0, failure }
    }

    /// The handler was cancelled, which is no failure; the token gives the delivery back.
    #[must_use]
    pub const fn cancel(self) -> DeliveryToken {
        self.0
    }
}

impl HandlerSucceeded {
    /// Settles.
    pub const fn settle(self) -> (SettlementSending, SettlePermit) {
        sending(self.0, SettledBecause::Handled)
    }

    /// The success came too late to count, such as after a revocation.
    #[must_use]
    pub const fn abandon(self) -> DeliveryToken {
        self.0
    }
}

impl Failed {
    /// Returns why.
    #[must_use]
    pub const fn failure(&self) -> &Failure {
        &self.failure
    }

    /// Returns the token, to redeliver or to give back.
    #[must_use]
    pub const fn token(&self) -> DeliveryToken {
        self.token
    }

    /// Tries again in place. The failure is forgotten; clone it before if it is still needed.
    pub fn retry(self) -> Received {
        Received(self.token)
    }

    /// Settles because a copy is CONFIRMED elsewhere. The confirmation is the proof; that it is the one of this
    /// delivery's copy is for the caller to see to.
    pub fn copied(self, _copy: &Confirmation) -> (SettlementSending, SettlePermit) {
        sending(self.token, SettledBecause::Copied)
    }

    /// Settles because the profile discards.
    pub fn discard(self) -> (SettlementSending, SettlePermit) {
        sending(self.token, SettledBecause::Discarded)
    }
}

const fn sending(token: DeliveryToken, because: SettledBecause) -> (SettlementSending, SettlePermit) {
    (SettlementSending { token, because }, SettlePermit { token, because })
}

impl SettlementSending {
    /// Returns the token.
    #[must_use]
    pub const fn token(&self) -> DeliveryToken {
        self.token
    }

    /// Returns why it is being settled.
    #[must_use]
    pub const fn because(&self) -> SettledBecause {
        self.because
    }

    /// Ends the life of the delivery with what the broker said.
    pub fn resolve(self, reply: SettlementReply) -> SettlementOutcome {
        match reply {
            SettlementReply::Evidence(evidence) => SettlementOutcome::Settled(evidence),
            SettlementReply::Unknown(failure) => SettlementOutcome::Unknown(SettlementUnknown::new(failure)),
        }
    }
}

impl SettlePermit {
    /// Returns the token.
    #[must_use]
    pub const fn token(&self) -> DeliveryToken {
        self.token
    }

    /// Returns why it is settled.
    #[must_use]
    pub const fn because(&self) -> SettledBecause {
        self.because
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Code;
    use crate::failure::FailureCategory;
    use crate::settlement::{SettlementEvidence, SettlementLevel};
    use crate::spi::{Epoch, UnitId};

    const TOKEN: DeliveryToken = DeliveryToken::new(UnitId::new(1), Epoch::new(1), 7);

    fn failure() -> Failure {
        Failure::new(FailureCategory::PermanentBusiness, Code::new("X"), "x")
    }

    #[test]
    fn a_success_is_settled_on_evidence_only() {
        let (sending, permit) = Received::new(TOKEN).decode().decoded().succeed().settle();
        assert_eq!((permit.token(), permit.because()), (TOKEN, SettledBecause::Handled));
        let evidence = SettlementEvidence::observed(SettlementLevel::Committed);
        assert!(sending.resolve(SettlementReply::Evidence(evidence)).is_settled());
        let (sending, _) = Received::new(TOKEN).decode().decoded().succeed().settle();
        assert!(!sending.resolve(SettlementReply::Unknown(failure())).is_settled());
    }

    #[test]
    fn settling_before_handling_needs_at_most_once() {
        assert!(Received::new(TOKEN).before_handling(DeliveryGuarantee::AtLeastOnce).is_err());
        assert!(Received::new(TOKEN).before_handling(DeliveryGuarantee::AtMostOnce).is_ok());
    }

    #[test]
    fn a_failed_delivery_knows_why_and_goes_one_way() {
        let failed = || Received::new(TOKEN).decode().fail(failure());
        assert_eq!(failed().failure().code(), "X");
        assert_eq!(failed().retry().token(), TOKEN);
        let (sending, _) = failed().discard();
        assert_eq!(sending.because(), SettledBecause::Discarded);
    }
}
