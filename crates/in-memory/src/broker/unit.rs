//! Ownership of one unit of a group.

use consign_core_api::spi::{Epoch, UnitId};
use tokio::time::Instant;

use super::member::MemberId;

/// A partition, or, where members compete, the one unit that each member has for itself.
#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) id: UnitId,
    pub(crate) owner: Option<MemberId>,
    /// Unique in the group, and growing, so that it also tells whose unit zero is meant where members compete.
    pub(crate) epoch: Epoch,
    pub(crate) outstanding: usize,
    pub(crate) paused: bool,
    pub(crate) revoking: Option<Revoking>,
}

/// A unit on its way from its owner to another, or back to the same under a new epoch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Revoking {
    pub(crate) until: Instant,
    pub(crate) to: MemberId,
}

impl Unit {
    pub(crate) const fn unowned(id: UnitId) -> Self {
        Self { id, owner: None, epoch: Epoch::new(0), outstanding: 0, paused: false, revoking: None }
    }

    /// Tells whether this member may be sent messages of the unit.
    pub(crate) fn serves(&self, member: MemberId) -> bool {
        self.owner == Some(member) && !self.paused && self.revoking.is_none()
    }

    /// Who owns the unit when everything under way is done.
    pub(crate) fn heir(&self) -> Option<MemberId> {
        self.revoking.map(|revoking| revoking.to).or(self.owner)
    }
}
