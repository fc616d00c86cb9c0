//! What a clean validation leaves.

use consign_core_api::{Capabilities, DestinationName};

use crate::admission::AdmissionLimits;
use crate::profile::DestinationProfile;

/// Every destination, validated and negotiated, and how retries and dead letters join them.
///
/// Look-ups by name take O(log n) in the number of destinations.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// In the order of their names.
    pub(super) destinations: Vec<Planned>,
    /// For each destination, at the same place, what others make of it.
    pub(super) ties: Vec<Ties>,
    pub(super) admission: AdmissionLimits,
}

/// One destination of a plan.
#[derive(Debug, Clone)]
pub(super) struct Planned {
    pub(super) profile: DestinationProfile,
    pub(super) capabilities: Capabilities,
}

/// How retries and dead letters tie a destination to others.
#[derive(Debug, Clone, Default)]
pub(super) struct Ties {
    /// The origin of a retry destination.
    pub(super) origin: Option<DestinationName>,
    /// The retry destinations of an origin, in their order.
    pub(super) rungs: Vec<DestinationName>,
    /// The destinations whose dead letter this is.
    pub(super) dead_letter_origins: Vec<DestinationName>,
}

impl Plan {
    fn place(&self, name: &DestinationName) -> Option<usize> {
        self.destinations.binary_search_by(|known| known.profile.name().cmp(name)).ok()
    }

    fn planned(&self, name: &DestinationName) -> Option<&Planned> {
        self.destinations.get(self.place(name)?)
    }

    fn ties(&self, name: &DestinationName) -> Option<&Ties> {
        self.ties.get(self.place(name)?)
    }

    /// Returns the profile of a destination.
    #[must_use]
    pub fn profile(&self, name: &DestinationName) -> Option<&DestinationProfile> {
        self.planned(name).map(|known| &known.profile)
    }

    /// Returns all profiles in the order of their names.
    pub fn profiles(&self) -> impl ExactSizeIterator<Item = &DestinationProfile> {
        self.destinations.iter().map(|known| &known.profile)
    }

    /// Returns what the destination's transport declared that it can do.
    #[must_use]
    pub fn capabilities(&self, name: &DestinationName) -> Option<&Capabilities> {
        self.planned(name).map(|known| &known.capabilities)
    }

    /// Returns the limits that all destinations share.
    #[must_use]
    pub const fn admission(&self) -> &AdmissionLimits {
        &self.admission
    }

    /// Returns the origin of a retry destination, and every other destination itself.
    #[must_use]
    pub fn origin<'a>(&'a self, name: &'a DestinationName) -> &'a DestinationName {
        self.ties(name).and_then(|ties| ties.origin.as_ref()).unwrap_or(name)
    }

    /// Returns the retry destinations of an origin in the order in which they are tried; of any other, none.
    #[must_use]
    pub fn rungs(&self, name: &DestinationName) -> &[DestinationName] {
        self.ties(name).map_or(&[], |ties| &ties.rungs)
    }

    /// Returns the destinations whose dead letter this is, in the order of their names.
    #[must_use]
    pub fn dead_letter_origins(&self, name: &DestinationName) -> &[DestinationName] {
        self.ties(name).map_or(&[], |ties| &ties.dead_letter_origins)
    }
}
