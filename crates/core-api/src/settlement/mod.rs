//! How a delivery ends: SETTLED on the broker's evidence, or SETTLEMENT_UNKNOWN.
//!
//! ```text
//! Received -> Decoding -> Processing -> HandlerSucceeded -> SettlementSending -> Settled | SettlementUnknown
//!                 \            \
//!                  +-> Failed <-+   copied (a CONFIRMED copy) | discarded -> SettlementSending
//! Received -> before_handling (AT_MOST_ONCE) ----------------------------> SettlementSending
//! ```
//! The transitions are in [`state`]; each consumes the state before it.

mod outcome;
pub mod state;

pub use outcome::{
    SettledBecause, SettlementEvidence, SettlementLevel, SettlementOutcome, SettlementUnknown,
};
