//! A call that failed.

use std::error::Error as StdError;
use std::fmt;

use super::{CapabilityUnavailable, ConfigurationError};
use crate::code::Code;
use crate::failure::{Failure, FailureCategory};

/// What kind of call failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A set-up that does not start; the source is a [`ConfigurationError`].
    Configuration,
    /// The transport does not offer it; the source is a [`CapabilityUnavailable`].
    CapabilityUnavailable,
    /// The broker did not answer, refused, or is gone.
    Transport,
    /// The library, a transport or a consumer is shut down.
    Closed,
    /// A wait ended at its bound.
    TimedOut,
    /// The call itself was wrong, such as an unknown destination.
    Usage,
}

/// A call that failed: kind, category, stable code, text and source.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    failure: Failure,
}

impl Error {
    /// Makes an error of a kind from a failure.
    #[must_use]
    pub fn new(kind: ErrorKind, failure: Failure) -> Self {
        Self(Box::new(Inner { kind, failure }))
    }

    /// Returns the kind.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns who can do something about it.
    #[must_use]
    pub fn category(&self) -> FailureCategory {
        self.0.failure.category()
    }

    /// Returns the stable code.
    #[must_use]
    pub fn code(&self) -> Code {
        self.0.failure.code()
    }

    /// Returns the failure beneath.
    #[must_use]
    pub const fn failure(&self) -> &Failure {
        &self.0.failure
    }
}

impl From<CapabilityUnavailable> for Error {
    fn from(refusal: CapabilityUnavailable) -> Self {
        let failure = Failure::new(FailureCategory::Configuration, refusal.code(), refusal.to_string());
        Self::new(ErrorKind::CapabilityUnavailable, failure.with_source(refusal))
    }
}

impl From<ConfigurationError> for Error {
    fn from(report: ConfigurationError) -> Self {
        let code =
            report.problems().first().map_or(crate::codes::CAPABILITY_UNAVAILABLE, super::Problem::code);
        let failure = Failure::new(FailureCategory::Configuration, code, report.to_string());
        Self::new(ErrorKind::Configuration, failure.with_source(report))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.failure, f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {:?}", self.0.kind, self.0.failure)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.failure.source()
    }
}
