//! Capability negotiation: what a profile asks, against what a broker can give. Each need that is not met is one
//! `CAPABILITY_UNAVAILABLE`; no need is lowered silently.
//!
//! ```text
//! error[CAPABILITY_UNAVAILABLE]: destination "invoices": asks for the ordering KEY; transport "main" (nats) orders nothing (ordering = KEY)
//!   help: use ordering = NONE, or another configuration of the destination
//! ```

mod copies;
mod needs;

use consign_core_api::error::Phase;
use consign_core_api::{Capabilities, Problem, codes};

use crate::profile::DestinationProfile;

pub(crate) use copies::check_copy;

/// A profile and what its transport can do for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Match<'a> {
    pub(crate) profile: &'a DestinationProfile,
    pub(crate) capabilities: &'a Capabilities,
    /// The transport's kind, such as `in-memory`.
    pub(crate) kind: &'a str,
}

impl Match<'_> {
    /// Describes a need that is not met: what is asked, and what the transport does instead.
    fn unmet(&self, need: Unmet) -> Problem {
        let message = format!(
            "asks for {}; transport {:?} ({}) {}",
            need.asks,
            self.profile.transport().as_str(),
            self.kind,
            need.lacks
        );
        let problem = Problem::new(Phase::Negotiation, codes::CAPABILITY_UNAVAILABLE, message, need.help);
        let problem = problem.at(self.profile.name());
        need.fields.into_iter().fold(problem, |problem, (field, value)| problem.field(field, value))
    }
}

/// A need that is not met.
struct Unmet {
    asks: String,
    lacks: String,
    help: String,
    fields: Vec<(&'static str, String)>,
}

/// Matches one profile against what its transport declared, and reports every need that is not met. `kind` is the
/// transport's word for itself. Pure, constant time.
#[must_use]
pub fn negotiate(profile: &DestinationProfile, kind: &str, capabilities: &Capabilities) -> Vec<Problem> {
    let matched = Match { profile, capabilities, kind };
    let mut problems = Vec::new();
    for (rank, need) in (0..).zip(needs::ALL) {
        problems.extend(need(&matched).map(|unmet| matched.unmet(unmet).ranked(rank)));
    }
    problems.extend(needs::hold_of_redelivery(&matched).map(|problem| problem.ranked(99)));
    problems
}
