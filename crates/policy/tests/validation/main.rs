//! What may start and what may not, and what the report says.

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
