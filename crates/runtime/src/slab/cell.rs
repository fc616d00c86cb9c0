//! What a slot holds.

use std::sync::Arc;
use std::task::Waker;

use consign_core_api::outcome::AttemptLog;
use consign_core_api::time::Moment;
use consign_core_api::{DestinationName, EncodedMessage, MessageId, PublishOutcome};
use consign_policy::admission::Permit;
use tokio::sync::OwnedMutexGuard;

use crate::core::OpenDestination;

/// A publish in flight.
pub(crate) struct Entry {
    pub(crate) destination: Arc<OpenDestination>,
    /// Kept to be handed back if the verdict is REJECTED.
    pub(crate) message: EncodedMessage,
    pub(crate) permit: Permit,
    /// Held until the verdict where the adapter cannot pipeline an ordering unit.
    pub(crate) turn: Option<OwnedMutexGuard<()>>,
    pub(crate) attempts: AttemptLog,
    /// When the caller called.
    pub(crate) started: Moment,
    /// When the verdict is due.
    pub(crate) deadline: Moment,
}

/// What stays in a slot whose verdict was given while the client may still hold the bytes.
///
/// It holds no destination: a client that never answers would keep its own connection alive through it.
pub(super) struct Residue {
    pub(super) destination: DestinationName,
    pub(super) id: Option<MessageId>,
    /// Dropping it gives the bytes back.
    pub(super) _permit: Permit,
}

#[derive(Default)]
pub(super) struct Cell {
    pub(super) entry: Option<Entry>,
    pub(super) outcome: Option<PublishOutcome>,
    pub(super) residue: Option<Residue>,
    pub(super) waker: Option<Waker>,
    /// The verdict was given and stored.
    pub(super) concluded: bool,
    /// Somebody still wants the outcome.
    pub(super) wanted: bool,
    /// The adapter still owes an answer or holds the bytes.
    pub(super) held: bool,
    /// The client let go of the bytes of the present attempt before the verdict.
    pub(super) released: bool,
}

impl Cell {
    pub(super) const fn empty() -> Self {
        Self {
            entry: None,
            outcome: None,
            residue: None,
            waker: None,
            concluded: false,
            wanted: false,
            held: false,
            released: false,
        }
    }

    pub(super) const fn occupied(entry: Entry) -> Self {
        Self {
            entry: Some(entry),
            outcome: None,
            residue: None,
            waker: None,
            concluded: false,
            wanted: true,
            held: true,
            released: false,
        }
    }

    pub(super) const fn is_done(&self) -> bool {
        self.concluded && !self.wanted && !self.held
    }

    /// Empties the cell; what must be dropped outside the lock is returned.
    pub(super) fn clear(&mut self) -> Option<Residue> {
        std::mem::take(self).residue
    }
}
