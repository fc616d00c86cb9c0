//! REJECTED.

use std::fmt;

use crate::failure::Failure;
use crate::message::EncodedMessage;

/// How far a rejected message got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Transmission {
    /// Its last byte provably never left.
    NotTransmitted,
    /// The broker refused it, naming it.
    RefusedByBroker,
    /// The broker found nowhere to put it, naming it.
    Unroutable,
}

/// It is certain that no consumer will ever see the message.
#[derive(Debug, Clone)]
pub struct Rejection(Box<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    transmission: Transmission,
    failure: Failure,
    message: Option<EncodedMessage>,
}

impl Rejection {
    /// Refuses a message before it was transmitted. The encoded message, where there is one, is handed back.
    #[must_use]
    pub fn not_transmitted(failure: Failure, message: Option<EncodedMessage>) -> Self {
        Self::new(Transmission::NotTransmitted, failure, message)
    }

    pub(super) fn new(transmission: Transmission, failure: Failure, message: Option<EncodedMessage>) -> Self {
        Self(Box::new(Inner { transmission, failure, message }))
    }

    /// Returns how far the message got.
    #[must_use]
    pub const fn transmission(&self) -> Transmission {
        self.0.transmission
    }

    /// Returns why.
    #[must_use]
    pub const fn failure(&self) -> &Failure {
        &self.0.failure
    }

    /// Returns the refused message; absent only where it could not be encoded.
    #[must_use]
    pub const fn message(&self) -> Option<&EncodedMessage> {
        self.0.message.as_ref()
    }

    /// Takes the refused message back, to publish it elsewhere or later.
    #[must_use]
    pub fn into_message(self) -> Option<EncodedMessage> {
        self.0.message
    }

    /// Tells whether the same message may be accepted later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.0.failure.category().is_transient()
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.failure, f)
    }
}

impl std::error::Error for Rejection {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.failure.source()
    }
}
