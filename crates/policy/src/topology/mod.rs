//! The graph of retries and dead letters over all raw profiles.
//!
//! ```
//! use consign_core_api::{DeliveryGuarantee, OrderingScope};
//! use consign_policy::topology::Graph;
//! use consign_policy::{ProfileSpec, ProfileSpecs};
//!
//! let profile = || ProfileSpec::new("main", DeliveryGuarantee::AtLeastOnce, OrderingScope::None);
//! let specs = ProfileSpecs::new()
//!     .with("orders", profile().dead_letter("orders.dead"))
//!     .with("orders.dead", profile().dead_letter("orders"));
//! let problems = Graph::of(&specs).problems();
//! assert_eq!(problems[0].code(), "DESTINATION_CYCLE");
//! assert!(problems[0].message().contains("orders -DEAD_LETTER-> orders.dead -DEAD_LETTER-> orders"));
//! ```

mod graph;
mod rungs;
mod search;

pub use graph::{Edge, EdgeKind, Graph};

pub(crate) use rungs::{Rung, Rungs};
pub(crate) use search::Search;
