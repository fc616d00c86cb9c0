//! Why something failed: category, stable code, text, and the cause beneath.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::code::Code;

/// Who can do something about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum FailureCategory {
    /// The set-up is wrong: it fails the same way until somebody changes it. Not retried.
    Configuration,
    /// The message itself is wrong: it fails the same way wherever it goes. Not retried.
    PermanentBusiness,
    /// Something between here and there is down or slow. Worth another try.
    TransientInfrastructure,
    /// A limit is reached, here or at the broker. Worth another try, later.
    Capacity,
    /// Authentication or permission. Not retried.
    Security,
}

impl FailureCategory {
    /// Tells whether the same message may succeed later without a change of message or set-up.
    #[must_use]
    pub const fn is_transient(self) -> bool {
        matches!(self, Self::TransientInfrastructure | Self::Capacity)
    }

    /// Returns the written form, such as `TRANSIENT_INFRASTRUCTURE`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Configuration => "CONFIGURATION",
            Self::PermanentBusiness => "PERMANENT_BUSINESS",
            Self::TransientInfrastructure => "TRANSIENT_INFRASTRUCTURE",
            Self::Capacity => "CAPACITY",
            Self::Security => "SECURITY",
        }
    }
}

impl fmt::Display for FailureCategory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

type Source = Arc<dyn StdError + Send + Sync + 'static>;

/// A failure: category, stable code, a text for people, and the native cause for a downcast.
///
/// The text is lower-case and no contract. Cloning is cheap.
#[derive(Clone)]
pub struct Failure(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    category: FailureCategory,
    code: Code,
    message: Cow<'static, str>,
    source: Option<Source>,
}

impl Failure {
    /// Describes a failure.
    #[must_use]
    pub fn new(category: FailureCategory, code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Arc::new(Inner { category, code, message: message.into(), source: None }))
    }

    /// Adds the native cause, which [`source`](StdError::source) returns for a downcast.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync + 'static>>) -> Self {
        Arc::make_mut(&mut self.0).source = Some(Arc::from(source.into()));
        self
    }

    /// Returns who can do something about it.
    #[must_use]
    pub fn category(&self) -> FailureCategory {
        self.0.category
    }

    /// Returns the stable code.
    #[must_use]
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// Returns the text for people; it is no contract.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code, self.0.message)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.0.category, self.0.code, self.0.message)?;
        let mut cause = self.source();
        while let Some(error) = cause {
            write!(f, "; caused by: {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl StdError for Failure {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_native_cause_is_reached_by_downcast_and_not_repeated_in_the_text() {
        let failure = Failure::new(FailureCategory::Capacity, Code::new("FULL"), "the queue is full")
            .with_source(fmt::Error);
        assert!(failure.source().unwrap().downcast_ref::<fmt::Error>().is_some());
        assert_eq!(failure.to_string(), "FULL: the queue is full");
        assert!(format!("{failure:?}").contains("caused by"));
    }

    #[test]
    fn only_infrastructure_and_capacity_are_transient() {
        use FailureCategory::*;
        for (category, transient) in [
            (Configuration, false),
            (PermanentBusiness, false),
            (TransientInfrastructure, true),
            (Capacity, true),
            (Security, false),
        ] {
            assert_eq!(category.is_transient(), transient);
            assert_eq!(serde_json::to_string(&category).unwrap(), format!("\"{category}\""));
        }
    }
}
