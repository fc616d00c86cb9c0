//! What a copy needs of the destination that takes it.

use consign_core_api::capability::HeaderModel;
use consign_core_api::error::Phase;
use consign_core_api::{Problem, codes};

use super::Match;
use crate::topology::EdgeKind;

/// Checks that a copy can be what its source was: a destination that takes copies carries whatever headers and
/// tombstones the source carries.
pub(crate) fn check_copy(
    source: &Match<'_>,
    kind: EdgeKind,
    target: &Match<'_>,
    problems: &mut Vec<Problem>,
) {
    let (theirs, ours) = (target.capabilities, source.capabilities);
    let mut lost = Vec::new();
    if !theirs.headers().covers(ours.headers()) {
        lost.extend(missing(theirs.headers(), ours.headers()));
    }
    if ours.tombstones() && !theirs.tombstones() {
        lost.push("tombstones");
    }
    if lost.is_empty() {
        return;
    }
    let (from, to) = (source.profile.name(), target.profile.name());
    let message = format!(
        "asks for copies without loss; transport {:?} ({}) of {:?} does not carry {}",
        target.profile.transport().as_str(),
        target.kind,
        to.as_str(),
        lost.join(", ")
    );
    let help = format!("let {to} carry what {from} carries, or name another destination");
    let problem = Problem::new(Phase::Negotiation, codes::CAPABILITY_UNAVAILABLE, message, help);
    problems.push(problem.at(from).field(kind.field(), to).ranked(100 + kind as u16));
}

fn missing(theirs: HeaderModel, ours: HeaderModel) -> impl Iterator<Item = &'static str> {
    let all = [
        (ours.binary_values && !theirs.binary_values, "binary header values"),
        (ours.duplicates && !theirs.duplicates, "repeated headers"),
        (ours.order && !theirs.order, "the order of headers"),
    ];
    all.into_iter().filter_map(|(lost, what)| lost.then_some(what))
}
