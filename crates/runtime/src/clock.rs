//! The runtime's clock: tokio's, so that paused time in tests is the time of everything.

use std::time::SystemTime;

use consign_core_api::time::{Clock, Moment};
use tokio::time::Instant;

/// Tokio's monotonic clock, counted from its making, and the system's wall clock.
#[derive(Debug, Clone)]
pub struct TokioClock {
    start: Instant,
}

impl TokioClock {
    /// Starts a clock now.
    #[must_use]
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }

    /// Returns the instant of a moment, for tokio's timers. A moment beyond the timers' range becomes a far one.
    pub(crate) fn instant(&self, moment: Moment) -> Instant {
        let far = consign_core_api::time::LONGEST.saturating_mul(12);
        self.start + moment.since_start().min(self.start.elapsed().saturating_add(far))
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Moment {
        Moment::from_start(self.start.elapsed())
    }

    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }
}
