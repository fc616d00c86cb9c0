//! What may start and what may not, and what the report says.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod everything;
mod fields;
mod negotiation;
mod plan;
mod report;
mod rules;
mod support;
#[cfg(feature = "toml")]
mod toml;
mod topology;
