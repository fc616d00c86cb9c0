//! What an application asks of a destination.
//!
//! There is no exactly-once and no global order: no broker gives either once external side effects count, so no
//! name here claims them.
//!
//! ```compile_fail,E0599
//! let _ = consign_core_api::DeliveryGuarantee::ExactlyOnce;
//! ```
//! ```compile_fail,E0599
//! let _ = consign_core_api::OrderingScope::Global;
//! ```

use serde::{Deserialize, Serialize};

/// How often a message that was accepted may reach a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum DeliveryGuarantee {
    /// Never twice; a crash may lose it. The message is settled before it is handled.
    AtMostOnce,
    /// Never lost once CONFIRMED; a crash may repeat it. The message is settled after it was handled.
    AtLeastOnce,
}

/// Within which set of messages handlers start in publish order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum OrderingScope {
    /// No order is promised.
    None,
    /// All messages of the destination are one sequence.
    Destination,
    /// Each partition is a sequence.
    Partition,
    /// Each key is a sequence.
    Key,
}

impl OrderingScope {
    /// Tells whether any order is asked for.
    #[must_use]
    pub const fn is_ordered(self) -> bool {
        !matches!(self, Self::None)
    }
}

/// What protects effects outside the broker from a message that is delivered twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum ExternalSideEffectGuarantee {
    /// Nothing: a repeated delivery repeats the effect.
    None,
    /// The handler was registered as idempotent.
    IdempotencyRequired,
    /// The effect and the message id are committed in one transaction of the application's store.
    InboxTransactional,
}

macro_rules! display_as_written {
    ($($ty:ident { $($variant:ident => $text:literal),+ $(,)? })+) => {$(
        impl std::fmt::Display for $ty {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $(Self::$variant => $text),+ })
            }
        }
    )+};
}

display_as_written! {
    DeliveryGuarantee { AtMostOnce => "AT_MOST_ONCE", AtLeastOnce => "AT_LEAST_ONCE" }
    OrderingScope { None => "NONE", Destination => "DESTINATION", Partition => "PARTITION", Key => "KEY" }
    ExternalSideEffectGuarantee {
        None => "NONE",
        IdempotencyRequired => "IDEMPOTENCY_REQUIRED",
        InboxTransactional => "INBOX_TRANSACTIONAL",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_once_and_global_are_refused_where_values_come_from_outside() {
        assert!(serde_json::from_str::<DeliveryGuarantee>("\"EXACTLY_ONCE\"").is_err());
        assert!(serde_json::from_str::<OrderingScope>("\"GLOBAL\"").is_err());
    }

    #[test]
    fn the_written_form_is_what_is_displayed() {
        for scope in
            [OrderingScope::None, OrderingScope::Destination, OrderingScope::Partition, OrderingScope::Key]
        {
            assert_eq!(serde_json::to_string(&scope).unwrap(), format!("\"{scope}\""));
        }
        for effect in [
            ExternalSideEffectGuarantee::None,
            ExternalSideEffectGuarantee::IdempotencyRequired,
            ExternalSideEffectGuarantee::InboxTransactional,
        ] {
            assert_eq!(serde_json::to_string(&effect).unwrap(), format!("\"{effect}\""));
        }
        for guarantee in [DeliveryGuarantee::AtMostOnce, DeliveryGuarantee::AtLeastOnce] {
            assert_eq!(serde_json::to_string(&guarantee).unwrap(), format!("\"{guarantee}\""));
        }
    }
}
