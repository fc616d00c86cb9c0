//! What one driver reads: a destination, for a group, on behalf of an origin.

use std::sync::Arc;

use consign_core_api::GroupName;
use consign_policy::profile::MessageIdSource;
use consign_policy::retry::Origin;

use super::delivery::Content;
use crate::core::{Core, OpenDestination};
use crate::observer::DeliveryInfo;

/// What one driver reads.
pub(crate) struct Source {
    pub(crate) core: Arc<Core>,
    /// Where the messages stand: the origin, or one of its retry destinations.
    pub(crate) here: Arc<OpenDestination>,
    /// Whose limits, dead letter and exhaustion rule apply.
    pub(crate) origin: Arc<OpenDestination>,
    pub(crate) group: GroupName,
}

impl Source {
    pub(crate) fn is_rung(&self) -> bool {
        self.here.name() != self.origin.name()
    }

    pub(crate) fn policy_origin(&self) -> Origin<'_> {
        let profile = self.origin.profile();
        Origin::new(profile.setup(), profile.dead_letter(), profile.on_exhausted())
    }

    pub(crate) fn info<'a>(&'a self, content: &'a Content) -> DeliveryInfo<'a> {
        let (id, position) = (content.message.id(), content.position.as_ref());
        DeliveryInfo::new(self.here.name(), &self.group, id, position)
    }

    /// Takes the id of a foreign message from the header that the profile names.
    pub(crate) fn identify(&self, content: &mut Content) {
        let MessageIdSource::Header(name) = self.origin.profile().message_id() else { return };
        if content.message.id().is_some() {
            return;
        }
        let text = content.message.headers().first(name.as_str()).and_then(|header| header.text());
        if let Some(id) = text.and_then(|text| consign_core_api::MessageId::new(text).ok()) {
            content.message.set_id(Some(id));
        }
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source")
            .field("here", self.here.name())
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}
