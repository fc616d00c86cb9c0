//! The pure decisions of Consign: which set-ups may start, and what is to be done with a message that failed.
//!
//! No I/O, no task, no broker word.
//!
//! | room | what it decides |
//! |---|---|
//! | [`profile`] | whether what is written of one destination is legal and free of contradictions |
//! | [`topology`] | whether retries and dead letters lead somewhere, and never in a circle |
//! | [`negotiation`] | whether a broker can give what a profile asks |
//! | [`plan()`] | all of it at once, with one report |
//! | [`admission`] | whether a message may be sent now |
//! | [`retry`] | what is done with a message that failed |

pub mod admission;
pub mod codes;
pub mod negotiation;
pub mod plan;
pub mod profile;
pub mod retry;
pub mod topology;

pub use plan::{Catalog, Plan, plan};
pub use profile::{
    AdmissionSpec, ConsumerSpec, CopiesSpec, DestinationProfile, EvidenceSpec, HeaderName, JsonPointer,
    KeySource, KeySpec, Limit, MessageIdSource, MessageIdSpec, OnExhausted, ProfileSpec, ProfileSpecs,
    PublishSpec, RetrySpec,
};
