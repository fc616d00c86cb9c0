//! The validator: what contradicts the embedded broker in one destination's set-up.

use consign_core_api::error::Problem;
use consign_core_api::spi::DestinationSetup;

use crate::broker::Behaviour;
use crate::config::Settings;

/// Reports every wrong native setting, and what is wrong with a script for this destination.
pub(crate) fn validate(setup: &DestinationSetup, behaviour: &Behaviour) -> Vec<Problem> {
    let mut problems = Settings::read(setup).err().unwrap_or_default();
    if let Behaviour::Scripted(script) = behaviour {
        problems.extend(script.problems_of(&setup.name));
    }
    problems
}
