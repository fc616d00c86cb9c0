//! The largest message of each destination: a copy must fit where its source did.

use consign_core_api::error::Phase;
use consign_core_api::{MaxPayload, Problem};

use super::join::Joined;
use crate::admission::{AdmissionLimits, Class};
use crate::codes;
use crate::profile::Size;

/// What the library's own headers add to a copy.
const HEADERS: usize = 4 << 10;

/// The largest message that a destination's copies may be, and whose they are.
#[derive(Clone, Copy)]
struct Need {
    bytes: usize,
    source: usize,
}

/// Decides the largest message of each destination.
pub(super) struct Payloads<'a> {
    joined: &'a Joined<'a>,
    /// The largest message that admission could ever admit.
    budget: Option<usize>,
    needs: Vec<Option<Need>>,
}

impl<'a> Payloads<'a> {
    pub(super) fn new(joined: &'a Joined<'a>, admission: Option<&AdmissionLimits>) -> Self {
        let budget = admission.map(|limits| limits.largest_message(Class::External));
        Self { joined, budget, needs: vec![None; joined.specs.len()] }
    }

    /// Decides for one destination: what is written; else, where it takes copies, that of the largest source plus
    /// 4 KiB; else 1 MiB. `None` where nothing is legal. Each source must come before what takes its copies.
    pub(super) fn limit(
        &mut self,
        node: usize,
        written: Option<Option<MaxPayload>>,
        problems: &mut Vec<Problem>,
    ) -> Option<MaxPayload> {
        let joined = self.joined;
        let limit = match (written?, self.needs[node]) {
            (Some(written), need) => {
                problems.extend(need.and_then(|need| too_small(joined, node, written, need)));
                written
            }
            (None, Some(need)) => derived(joined, node, need, problems)?,
            (None, None) => MaxPayload::default(),
        };
        problems.extend(self.budget.and_then(|budget| above_budget(joined, node, limit, budget)));
        let bytes = limit.get().saturating_add(HEADERS);
        for (_, taker) in joined.graph.copies(node) {
            if self.needs[taker].is_none_or(|need| need.bytes < bytes) {
                self.needs[taker] = Some(Need { bytes, source: node });
            }
        }
        Some(limit)
    }
}

fn problem(joined: &Joined<'_>, node: usize, phase: Phase, message: String, help: String) -> Problem {
    Problem::new(phase, codes::FIELD_OUT_OF_RANGE, message, help)
        .at_text(joined.graph.name(node))
        .ranked(1000)
}

fn size(bytes: usize) -> Size {
    Size(bytes as u64)
}

fn too_small(joined: &Joined<'_>, node: usize, written: MaxPayload, need: Need) -> Option<Problem> {
    let (name, source) = (joined.graph.name(node), joined.graph.name(need.source));
    (written.get() < need.bytes).then(|| {
        let message = format!("takes copies from {source:?} that may be larger than its own limit");
        let help = format!(
            "use publish.max_payload = {} at least: the largest message of {source:?} and 4KiB of headers; or leave it \
             out, which is the same",
            size(need.bytes)
        );
        let problem = problem(joined, node, Phase::Topology, message, help);
        problem.field(format!("{name}.publish.max_payload"), size(written.get()))
    })
}

fn derived(joined: &Joined<'_>, node: usize, need: Need, problems: &mut Vec<Problem>) -> Option<MaxPayload> {
    let legal = MaxPayload::new(need.bytes);
    if legal.is_err() {
        let source = joined.graph.name(need.source);
        let message =
            format!("takes copies from {source:?} of {}, and no message may be so large", size(need.bytes));
        let help = format!("lower publish.max_payload of {source:?} by 4KiB at least");
        problems.push(problem(joined, node, Phase::Topology, message, help));
    }
    legal.ok()
}

fn above_budget(joined: &Joined<'_>, node: usize, limit: MaxPayload, budget: usize) -> Option<Problem> {
    (limit.get() > budget).then(|| {
        let message = "a message of the largest size would never be admitted".to_owned();
        let help = format!("use publish.max_payload = {} at most, or raise admission.bytes", size(budget));
        let problem = problem(joined, node, Phase::Fields, message, help);
        problem.field("publish.max_payload", size(limit.get())).field("admits at most", size(budget))
    })
}
