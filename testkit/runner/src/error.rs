//! What a command answers when it does not succeed.

use std::io;

/// Short for a result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a command did not succeed. The text is for people.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused something.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A command ran and failed, or could not be run.
    #[error("{0}")]
    Command(String),
    /// The workspace could not be read.
    #[error("{0}")]
    Workspace(String),
    /// One or more rules are violated; each line names one.
    #[error("{0}")]
    Violations(String),
    /// Steps failed, and the output says which; there is nothing more to print.
    #[error("{0} failed")]
    Reported(usize),
    /// An adapter was required that is unknown or not built in.
    #[error("{0}")]
    Adapter(String),
    /// A broker could not be started, reached or stopped.
    #[error("{0}")]
    Broker(String),
}

impl Error {
    /// Adds what was being done to an error of the operating system.
    pub fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing: doing.into(), source }
    }

    /// Joins violations, one per line, under their number; `None` if there are none.
    #[must_use]
    pub fn from_violations(law: &str, violations: &[String]) -> Option<Self> {
        if violations.is_empty() {
            return None;
        }
        let mut text = format!("{law}: {} violated", violations.len());
        for violation in violations {
            text.push_str("\n  - ");
            text.push_str(violation);
        }
        Some(Self::Violations(text))
    }
}
