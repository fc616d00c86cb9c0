//! What a history can be caught at.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The kinds of lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LieKind {
    /// CONFIRMED, and not at the broker.
    ConfirmedMissing,
    /// CONFIRMED at a position where the broker has something else.
    ConfirmedElsewhere,
    /// CONFIRMED as there once, and there more than once.
    ConfirmedTwice,
    /// REJECTED, and at the broker or handled.
    RejectedPresent,
    /// Dropped before anything was sent, as it seems, and at the broker.
    UntoldPresent,
    /// At the broker or handled, and nobody published it.
    FromNowhere,
    /// At the broker or handled with another key or number than it was published with.
    Altered,
    /// No verdict, or a caller who waited and was not told.
    NoOutcome,
    /// More than one verdict, or caller and observer were told different ones.
    TwoOutcomes,
    /// A verdict after the deadline, less the lag of the machine.
    Late,
    /// Settled as committed, and delivered again.
    CommittedRedelivered,
    /// Settled before any handler of its group started with it.
    SettledUnhandled,
    /// CONFIRMED, and not handled by a group that had all the time it needed.
    NeverHandled,
    /// Two CONFIRMED messages of one key were first handled in the wrong order.
    OutOfOrder,
    /// Something is still charged after the end.
    PermitsNotBack,
    /// The history lacks what the check needs.
    Incomplete,
    /// The fault had no effect, so that nothing was proved.
    ProvedNothing,
}

/// One thing that a history is caught at.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lie {
    /// Of which kind.
    pub kind: LieKind,
    /// The message, where it is one message's affair.
    pub id: Option<String>,
    /// For people.
    pub text: String,
}

impl Lie {
    pub(super) fn new(kind: LieKind, id: Option<&str>, text: impl Into<String>) -> Self {
        Self { kind, id: id.map(str::to_owned), text: text.into() }
    }
}

impl fmt::Display for Lie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.kind)?;
        if let Some(id) = &self.id {
            write!(f, " {id}")?;
        }
        write!(f, ": {}", self.text)
    }
}
