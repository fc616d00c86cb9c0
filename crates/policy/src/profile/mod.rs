//! What is written of a destination, and what validation makes of it.
//!
//! A [`ProfileSpec`] is raw: whatever can be written. A [`DestinationProfile`] exists only after validation:
//! each value is in its range, and no two contradict each other.

mod destination;
mod fields;
mod rules;
mod source;
mod spec;

pub use destination::DestinationProfile;
pub use source::{HeaderName, JsonPointer, KeySource, MessageIdSource};
pub use spec::{
    AdmissionSpec, ConsumerSpec, CopiesSpec, EvidenceSpec, KeyFrom, KeySpec, Limit, MessageIdSpec,
    OnExhausted, ProfileSpec, ProfileSpecs, PublishSpec, RetrySpec,
};

pub(crate) use fields::{Checks, ConsumerFields, Fields, PublishFields, RetryFields, Role};
pub(crate) use rules::{Hold, Subject, check as check_rules, worst_hold};
pub(crate) use spec::Size;
