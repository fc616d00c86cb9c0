//! The vocabulary of Consign: guarantees, messages, outcomes, settlement, capabilities, errors, and the seam
//! that a broker adapter fills.
//!
//! This crate does no I/O, starts no task and names no broker. An application reaches it through the facade
//! crate `consign`; an adapter depends on it directly and fills [`spi`].
//!
//! | room | what it holds |
//! |---|---|
//! | [`guarantee`] | what an application asks of a destination |
//! | [`message`] | payload, key, headers, identity |
//! | [`codec`] | values to bytes and back |
//! | [`outcome`] | CONFIRMED, REJECTED, AMBIGUOUS |
//! | [`settlement`] | SETTLED, SETTLEMENT_UNKNOWN, and the states that lead there |
//! | [`capability`] | what a broker can do, per destination configuration |
//! | [`error`] | refused configurations, failed calls |
//! | [`spi`] | the transport seam, for adapter authors |

pub mod capability;
pub mod code;
pub mod codec;
pub mod codes;
pub mod error;
pub mod failure;
pub mod guarantee;
pub mod limit;
pub mod message;
pub mod name;
pub mod outcome;
pub mod position;
pub mod settlement;
pub mod spi;
pub mod time;

pub use capability::{Capabilities, Capability, Support};
pub use code::Code;
pub use codec::{BytesCodec, Codec, JsonCodec};
pub use error::{CapabilityUnavailable, ConfigurationError, Error, ErrorKind, Problem};
pub use failure::{Failure, FailureCategory};
pub use guarantee::{DeliveryGuarantee, ExternalSideEffectGuarantee, OrderingScope};
pub use limit::{Attempt, MaxPayload};
pub use message::{EncodedMessage, Headers, Message, MessageId, Payload, Timestamp};
pub use name::{DestinationName, GroupName, TransportName};
pub use outcome::{Ambiguity, Confirmation, NotConfirmed, PublishOutcome, Rejection};
pub use position::MessagePosition;
pub use settlement::{SettlementLevel, SettlementOutcome};
