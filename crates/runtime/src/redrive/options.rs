//! How a redrive is done.

use std::num::NonZeroUsize;
use std::time::Duration;

use consign_core_api::GroupName;
use consign_core_api::name::InvalidName;

/// How a redrive is done.
#[derive(Debug, Clone)]
#[must_use]
pub struct RedriveOptions {
    pub(super) dry_run: bool,
    pub(super) limit: NonZeroUsize,
    pub(super) allow_reorder: bool,
    pub(super) only_group: Option<GroupName>,
    pub(super) reader: Option<GroupName>,
    pub(super) quiet: Duration,
}

impl RedriveOptions {
    /// The group under which a redrive reads the dead letter, unless [`read_as`](Self::read_as) names another.
    pub const READER: &str = "consign-redrive";

    /// Sends messages back: at most 1000, of all groups, onto unordered destinations only, until none came for 2 s.
    pub const fn new() -> Self {
        Self {
            dry_run: false,
            limit: NonZeroUsize::MIN.saturating_add(999),
            allow_reorder: false,
            only_group: None,
            reader: None,
            quiet: Duration::from_secs(2),
        }
    }

    /// Only looks: lists what would be sent back and gives every message back to the dead letter.
    ///
    /// Brokers may count such a look as a delivery.
    pub const fn dry_run() -> Self {
        let mut options = Self::new();
        options.dry_run = true;
        options
    }

    /// Looks at no more than this many messages. Default 1000; at most 65,536, more counts as that.
    pub const fn limit(mut self, most: NonZeroUsize) -> Self {
        self.limit = most;
        self
    }

    /// Allows to put messages back into an ordered destination, where they come after those published since.
    pub const fn allow_reorder(mut self) -> Self {
        self.allow_reorder = true;
        self
    }

    /// Sends back only what failed in this group; the rest stays.
    pub fn only_group(mut self, group: GroupName) -> Self {
        self.only_group = Some(group);
        self
    }

    /// Reads the dead letter as this group. Where groups see only what was published after their creation, it has to be
    /// one that existed when the messages came. Its position moves: another redrive as the same group does not see them
    /// again.
    ///
    /// # Errors
    /// [`InvalidName`] for a name that is no legal group.
    pub fn read_as(mut self, group: &str) -> Result<Self, InvalidName> {
        self.reader = Some(GroupName::new(group)?);
        Ok(self)
    }

    /// Ends when no message came for this long. Default 2 s.
    pub const fn quiet(mut self, quiet: Duration) -> Self {
        self.quiet = quiet;
        self
    }
}

impl Default for RedriveOptions {
    fn default() -> Self {
        Self::new()
    }
}
