//! Redrive: messages of a dead letter go back to where they came from.

mod options;
mod report;
mod run;

pub use options::RedriveOptions;
pub use report::{RedriveReport, RedriveResult, Redriven};

pub(crate) use run::redrive;
