//! The outcome audit: what was said of each message, held against what the broker has.
//!
//! A run writes a [`history`]: calls, verdicts, deliveries, settlements, faults, and in the end what an independent
//! client found at the broker, all in one clock. The [`checker`] reads it once and lists every [`Lie`]. Both know
//! nothing of the broker; whoever runs a workload brings the faults and the read-back.

pub mod checker;
pub mod history;
mod observing;
pub mod table;

pub use checker::{Findings, Lie, LieKind, check};
pub use history::{Event, History, Record, Recorder};
pub use table::{Row, Table};
