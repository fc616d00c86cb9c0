//! Two profiles for one thing.

use std::collections::HashMap;

use consign_core_api::Problem;
use consign_core_api::error::Phase;

use super::draft::Draft;
use crate::codes;
use crate::profile::ProfileSpecs;

/// Reports names under which more than one profile was added.
pub(super) fn check_repeated(specs: &ProfileSpecs, problems: &mut Vec<Problem>) {
    problems.extend(specs.repeated.iter().map(|name| {
        let message = "more than one profile was added under this name";
        let help = "add one profile for each destination";
        Problem::new(Phase::Fields, codes::PHYSICAL_NAME_COLLISION, message, help).at_text(name)
    }));
}

/// Reports physical names that more than one destination of a transport has. A destination has its logical name, and
/// whatever names its adapter adds; expected linear time.
pub(super) fn check_physical(drafts: &[Option<Draft<'_>>], problems: &mut Vec<Problem>) {
    let added: Vec<_> = drafts.iter().flatten().map(Draft::physical_names).collect();
    if added.iter().all(Vec::is_empty) {
        return;
    }
    let mut taken: HashMap<(&str, &str), &str> = HashMap::with_capacity(drafts.len());
    for (draft, added) in drafts.iter().flatten().zip(&added) {
        let (transport, own) = (draft.profile.transport().as_str(), draft.profile.name().as_str());
        let logical = added.is_empty().then_some(own);
        for physical in added.iter().map(String::as_str).chain(logical) {
            let Some(other) = taken.insert((transport, physical), own).filter(|other| *other != own) else {
                continue;
            };
            let message = format!("has the physical name {physical:?}, and so has {other:?}");
            let help = "rename one of the two, or change what its native settings name";
            let problem = Problem::new(Phase::Broker, codes::PHYSICAL_NAME_COLLISION, message, help);
            problems.push(problem.at(draft.profile.name()).field("transport", transport).ranked(u16::MAX));
        }
    }
}
