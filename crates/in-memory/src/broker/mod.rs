//! The broker itself. [`Model`] and what is beneath it are pure: no lock, no clock, no fault. [`DestinationState`]
//! puts one lock around one destination, with the faults and what is withheld; [`Shared`] holds them all.

mod assignment;
mod busy;
mod deduplication;
mod deliveries;
mod destination;
mod faults;
mod group;
mod handing;
mod member;
mod model;
mod partition;
mod progress;
mod returns;
mod shared;
mod unit;
mod wake;
mod withheld;

#[cfg(test)]
mod model_tests;

pub(crate) use destination::{Accepted, DestinationState, Inner};
pub(crate) use faults::{DeliveryFault, Faults};
pub(crate) use group::DRAIN;
pub(crate) use handing::Stale;
pub(crate) use member::{ConnectionId, Member, MemberId};
pub(crate) use model::{Appended, Full, Model};
pub(crate) use partition::{PartitionLog, Place};
pub(crate) use shared::{Behaviour, ConnectionState, Shared, tell};
pub(crate) use wake::WakeList;
pub(crate) use withheld::Answer;

pub use shared::HeldAt;
