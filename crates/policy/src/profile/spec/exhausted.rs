//! What becomes of a message that failed for good.

use std::fmt;

use serde::Deserialize;

/// What becomes of a message whose last attempt failed, or whose failure is not worth another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "a retry decision matches every end; there is no fourth")]
pub enum OnExhausted {
    /// It is copied to the dead letter, and settled once the copy is CONFIRMED.
    DeadLetter,
    /// It is settled and counted.
    Discard,
    /// Its ordering unit stops, the message unsettled, and health tells.
    Halt,
}

impl fmt::Display for OnExhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DeadLetter => "dead_letter",
            Self::Discard => "discard",
            Self::Halt => "halt",
        })
    }
}
