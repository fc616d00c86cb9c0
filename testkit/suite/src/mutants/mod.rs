//! Deliberately wrong transports. Each breaks one promise, and at least one case must notice.
//!
//! A mutant is the embedded broker, or any other that keeps the contract, with one fault put in front of it. A suite
//! that lets a mutant pass does not prove the promise that the mutant breaks.

mod declaring;
mod delivering;
mod publishing;
mod report;
mod run;
mod settling;
mod tools;

use consign_core_api::{DeliveryGuarantee, OrderingScope};

use crate::profile::Profile;
use crate::wrap::Wrapper;

pub use report::{Caught, MutantReport};
pub use run::run;

/// A deliberately wrong transport.
#[derive(Clone)]
#[non_exhaustive]
pub struct Mutant {
    /// What it does wrong.
    pub name: &'static str,
    /// The promise that it breaks.
    pub breaks: &'static str,
    /// Where it matters.
    pub suits: Suits,
    /// Parts of the names of cases that should notice; they run first.
    pub suspects: &'static [&'static str],
    /// Puts the fault in front of a transport.
    pub wrapper: Wrapper,
}

/// The profiles in which a fault can matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Suits {
    /// All.
    Any,
    /// Those that settle after handling.
    AtLeastOnce,
    /// Those with an order, and settlement after handling.
    Ordered,
    /// Those in which the broker does not remember ids.
    Forgetful,
}

impl Suits {
    /// Tells whether the fault can matter in a profile, whose memory of ids is given.
    #[must_use]
    pub fn matches(self, profile: &Profile, remembers_ids: bool) -> bool {
        let at_least_once = profile.delivery == DeliveryGuarantee::AtLeastOnce;
        match self {
            Self::Any => true,
            Self::AtLeastOnce => at_least_once,
            Self::Ordered => at_least_once && profile.ordering != OrderingScope::None,
            Self::Forgetful => at_least_once && !remembers_ids,
        }
    }
}

impl std::fmt::Debug for Mutant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mutant")
            .field("name", &self.name)
            .field("breaks", &self.breaks)
            .finish_non_exhaustive()
    }
}

/// Returns every mutant. Each call makes new ones, which share nothing.
#[must_use]
pub fn all() -> Vec<Mutant> {
    let mut all = publishing::all();
    all.extend(delivering::all());
    all.extend(settling::all());
    all.extend(declaring::all());
    all
}
