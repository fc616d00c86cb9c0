//! What happened during a case, printed when it fails.

use std::sync::{Mutex, PoisonError};

use consign_runtime::{Observed, Observer};

/// The most events that are kept; later ones are counted.
const KEPT: usize = 400;

/// The events of one case, in order.
#[derive(Debug, Default)]
pub struct History(Mutex<(Vec<String>, usize)>);

impl History {
    /// Adds a line of the case's own.
    pub fn note(&self, line: impl Into<String>) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.0.len() < KEPT {
            lines.0.push(line.into());
        } else {
            lines.1 += 1;
        }
    }

    /// Returns all lines.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = lines.0.clone();
        if lines.1 > 0 {
            all.push(format!("… and {} more", lines.1));
        }
        all
    }
}

impl Observer for History {
    fn observe(&self, event: &Observed<'_>) {
        self.note(format!("{event:?}"));
    }
}
