//! One coloured depth-first search.

use std::fmt::Write as _;

use consign_core_api::Problem;
use consign_core_api::error::Phase;

use super::{EdgeKind, Graph};
use crate::codes;

/// How many steps of a circle's path are shown at each of its ends; those between are counted. It keeps a report
/// linear in the size of the graph however long its circles are.
const SHOWN: usize = 8;

/// What the search found.
#[derive(Debug)]
pub(crate) struct Search {
    /// One problem per edge that closes a circle.
    pub(crate) problems: Vec<Problem>,
    /// All nodes; each comes after those that its edges lead to, apart from edges that close a circle.
    pub(crate) order: Vec<usize>,
}

#[derive(Clone, Copy)]
enum Colour {
    /// Not seen yet.
    White,
    /// On the path, at this depth.
    Grey(usize),
    /// Done, with all that it leads to.
    Black,
}

/// A node on the path, and its next edge.
struct Step {
    node: usize,
    edge: usize,
}

impl Search {
    /// Walks every edge once, in the order of the names, a retry before a dead letter. Iterative: the path is a
    /// vector, so no depth of the graph exhausts a stack. O(V + E) time and space.
    pub(crate) fn run(graph: &Graph<'_>) -> Self {
        let mut found = Self { problems: Vec::new(), order: Vec::with_capacity(graph.nodes.len()) };
        let mut colours = vec![Colour::White; graph.nodes.len()];
        let mut path = Vec::new();
        for start in 0..graph.nodes.len() {
            if matches!(colours[start], Colour::White) {
                colours[start] = Colour::Grey(0);
                path.push(Step { node: start, edge: 0 });
            }
            while let Some(step) = path.last_mut() {
                let Step { node, edge } = *step;
                if edge == EdgeKind::BOTH.len() {
                    colours[node] = Colour::Black;
                    found.order.push(node);
                    path.pop();
                    continue;
                }
                step.edge += 1;
                let Some(next) = graph.nodes[node].next(edge) else { continue };
                match colours[next] {
                    Colour::White => {
                        colours[next] = Colour::Grey(path.len());
                        path.push(Step { node: next, edge: 0 });
                    }
                    Colour::Grey(depth) => found.problems.push(circle(graph, &path[depth..])),
                    Colour::Black => {}
                }
            }
        }
        found
    }
}

/// Describes the circle of a path whose last edge leads to its first node.
fn circle(graph: &Graph<'_>, path: &[Step]) -> Problem {
    let first = graph.nodes[path[0].node].name;
    let mut text = String::from("retries and dead letters lead in a circle: ");
    let hidden = path.len().saturating_sub(2 * SHOWN);
    for (at, step) in path.iter().enumerate().take(SHOWN).chain(path.iter().enumerate().skip(SHOWN + hidden))
    {
        if hidden > 0 && at == SHOWN + hidden {
            let _ = write!(text, "({hidden} more) ... ");
        }
        let _ = write!(text, "{} -{}-> ", graph.nodes[step.node].name, EdgeKind::BOTH[step.edge - 1]);
    }
    text.push_str(first);
    let mut problem = Problem::new(
        Phase::Topology,
        codes::DESTINATION_CYCLE,
        text,
        "remove one of these edges: a message must come to an end",
    );
    if let Some(last) = path.last() {
        let closing = format!("{}.{}", graph.nodes[last.node].name, EdgeKind::BOTH[last.edge - 1].field());
        problem = problem.field(closing, first);
    }
    problem.at_text(first).ranked(2)
}
