//! Messaging that tells the truth.
//!
//! Every publish ends, by its deadline, as CONFIRMED, REJECTED or AMBIGUOUS. A handler cannot acknowledge: a message is
//! settled only after its handler succeeded. Configurations that contradict themselves, or the broker, do not start.
//!
//! Start with [`Messaging::builder`](prelude::Messaging::builder) and the `quickstart` example.
//!
//! | feature | what it adds |
//! |---|---|
//! | `in-memory` (default) | the embedded broker, `consign::in_memory` |
//! | `toml` (default) | reading profiles from TOML |
//! | `nats` | NATS JetStream, `consign::nats` |

pub mod prelude;

pub use consign_core_api as api;
pub use consign_policy as policy;
pub use consign_runtime as runtime;

#[cfg(feature = "in-memory")]
pub use consign_in_memory as in_memory;
#[cfg(feature = "nats")]
pub use consign_nats as nats;

/// The guide: each of its blocks is a test.
#[cfg(all(any(doc, doctest), feature = "in-memory", feature = "toml"))]
#[doc = include_str!("../../../docs/guide.md")]
pub mod guide {}

/// The page that a newcomer reads first; its blocks are compiled.
#[cfg(all(doctest, feature = "in-memory", feature = "toml"))]
#[doc = include_str!("../../../README.md")]
mod readme {}
