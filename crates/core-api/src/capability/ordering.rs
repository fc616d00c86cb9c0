//! Ordering is one value, from which two capabilities derive, so that they can never disagree.

use std::borrow::Cow;

use super::Support;
use crate::guarantee::OrderingScope;

/// The order that deliveries keep in this configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ordering {
    /// None.
    Unordered(Cow<'static, str>),
    /// All messages of the destination are one sequence.
    Destination(Support),
    /// Each partition is a sequence; a key has no sequence of its own.
    Partition(Support),
    /// Each key is a sequence, and so is each unit that keys are spread over.
    Key(Support),
}

impl Ordering {
    /// Derives [`Capability::OrderedStream`](super::Capability::OrderedStream). Keyed ordering implies it: the key is its unit.
    #[must_use]
    pub fn ordered_stream(&self) -> Support {
        match self {
            Self::Unordered(note) => Support::Unsupported(note.clone()),
            Self::Destination(how) | Self::Partition(how) | Self::Key(how) => how.clone(),
        }
    }

    /// Derives [`Capability::KeyedOrdering`](super::Capability::KeyedOrdering).
    #[must_use]
    pub fn keyed_ordering(&self) -> Support {
        match self {
            Self::Key(how) => how.clone(),
            Self::Unordered(note) => Support::Unsupported(note.clone()),
            Self::Destination(_) | Self::Partition(_) => {
                Support::Unsupported(Cow::Borrowed("its ordering unit is not the key"))
            }
        }
    }

    /// Tells whether what a profile asks for is kept. A wider sequence keeps a narrower one: where the destination
    /// is one sequence, each partition and each key is one too.
    #[must_use]
    pub fn keeps(&self, scope: OrderingScope) -> bool {
        let available = |how: &Support| how.is_available();
        match (scope, self) {
            (OrderingScope::None, _) => true,
            (OrderingScope::Destination, Self::Destination(how)) => available(how),
            (OrderingScope::Partition, Self::Destination(how) | Self::Partition(how) | Self::Key(how)) => {
                available(how)
            }
            (OrderingScope::Key, Self::Destination(how) | Self::Key(how)) => available(how),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keyed_ordering_implies_an_ordered_stream() {
        let keyed = Ordering::Key(Support::Native("".into()));
        assert!(keyed.ordered_stream().is_available() && keyed.keyed_ordering().is_available());
        let none = Ordering::Unordered("".into());
        assert!(!none.ordered_stream().is_available() && !none.keyed_ordering().is_available());
    }

    #[test]
    fn a_wider_sequence_keeps_a_narrower_one_and_never_the_reverse() {
        let native = || Support::Native("".into());
        let (destination, partition, key) =
            (Ordering::Destination(native()), Ordering::Partition(native()), Ordering::Key(native()));
        for scope in [OrderingScope::Destination, OrderingScope::Partition, OrderingScope::Key] {
            assert!(destination.keeps(scope));
            assert!(!Ordering::Unordered("".into()).keeps(scope));
        }
        assert!(!partition.keeps(OrderingScope::Key) && !partition.keeps(OrderingScope::Destination));
        assert!(key.keeps(OrderingScope::Partition) && !key.keeps(OrderingScope::Destination));
    }
}
