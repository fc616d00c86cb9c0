//! Profiles from TOML.

use consign_core_api::error::Phase;
use consign_core_api::{ConfigurationError, Problem};

use super::ProfileSpecs;
use crate::codes;

impl ProfileSpecs {
    /// Reads profiles from TOML. Fields that do not exist are refused. Nothing else is checked yet.
    ///
    /// # Errors
    /// `PROFILE_SYNTAX` with its line, alone.
    pub fn from_toml(text: &str) -> Result<Self, ConfigurationError> {
        ::toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let line = 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
            let message = format!("line {line}: {}", error.message());
            let help = "correct the line; everything else is checked afterwards";
            Problem::new(Phase::Syntax, codes::PROFILE_SYNTAX, message, help).field("line", line).into()
        })
    }
}
