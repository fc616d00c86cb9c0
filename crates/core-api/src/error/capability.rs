//! The typed refusal of what a transport cannot do.

use std::borrow::Cow;

use crate::code::Code;
use crate::codes;

/// A transport was asked for something that it does not offer in this configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {what} is unavailable: {why}")]
pub struct CapabilityUnavailable {
    code: Code,
    what: Cow<'static, str>,
    why: Cow<'static, str>,
}

impl CapabilityUnavailable {
    /// Refuses with the general code `CAPABILITY_UNAVAILABLE`.
    #[must_use]
    pub fn new(what: impl Into<Cow<'static, str>>, why: impl Into<Cow<'static, str>>) -> Self {
        Self { code: codes::CAPABILITY_UNAVAILABLE, what: what.into(), why: why.into() }
    }

    /// Refuses with a code of the adapter's own.
    #[must_use]
    pub const fn with_code(mut self, code: Code) -> Self {
        self.code = code;
        self
    }

    /// Returns the stable code.
    #[must_use]
    pub const fn code(&self) -> Code {
        self.code
    }

    /// Returns what was asked for.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Returns why it is not offered.
    #[must_use]
    pub fn why(&self) -> &str {
        &self.why
    }
}
