//! Errors: refused configurations, missing capabilities, failed calls.
//!
//! Outcomes of publishes and settlements are no errors; they are in [`outcome`](crate::outcome) and
//! [`settlement`](crate::settlement).

mod call;
mod capability;
mod configuration;

pub use call::{Error, ErrorKind};
pub use capability::CapabilityUnavailable;
pub use configuration::{ConfigurationError, Phase, Problem};
