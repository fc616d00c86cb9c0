//! Profiles, joined by their edges.

use consign_core_api::Problem;

use super::Plan;
use super::catalog::Catalog;
use super::draft::Draft;
use super::record::Planned;
use crate::admission::AdmissionLimits;
use crate::profile::{Fields, ProfileSpec, ProfileSpecs, Role, Subject, check_rules};
use crate::topology::{Graph, Rung, Rungs};

/// Raw profiles with what others make of them. A node is a place in the order of the names.
pub(super) struct Joined<'a> {
    pub(super) specs: Vec<&'a ProfileSpec>,
    pub(super) graph: &'a Graph<'a>,
    pub(super) rungs: &'a Rungs,
    pub(super) roles: Vec<Role<'a>>,
}

impl<'a> Joined<'a> {
    pub(super) fn new(specs: &'a ProfileSpecs, graph: &'a Graph<'a>, rungs: &'a Rungs) -> Self {
        let role = |rung: &Option<Rung>| Role {
            origin: rung.map(|rung| graph.name(rung.origin)),
            place: rung.map_or(0, |rung| rung.place),
            dead_letter: false,
        };
        let mut roles: Vec<Role<'a>> = rungs.rungs.iter().map(role).collect();
        for node in 0..roles.len() {
            if let Some(dead_letter) = graph.dead_letter(node) {
                roles[dead_letter].dead_letter = true;
            }
        }
        Self { specs: specs.iter().map(|(_, spec)| spec).collect(), graph, rungs, roles }
    }

    /// Returns the node whose limit of attempts, dead letter and rule of exhaustion govern a node.
    pub(super) fn governor(&self, node: usize) -> usize {
        self.rungs.rungs[node].map_or(node, |rung| rung.origin)
    }

    pub(super) fn check_fields(&self, catalog: &Catalog, problems: &mut Vec<Problem>) -> Vec<Fields> {
        let check = |node: usize| {
            Fields::check(self.graph.name(node), self.specs[node], self.roles[node], catalog, problems)
        };
        let mut fields: Vec<Fields> = (0..self.specs.len()).map(check).collect();
        for node in 0..fields.len() {
            // A limit of a retry destination's own was refused; where none is written, its origin's holds.
            let governing = fields[self.governor(node)].retry.max_attempts;
            let own = &mut fields[node].retry.max_attempts;
            *own = own.and(governing);
        }
        fields
    }

    pub(super) fn check_rules(&self, fields: &[Fields], problems: &mut Vec<Problem>) {
        for (node, fields) in fields.iter().enumerate() {
            let (name, spec, role) = (self.graph.name(node), self.specs[node], self.roles[node]);
            check_rules(&Subject { name, spec, fields, role }, problems);
        }
    }

    /// Makes the plan of drafts that nothing is wrong with.
    pub(super) fn plan(&self, drafts: Vec<Option<Draft<'_>>>, admission: AdmissionLimits) -> Plan {
        let mut destinations: Vec<Planned> =
            drafts.into_iter().flatten().filter_map(Draft::planned).collect();
        // Without a problem every node became a destination, so that nodes are places here too.
        for node in 0..destinations.len().min(self.specs.len()) {
            let name = destinations[node].profile.name().clone();
            if let Some(origin) = self.rungs.rungs[node].map(|rung| rung.origin) {
                destinations[node].origin = Some(destinations[origin].profile.name().clone());
            }
            if let Some(dead_letter) = self.graph.dead_letter(node) {
                destinations[dead_letter].dead_letter_origins.push(name);
            }
        }
        self.fill_rungs(&mut destinations);
        Plan { destinations, admission }
    }

    fn fill_rungs(&self, destinations: &mut [Planned]) {
        for origin in 0..destinations.len() {
            if self.rungs.rungs[origin].is_some() {
                continue;
            }
            let mut next = self.graph.retry(origin);
            while let Some(rung) = next {
                let name = destinations[rung].profile.name().clone();
                destinations[origin].rungs.push(name);
                next = self.graph.retry(rung);
            }
        }
    }
}
