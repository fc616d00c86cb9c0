//! One look at each profile.

use std::num::NonZeroU32;

use consign_core_api::Problem;

use super::catalog::Catalog;
use super::draft::Draft;
use super::join::Joined;
use super::names::Names;
use super::payload::Payloads;
use super::setup;
use crate::admission::AdmissionLimits;
use crate::profile::{Fields, OnExhausted, Subject, check_rules};
use crate::topology::Search;

/// What an origin's retry destinations take over from it; `None` is a value that was refused.
#[derive(Clone, Copy, Default)]
struct Governing {
    max_attempts: Option<Option<NonZeroU32>>,
    on_exhausted: Option<OnExhausted>,
}

/// Checks the values and the rules of each profile, decides its largest message, and asks its transport. Everything
/// of one profile is done at once, and a destination that sends copies comes before those that take them.
pub(super) fn all<'a>(
    joined: &Joined<'_>,
    search: &Search,
    catalog: &'a Catalog,
    admission: Option<&AdmissionLimits>,
    problems: &mut Vec<Problem>,
) -> (Vec<Option<Draft<'a>>>, Names) {
    let mut governing = vec![Governing::default(); joined.specs.len()];
    let mut payloads = Payloads::new(joined, admission);
    let mut drafts = Vec::new();
    drafts.resize_with(joined.specs.len(), || None);
    let mut names = Names::new();
    for node in search.order.iter().rev().copied() {
        let (name, spec, role) = (joined.graph.name(node), joined.specs[node], joined.role(node));
        let mut fields = Fields::check(name, spec, role, catalog, problems);
        let governor = joined.governor(node);
        if governor != node {
            // A limit of a retry destination's own was refused; where none is written, its origin's holds.
            let theirs = governing[governor];
            fields.retry.max_attempts = fields.retry.max_attempts.and(theirs.max_attempts);
            fields.on_exhausted = fields.on_exhausted.and(theirs.on_exhausted);
        }
        let (max_attempts, on_exhausted) = (fields.retry.max_attempts, fields.on_exhausted);
        governing[node] = Governing { max_attempts, on_exhausted };
        check_rules(&Subject { name, spec, fields: &fields, role }, problems);

        let Some(limit) = payloads.limit(node, fields.publish.max_payload, problems) else { continue };
        let Some(profile) = setup::profile(joined, node, fields, limit) else { continue };
        let Some(draft) = Draft::new(profile, catalog, problems) else { continue };
        let occupied = draft.physical_names();
        if !occupied.is_empty() {
            names.push((node, occupied));
        }
        drafts[node] = Some(draft);
    }
    (drafts, names)
}
