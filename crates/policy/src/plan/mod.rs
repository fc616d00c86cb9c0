//! Everything that is decided before a broker is asked, with one report.
//!
//! ```
//! use consign_core_api::{DeliveryGuarantee, OrderingScope};
//! use consign_policy::{Catalog, ProfileSpec, ProfileSpecs, plan};
//!
//! let keyed = ProfileSpec::new("main", DeliveryGuarantee::AtLeastOnce, OrderingScope::Key);
//! let report = plan(&ProfileSpecs::new().with("orders", keyed), &Catalog::new()).unwrap_err();
//! assert_eq!(report.codes(), ["TRANSPORT_UNBOUND", "KEY_ORDERING_WITHOUT_KEY_RESOLVER"]);
//! ```

mod admission;
mod catalog;
mod draft;
mod examine;
mod join;
mod names;
mod payload;
mod record;
mod setup;

use consign_core_api::ConfigurationError;

pub use catalog::Catalog;
pub use record::Plan;

use crate::profile::ProfileSpecs;
use crate::topology::{Graph, Rungs, Search};
use join::Joined;

/// Decides whether a set-up may start: values, rules, topology, the brokers' own rules, and capabilities. Pure: no I/O.
///
/// Rules look at every profile; a broker's rules at each whose values are legal; capabilities at each that the broker
/// found no fault with. O(V + E) in destinations and edges, apart from sorting the problems.
///
/// # Errors
/// Everything that is wrong, ordered by phase, destination and rule.
pub fn plan(specs: &ProfileSpecs, catalog: &Catalog) -> Result<Plan, ConfigurationError> {
    let graph = Graph::of(specs);
    let search = Search::run(&graph);
    let Rungs { rungs, problems: shared } = Rungs::of(&graph, &search);
    let joined = Joined::new(specs, &graph, rungs);

    let mut problems = graph.unregistered();
    let admission = admission::check(&specs.admission, &mut problems);
    names::check_repeated(specs, &mut problems);
    let (drafts, names) = examine::all(&joined, &search, catalog, admission.as_ref(), &mut problems);
    names::check_physical(&drafts, &names, &mut problems);
    draft::check_copies(&joined, &drafts, &mut problems);
    problems.extend(search.problems);
    problems.extend(shared);
    ConfigurationError::check(problems)?;
    Ok(joined.plan(drafts, admission.unwrap_or_default()))
}
