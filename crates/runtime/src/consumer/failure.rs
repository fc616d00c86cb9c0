//! How a handler fails.

use std::error::Error as StdError;
use std::fmt;

use consign_core_api::{Code, Error, Failure, FailureCategory, NotConfirmed, Rejection};

use crate::codes;

/// How a handler fails: for now, or for good.
///
/// `?` turns any error into a transient failure with the code `HANDLER_FAILED`; a publish that was not confirmed, a
/// rejection and an error of this library keep their code and category. Hence this type is no `Error` itself.
#[derive(Clone)]
pub struct HandlerFailure(Failure);

impl HandlerFailure {
    /// A failure that may go away by itself: the message is tried again as its profile says.
    #[must_use]
    pub fn transient(code: impl Into<Code>, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(FailureCategory::TransientInfrastructure, code, source)
    }

    /// A failure that another attempt cannot mend: the message goes where its profile sends final failures.
    #[must_use]
    pub fn permanent(code: impl Into<Code>, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(FailureCategory::PermanentBusiness, code, source)
    }

    /// A failure of a stated category.
    #[must_use]
    pub fn new(
        category: FailureCategory,
        code: impl Into<Code>,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        let source = source.into();
        Self(Failure::new(category, code.into(), source.to_string()).with_source(source))
    }

    /// Takes over a failure that is described already.
    #[must_use]
    pub const fn from_failure(failure: Failure) -> Self {
        Self(failure)
    }

    /// Returns the code.
    #[must_use]
    pub fn code(&self) -> Code {
        self.0.code()
    }

    /// Returns the category, which decides whether there is another attempt.
    #[must_use]
    pub fn category(&self) -> FailureCategory {
        self.0.category()
    }

    /// Returns the failure.
    #[must_use]
    pub const fn failure(&self) -> &Failure {
        &self.0
    }

    pub(crate) fn into_failure(self) -> Failure {
        self.0
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for HandlerFailure {
    fn from(error: E) -> Self {
        let known = described(&error);
        let (category, code) = known
            .map_or((FailureCategory::TransientInfrastructure, codes::HANDLER_FAILED), |failure| {
                (failure.category(), failure.code())
            });
        Self::new(category, code, error)
    }
}

/// Looks through an error and its causes for one of ours, which knows its category and code.
fn described<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Failure> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(not_confirmed) = error.downcast_ref::<NotConfirmed>() {
            return Some(not_confirmed.failure());
        }
        if let Some(rejection) = error.downcast_ref::<Rejection>() {
            return Some(rejection.failure());
        }
        if let Some(ours) = error.downcast_ref::<Error>() {
            return Some(ours.failure());
        }
        cause = error.source();
    }
    None
}

impl fmt::Display for HandlerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for HandlerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> NotConfirmed {
        let failure = Failure::new(FailureCategory::Security, Code::new("FORBIDDEN"), "no");
        NotConfirmed::Rejected(Rejection::not_transmitted(failure, None))
    }

    #[derive(Debug, thiserror::Error)]
    #[error("wrapped")]
    struct Wrapped(#[source] NotConfirmed);

    #[test]
    fn a_plain_error_is_transient() {
        fn fails() -> Result<(), HandlerFailure> {
            Err(fmt::Error)?
        }
        let failure = fails().unwrap_err();
        assert_eq!(failure.category(), FailureCategory::TransientInfrastructure);
        assert_eq!(failure.code(), "HANDLER_FAILED");
        assert!(failure.failure().source().is_some_and(|source| source.is::<fmt::Error>()));
    }

    #[test]
    fn a_publish_that_was_not_confirmed_keeps_code_and_category_however_deep_it_lies() {
        for failure in [HandlerFailure::from(refused()), HandlerFailure::from(Wrapped(refused()))] {
            assert_eq!(failure.code(), "FORBIDDEN");
            assert_eq!(failure.category(), FailureCategory::Security);
        }
    }

    #[test]
    fn codes_of_the_application_are_kept() {
        let failure = HandlerFailure::permanent("CARD_DECLINED", "insufficient funds");
        assert_eq!(failure.to_string(), "CARD_DECLINED: insufficient funds");
        assert_eq!(failure.category(), FailureCategory::PermanentBusiness);
        assert_eq!(HandlerFailure::transient("DOWN", fmt::Error).code(), "DOWN");
    }
}
