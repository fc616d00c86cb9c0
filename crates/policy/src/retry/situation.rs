//! What the decision is made of: plain values, clock and randomness included.

use std::time::Duration;

use consign_core_api::spi::DestinationSetup;
use consign_core_api::{Attempt, Capabilities, DestinationName, FailureCategory};

use crate::profile::OnExhausted;

/// The destination a message was first published to. Its limits, its dead letter and its exhaustion rule govern every
/// attempt, wherever the message stands.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    pub(super) setup: &'a DestinationSetup,
    pub(super) dead_letter: Option<&'a DestinationName>,
    pub(super) on_exhausted: OnExhausted,
}

impl<'a> Origin<'a> {
    /// Names the origin with what its profile says of final failures.
    #[must_use]
    pub const fn new(
        setup: &'a DestinationSetup,
        dead_letter: Option<&'a DestinationName>,
        on_exhausted: OnExhausted,
    ) -> Self {
        Self { setup, dead_letter, on_exhausted }
    }
}

/// Everything that the decision after a failure depends on.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "a forgotten value would be a wrong decision")]
pub struct Situation<'a> {
    /// Who can do something about the failure.
    pub category: FailureCategory,
    /// How many attempts have failed, this one included, on all rungs together.
    pub attempt: Attempt,
    /// The broker's count of deliveries where the message stands, this one included; `None` where it does not count.
    pub delivery_count: Option<u32>,
    /// How long ago this delivery came: the time that counts against its settlement deadline.
    pub elapsed: Duration,
    /// The origin.
    pub origin: Origin<'a>,
    /// The set-up of where the message stands: the origin's own, or that of a rung.
    pub here: &'a DestinationSetup,
    /// What the transport can do where the message stands.
    pub capabilities: &'a Capabilities,
    /// A random number from 0 to 1. Anything else counts as 1.
    pub random: f64,
}
