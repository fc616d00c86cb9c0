//! What is done with a message that failed: a pure decision.
//!
//! | file | what it holds |
//! |---|---|
//! | `decision` | the six decisions and their reasons |
//! | `situation` | what the decision is made of |
//! | `decide` | the decision |
//! | `backoff` | how long to wait before the next attempt |

mod backoff;
mod decide;
mod decision;
mod situation;

pub use backoff::backoff;
pub use decide::{check_delivery_count, decide};
pub use decision::{Reason, RetryDecision};
pub use situation::{Origin, Situation};
