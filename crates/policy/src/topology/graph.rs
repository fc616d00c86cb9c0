//! Destinations and the edges between them.

use std::collections::HashMap;
use std::fmt;

use consign_core_api::Problem;
use consign_core_api::error::Phase;
use consign_core_api::spi::RetryStrategy;

use super::{Rungs, Search};
use crate::codes;
use crate::profile::ProfileSpecs;

/// Why a message goes from one destination to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EdgeKind {
    /// It is to be tried again.
    Retry,
    /// It failed for good.
    DeadLetter,
}

impl EdgeKind {
    pub(super) const BOTH: [Self; 2] = [Self::Retry, Self::DeadLetter];

    pub(crate) const fn field(self) -> &'static str {
        match self {
            Self::Retry => "retry.destination",
            Self::DeadLetter => "dead_letter",
        }
    }
}

impl fmt::Display for EdgeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Retry => "RETRY",
            Self::DeadLetter => "DEAD_LETTER",
        })
    }
}

/// An edge as it is written, whether or not its end has a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Edge<'a> {
    /// The destination that names the other.
    pub from: &'a str,
    /// Why a message goes there.
    pub kind: EdgeKind,
    /// The destination that is named.
    pub to: &'a str,
}

/// Where an edge of a node leads.
#[derive(Debug, Clone, Copy)]
pub(super) enum Target<'a> {
    /// There is no edge of this kind.
    None,
    /// To a node.
    Node(usize),
    /// To a name without a profile.
    Unregistered(&'a str),
}

/// A destination.
#[derive(Debug)]
pub(super) struct Node<'a> {
    pub(super) name: &'a str,
    /// In the order of [`EdgeKind::BOTH`].
    pub(super) targets: [Target<'a>; 2],
    /// Whether the strategy uses the retry edge.
    pub(super) retries_there: bool,
}

impl Node<'_> {
    /// Returns the node that an edge leads to.
    pub(super) const fn next(&self, edge: usize) -> Option<usize> {
        match self.targets[edge] {
            Target::Node(to) => Some(to),
            Target::None | Target::Unregistered(_) => None,
        }
    }

    /// Returns the node that copies for a retry go to.
    pub(super) const fn retry(&self) -> Option<usize> {
        if self.retries_there { self.next(EdgeKind::Retry as usize) } else { None }
    }

    /// Returns the node of the dead letter.
    pub(super) const fn dead_letter(&self) -> Option<usize> {
        self.next(EdgeKind::DeadLetter as usize)
    }
}

/// Retries and dead letters together, in the order of the destinations' names.
#[derive(Debug)]
pub struct Graph<'a> {
    pub(super) nodes: Vec<Node<'a>>,
}

impl<'a> Graph<'a> {
    /// Joins raw profiles. Expected O(V + E) time, O(V) space; V destinations have at most 2V edges.
    #[must_use]
    pub fn of(specs: &'a ProfileSpecs) -> Self {
        let mut known = HashMap::with_capacity(specs.destinations.len());
        known.extend(specs.destinations.keys().enumerate().map(|(node, name)| (name.as_str(), node)));
        let target = |named: &'a Option<String>| match named.as_deref() {
            None => Target::None,
            Some(name) => known.get(name).map_or(Target::Unregistered(name), |node| Target::Node(*node)),
        };
        let nodes = specs.iter().map(|(name, spec)| Node {
            name,
            targets: [target(&spec.retry.destination), target(&spec.dead_letter)],
            retries_there: spec.retry.strategy == RetryStrategy::RetryDestination,
        });
        Self { nodes: nodes.collect() }
    }

    /// Returns every edge, in the order of the names, a retry before a dead letter.
    pub fn edges(&self) -> impl Iterator<Item = Edge<'a>> {
        self.nodes.iter().flat_map(move |node| {
            EdgeKind::BOTH.into_iter().zip(node.targets).filter_map(move |(kind, target)| {
                let to = match target {
                    Target::None => return None,
                    Target::Node(to) => self.nodes[to].name,
                    Target::Unregistered(name) => name,
                };
                Some(Edge { from: node.name, kind, to })
            })
        })
    }

    /// Finds what is wrong with the graph: `UNREGISTERED_DESTINATION` for each edge that leads nowhere,
    /// `DESTINATION_CYCLE` for each edge that closes a circle, `RETRY_DESTINATION_SHARED` for each retry destination
    /// that is reached from elsewhere too. O(V + E) time and space.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        let search = Search::run(self);
        let rungs = Rungs::of(self, &search);
        let mut problems = self.unregistered();
        problems.extend(search.problems);
        problems.extend(rungs.problems);
        problems
    }

    pub(crate) fn name(&self, node: usize) -> &'a str {
        self.nodes[node].name
    }

    /// Returns the node that copies for a retry go to; an edge that the strategy does not use is none.
    pub(crate) fn retry(&self, node: usize) -> Option<usize> {
        self.nodes[node].retry()
    }

    /// Returns the node that is named for copies for a retry, used or not.
    pub(crate) fn named_for_retry(&self, node: usize) -> Option<usize> {
        self.nodes[node].next(EdgeKind::Retry as usize)
    }

    /// Returns the node of the dead letter.
    pub(crate) fn dead_letter(&self, node: usize) -> Option<usize> {
        self.nodes[node].dead_letter()
    }

    /// Returns the nodes that take a node's copies.
    pub(crate) fn copies(&self, node: usize) -> impl Iterator<Item = (EdgeKind, usize)> {
        let retry = self.retry(node).map(|to| (EdgeKind::Retry, to));
        retry.into_iter().chain(self.dead_letter(node).map(|to| (EdgeKind::DeadLetter, to)))
    }

    pub(crate) fn unregistered(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for node in &self.nodes {
            for (rank, (kind, target)) in (0..).zip(EdgeKind::BOTH.into_iter().zip(node.targets)) {
                let Target::Unregistered(name) = target else { continue };
                let problem = Problem::new(
                    Phase::Topology,
                    codes::UNREGISTERED_DESTINATION,
                    format!("leads to {name:?}, which has no profile"),
                    format!("write a profile for {name:?}, or correct the name"),
                );
                problems.push(problem.at_text(node.name).field(kind.field(), name).ranked(rank));
            }
        }
        problems
    }
}
