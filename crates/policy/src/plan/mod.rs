//! Everything that is decided before a broker is asked, with one report.

mod admission;
mod catalog;
mod record;

use consign_core_api::ConfigurationError;

pub use admission::AdmissionSetup;
pub use catalog::Catalog;
pub use record::Plan;

use crate::profile::ProfileSpecs;

/// Validates every profile.
///
/// # Errors
/// The report.
pub fn plan(specs: &ProfileSpecs, catalog: &Catalog) -> Result<Plan, ConfigurationError> {
    let _ = (specs, catalog);
    Ok(Plan::default())
}
