//! Profiles whose values are legal, as their transports see them.

use consign_core_api::spi::Transport;
use consign_core_api::{Capabilities, Problem};

use super::catalog::Catalog;
use super::join::Joined;
use super::record::Planned;
use crate::negotiation::{Match, check_copy, negotiate};
use crate::profile::DestinationProfile;

/// A profile whose values are legal, and its transport.
pub(super) struct Draft<'a> {
    pub(super) profile: DestinationProfile,
    transport: &'a dyn Transport,
    /// What the transport can do for it; `None` where its own rules found a fault.
    capabilities: Option<Capabilities>,
}

impl Draft<'_> {
    fn matched(&self) -> Option<Match<'_>> {
        let capabilities = self.capabilities.as_ref()?;
        Some(Match { profile: &self.profile, capabilities, kind: self.transport.kind() })
    }

    /// Returns the names of what it occupies at the broker; none is its logical name.
    pub(super) fn physical_names(&self) -> Vec<String> {
        if self.capabilities.is_some() {
            self.transport.physical_names(self.profile.setup())
        } else {
            Vec::new()
        }
    }

    pub(super) fn planned(self) -> Option<Planned> {
        Some(Planned { profile: self.profile, capabilities: self.capabilities? })
    }
}

impl<'a> Draft<'a> {
    /// Asks the transport for its own rules, and where it finds no fault for its capabilities, and negotiates.
    pub(super) fn new(
        profile: DestinationProfile,
        catalog: &'a Catalog,
        problems: &mut Vec<Problem>,
    ) -> Option<Self> {
        let (_, transport) = catalog.bound(profile.transport().as_str())?;
        let faults = transport.validate(profile.setup());
        let capabilities = faults.is_empty().then(|| transport.capabilities(profile.setup()));
        problems.extend(faults);
        if let Some(capabilities) = &capabilities {
            problems.extend(negotiate(&profile, transport.kind(), capabilities));
        }
        Some(Self { profile, transport, capabilities })
    }
}

/// Checks each edge whose ends both have capabilities.
pub(super) fn check_copies(joined: &Joined<'_>, drafts: &[Option<Draft<'_>>], problems: &mut Vec<Problem>) {
    let matched = |node: usize| drafts[node].as_ref().and_then(Draft::matched);
    for node in 0..drafts.len() {
        for (kind, taker) in joined.graph.copies(node) {
            if let (Some(source), Some(target)) = (matched(node), matched(taker)) {
                check_copy(&source, kind, &target, problems);
            }
        }
    }
}
