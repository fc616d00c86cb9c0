//! Profiles, joined by their edges.

use std::iter::successors;

use consign_core_api::DestinationName;

use super::Plan;
use super::draft::Draft;
use super::record::{Planned, Ties};
use crate::admission::AdmissionLimits;
use crate::profile::{ProfileSpec, ProfileSpecs, Role};
use crate::topology::{Graph, Rung};

/// Raw profiles with what others make of them. A node is a place in the order of the names.
pub(super) struct Joined<'a> {
    pub(super) specs: Vec<&'a ProfileSpec>,
    /// The names; `None` where one is not legal.
    pub(super) names: Vec<Option<DestinationName>>,
    pub(super) graph: &'a Graph<'a>,
    rungs: Vec<Option<Rung>>,
    takes_dead_letters: Vec<bool>,
}

impl<'a> Joined<'a> {
    pub(super) fn new(specs: &'a ProfileSpecs, graph: &'a Graph<'a>, rungs: Vec<Option<Rung>>) -> Self {
        let mut takes_dead_letters = vec![false; rungs.len()];
        for node in 0..rungs.len() {
            if let Some(dead_letter) = graph.dead_letter(node) {
                takes_dead_letters[dead_letter] = true;
            }
        }
        let (names, specs) = specs.iter().map(|(name, spec)| (DestinationName::new(name).ok(), spec)).unzip();
        Self { specs, names, graph, rungs, takes_dead_letters }
    }

    /// Returns what others make of a node.
    pub(super) fn role(&self, node: usize) -> Role<'a> {
        let rung = self.rungs[node];
        Role {
            origin: rung.map(|rung| self.graph.name(rung.origin)),
            place: rung.map_or(0, |rung| rung.place),
            dead_letter: self.takes_dead_letters[node],
        }
    }

    /// Returns the node whose limit of attempts, dead letter and rule of exhaustion govern a node.
    pub(super) fn governor(&self, node: usize) -> usize {
        self.rungs[node].map_or(node, |rung| rung.origin)
    }

    /// Makes the plan of drafts that nothing is wrong with: each node has become a destination, at the same place.
    pub(super) fn plan(&self, drafts: Vec<Option<Draft<'_>>>, admission: AdmissionLimits) -> Plan {
        let destinations: Vec<Planned> = drafts.into_iter().filter_map(|draft| draft?.planned()).collect();
        let name = |node: usize| destinations.get(node).map(|known| known.profile.name().clone());
        let mut ties: Vec<Ties> = Vec::with_capacity(destinations.len());
        for (node, rung) in self.rungs.iter().enumerate() {
            let origin = rung.and_then(|rung| name(rung.origin));
            let first = if rung.is_none() { self.graph.retry(node) } else { None };
            let rungs = successors(first, |rung| self.graph.retry(*rung)).filter_map(name).collect();
            ties.push(Ties { origin, rungs, dead_letter_origins: Vec::new() });
        }
        for node in 0..ties.len() {
            if let Some(dead_letter) = self.graph.dead_letter(node) {
                ties[dead_letter].dead_letter_origins.extend(name(node));
            }
        }
        Plan { destinations, ties, admission }
    }
}
