//! Retry destinations: which origin they belong to.

use consign_core_api::Problem;
use consign_core_api::error::Phase;

use super::{EdgeKind, Graph, Search};
use crate::codes;

/// A retry destination's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rung {
    /// The origin, which is no retry destination.
    pub(crate) origin: usize,
    /// The place in the origin's chain, from 1.
    pub(crate) place: u32,
}

/// The retry destinations of a graph.
#[derive(Debug)]
pub(crate) struct Rungs {
    /// For each node, its place if it is a retry destination of an origin.
    pub(crate) rungs: Vec<Option<Rung>>,
    /// What is shared and may not be.
    pub(crate) problems: Vec<Problem>,
}

/// Who leads to a retry destination.
#[derive(Clone, Copy)]
struct Entry {
    from: usize,
    /// The first other one.
    other: Option<(usize, EdgeKind)>,
    /// How many there are beside these two.
    more: usize,
}

impl Rungs {
    /// Finds them. Only edges that the strategy uses count: an unused one is a contradiction of its own. O(V + E).
    pub(crate) fn of(graph: &Graph<'_>, search: &Search) -> Self {
        let entries = entries(graph);
        let mut rungs: Vec<Option<Rung>> = vec![None; graph.nodes.len()];
        // An origin comes before its retry destinations here, unless they lead in a circle, which has no origin.
        for node in search.order.iter().rev().copied() {
            let Some(entry) = entries[node] else { continue };
            rungs[node] = match (rungs[entry.from], entries[entry.from]) {
                (Some(parent), _) => Some(Rung { place: parent.place.saturating_add(1), ..parent }),
                (None, None) => Some(Rung { origin: entry.from, place: 1 }),
                (None, Some(_)) => None,
            };
        }
        let problems =
            entries.iter().enumerate().filter_map(|(node, entry)| shared(graph, node, (*entry)?)).collect();
        Self { rungs, problems }
    }
}

/// Collects who leads to each retry destination. A loop at one node is a circle, no retry destination.
fn entries(graph: &Graph<'_>) -> Vec<Option<Entry>> {
    let mut entries: Vec<Option<Entry>> = vec![None; graph.nodes.len()];
    let mut retry: Vec<(usize, usize)> = Vec::new();
    for (from, node) in graph.nodes.iter().enumerate() {
        retry.extend(node.retry().filter(|to| *to != from).map(|to| (from, to)));
    }
    for (from, to) in retry {
        match &mut entries[to] {
            empty @ None => *empty = Some(Entry { from, other: None, more: 0 }),
            Some(entry) => entry.add(from, EdgeKind::Retry),
        }
    }
    // A dead letter that is a retry destination too: its readers take only copies of their own group, so what
    // came as a dead letter would be settled unhandled.
    for (from, node) in graph.nodes.iter().enumerate() {
        if let Some(entry) = node.dead_letter().and_then(|to| entries[to].as_mut()) {
            entry.add(from, EdgeKind::DeadLetter);
        }
    }
    entries
}

impl Entry {
    const fn add(&mut self, from: usize, kind: EdgeKind) {
        if self.other.is_none() {
            self.other = Some((from, kind));
        } else {
            self.more += 1;
        }
    }
}

fn shared(graph: &Graph<'_>, node: usize, entry: Entry) -> Option<Problem> {
    let (other, kind) = entry.other?;
    let (name, first, other) =
        (graph.nodes[node].name, graph.nodes[entry.from].name, graph.nodes[other].name);
    let more = if entry.more == 0 { String::new() } else { format!(" and {} more", entry.more) };
    let problem = Problem::new(
        Phase::Topology,
        codes::RETRY_DESTINATION_SHARED,
        format!(
            "takes the retries of {first:?} and is reached from elsewhere: {other} -{kind}-> {name}{more}"
        ),
        format!("give {other:?} a destination of its own"),
    );
    let problem = problem.field(format!("{first}.{}", EdgeKind::Retry.field()), name);
    Some(problem.field(format!("{other}.{}", kind.field()), name).at_text(name).ranked(3))
}
