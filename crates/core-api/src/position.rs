//! Where a message stands at the broker.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Where a message stands: one form per kind of log. It can be written as text and read back.
///
/// ```
/// use consign_core_api::MessagePosition;
/// let position = MessagePosition::Offset { partition: 3, offset: 41 };
/// assert_eq!(position.to_string(), "offset:3:41");
/// assert_eq!("offset:3:41".parse::<MessagePosition>().unwrap(), position);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MessagePosition {
    /// An offset in a partition of a log.
    Offset {
        /// The partition.
        partition: u32,
        /// The offset.
        offset: u64,
    },
    /// A sequence number in a named stream.
    Sequence {
        /// The stream.
        stream: Arc<str>,
        /// The sequence number.
        sequence: u64,
    },
    /// An entry of a ledger.
    Entry {
        /// The ledger.
        ledger: u64,
        /// The entry in the ledger.
        entry: u64,
        /// The partition; `None` where the topic has none.
        partition: Option<u32>,
        /// The index in the entry's batch; `None` where the entry is one message.
        batch_index: Option<u32>,
    },
}

impl fmt::Display for MessagePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Offset { partition, offset } => write!(f, "offset:{partition}:{offset}"),
            Self::Sequence { stream, sequence } => write!(f, "sequence:{sequence}:{stream}"),
            Self::Entry { ledger, entry, partition, batch_index } => {
                let optional = |n: &Option<u32>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
                write!(f, "entry:{ledger}:{entry}:{}:{}", optional(partition), optional(batch_index))
            }
        }
    }
}

/// A text that is no position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a message position")]
#[non_exhaustive]
pub struct InvalidPosition;

impl FromStr for MessagePosition {
    type Err = InvalidPosition;

    fn from_str(text: &str) -> Result<Self, InvalidPosition> {
        let (kind, rest) = text.split_once(':').ok_or(InvalidPosition)?;
        match kind {
            "offset" => {
                let (partition, offset) = rest.split_once(':').ok_or(InvalidPosition)?;
                Ok(Self::Offset { partition: number(partition)?, offset: number(offset)? })
            }
            "sequence" => {
                let (sequence, stream) = rest.split_once(':').ok_or(InvalidPosition)?;
                Ok(Self::Sequence { stream: Arc::from(stream), sequence: number(sequence)? })
            }
            "entry" => {
                let mut parts = rest.split(':');
                let mut part = || parts.next().ok_or(InvalidPosition);
                let position = Self::Entry {
                    ledger: number(part()?)?,
                    entry: number(part()?)?,
                    partition: optional(part()?)?,
                    batch_index: optional(part()?)?,
                };
                if parts.next().is_some() { Err(InvalidPosition) } else { Ok(position) }
            }
            _ => Err(InvalidPosition),
        }
    }
}

fn number<N: FromStr>(text: &str) -> Result<N, InvalidPosition> {
    text.parse().map_err(|_| InvalidPosition)
}

fn optional(text: &str) -> Result<Option<u32>, InvalidPosition> {
    if text == "-" { Ok(None) } else { number(text).map(Some) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn positions() -> impl Strategy<Value = MessagePosition> {
        let offset = (any::<u32>(), any::<u64>())
            .prop_map(|(partition, offset)| MessagePosition::Offset { partition, offset });
        let sequence = ("[A-Za-z:_-]{0,12}", any::<u64>())
            .prop_map(|(stream, sequence)| MessagePosition::Sequence { stream: stream.into(), sequence });
        let entry = (any::<u64>(), any::<u64>(), any::<Option<u32>>(), any::<Option<u32>>()).prop_map(
            |(ledger, entry, partition, batch_index)| MessagePosition::Entry {
                ledger,
                entry,
                partition,
                batch_index,
            },
        );
        prop_oneof![offset, sequence, entry]
    }

    proptest! {
        #[test]
        fn every_position_reads_back(position in positions()) {
            prop_assert_eq!(position.to_string().parse::<MessagePosition>(), Ok(position));
        }

        #[test]
        fn no_text_makes_parsing_panic(text in ".*") {
            let _ = text.parse::<MessagePosition>();
        }
    }
}
