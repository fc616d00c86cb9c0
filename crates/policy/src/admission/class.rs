//! Who publishes, and what each of them has in flight.

use std::fmt;

/// Who publishes. A shutdown closes the classes one after the other, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Class {
    /// The application, outside a handler. Closed at once.
    External,
    /// A handler, through its context. Closed when the handlers are drained.
    Handler,
    /// The library itself: retry and dead-letter copies. Has a reserved share; closed last.
    Internal,
}

impl Class {
    /// All three, in the order in which they are closed.
    pub const ALL: [Self; 3] = [Self::External, Self::Handler, Self::Internal];

    /// Returns the name, such as `external`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::External => "external",
            Self::Handler => "handler",
            Self::Internal => "internal",
        }
    }

    pub(super) const fn index(self) -> usize {
        match self {
            Self::External => 0,
            Self::Handler => 1,
            Self::Internal => 2,
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What one class has in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ClassUsage {
    /// Messages admitted and without a verdict.
    pub in_flight: u64,
    /// Bytes charged: those of messages in flight, and those that a client still holds after a verdict.
    pub bytes: u64,
}

/// What is in flight, per class. Read while others publish, it is a sum of moments, not one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    pub(super) classes: [ClassUsage; 3],
}

impl Usage {
    /// Returns what a class has in flight.
    #[must_use]
    pub const fn of(&self, class: Class) -> ClassUsage {
        self.classes[class.index()]
    }

    /// Returns the messages in flight of all classes.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.classes.iter().map(|class| class.in_flight).sum()
    }

    /// Returns the bytes charged to all classes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.classes.iter().map(|class| class.bytes).sum()
    }
}
