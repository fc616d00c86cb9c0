//! What a stop leaves behind.

use std::fmt;

use consign_core_api::{DestinationName, MessageId, MessagePosition};

use super::shared::{Left, LeftBecause};

/// What a stopped consumer left unsettled.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct StopReport {
    /// The deliveries that came and were not settled when the consumer ended: expect them again.
    pub unsettled: Vec<Unsettled>,
    /// Whether the deadline passed before everything had ended; the list may lack deliveries then.
    pub timed_out: bool,
}

/// A delivery that a stop left unsettled.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Unsettled {
    /// The destination where it stands: the one consumed, or one of its retry destinations.
    pub destination: DestinationName,
    /// The message.
    pub id: Option<MessageId>,
    /// Where it stands.
    pub position: Option<MessagePosition>,
    /// Why.
    pub because: LeftBecause,
}

impl StopReport {
    /// Tells whether everything that came was settled, or given back unprocessed with proof.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        !self.timed_out && self.unsettled.iter().all(|left| left.because == LeftBecause::Released)
    }
}

impl From<Left> for Unsettled {
    fn from(left: Left) -> Self {
        let Left { destination, id, position, because } = left;
        Self { destination, id, position, because }
    }
}

impl fmt::Display for StopReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unsettled: {}", self.unsettled.len())?;
        for left in &self.unsettled {
            match &left.id {
                Some(id) => write!(f, "\n  {id}")?,
                None => f.write_str("\n  a message without id")?,
            }
            if let Some(position) = &left.position {
                write!(f, " at {position}")?;
            }
            write!(f, " in {}: {}", left.destination, left.because)?;
        }
        Ok(())
    }
}
