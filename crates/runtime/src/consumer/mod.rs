//! Consuming: handlers, lanes, settlement, retries, copies.
//!
//! ```text
//! subscription -> intake -> lane -> handler -> lane's turn -> settlement -> the broker's reply
//!                            ^         |
//!                            |         +-> failure -> decision: in place, redelivery, copy, dead letter, discard, halt
//!                            +---------------------------+
//! ```
//! One task reads one subscription: the destination's own, and one for each of its retry destinations.

mod context;
mod copy;
mod counters;
mod delivery;
mod driver;
mod failure;
mod handle;
mod handler;
mod handling;
mod lanes;
mod mailbox;
mod marks;
mod memory;
mod pool;
mod question;
mod report;
mod shared;
mod source;
mod start;
mod timers;
mod works;

pub use context::{Cancellation, HandlerContext};
pub use counters::ConsumerCounters;
pub use delivery::Delivery;
pub use failure::HandlerFailure;
pub use handle::Consumer;
pub use handler::{Handler, Idempotent, idempotent};
pub use report::{StopReport, Unsettled};
pub use shared::LeftBecause;

pub(crate) use copy::{is_before, redriven};
pub(crate) use handling::Handling;
pub(crate) use pool::{Job, PoolFactory, decode, new_pool};
pub(crate) use question::{Question, weigh};
pub(crate) use start::{start, subscribe};
