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

/// The names of what nodes occupy at the broker, where that is not just the logical name.
pub(super) type Names = Vec<(usize, Vec<String>)>;

/// Reports physical names that more than one destination of a transport has. A destination has its logical name, or
/// the names that its adapter gave; expected linear time.
pub(super) fn check_physical(drafts: &[Option<Draft<'_>>], names: &Names, problems: &mut Vec<Problem>) {
    if names.is_empty() {
        return;
    }
    let given: HashMap<usize, &Vec<String>> = names.iter().map(|(node, names)| (*node, names)).collect();
    let mut taken: HashMap<(&str, &str), &str> = HashMap::with_capacity(drafts.len());
    for (node, draft) in drafts.iter().enumerate() {
        let Some(Draft { profile, .. }) = draft else { continue };
        let (transport, own) = (profile.transport().as_str(), profile.name().as_str());
        let given = given.get(&node).copied();
        let logical = given.is_none().then_some(own);
        for physical in given.into_iter().flatten().map(String::as_str).chain(logical) {
            let Some(other) = taken.insert((transport, physical), own).filter(|other| *other != own) else {
                continue;
            };
            let message = format!("has the physical name {physical:?}, and so has {other:?}");
            let help = "rename one of the two, or change what its native settings name";
            let problem = Problem::new(Phase::Broker, codes::PHYSICAL_NAME_COLLISION, message, help);
            problems.push(problem.at(profile.name()).field("transport", transport).ranked(u16::MAX));
        }
    }
}
