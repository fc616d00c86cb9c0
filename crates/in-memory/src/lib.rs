//! The embedded broker of Consign: the default transport, the reference model of the contract suite, and a double
//! for users' own tests.
//!
//! [`Broker`] is the transport. It has partitions, consumer groups, redelivery with delays, revocation and
//! interruption, all in the memory of the process; it needs no network and starts no task. [`Script`] makes it fail at
//! chosen places, [`Chaos`] at random ones, and the methods of [`Broker`] look inside.
//!
//! | `native` setting | default | meaning |
//! |---|---|---|
//! | `partitions` | 1 | 1 to 1024; a key is sent to its partition as the Java client of Kafka does |
//! | `capacity` | 100000 | messages that are kept; what every group has settled is forgotten first |
//! | `deduplication_window` | none | for how long an id is recognised, such as `"2m"` or milliseconds |
//!
//! - A destination is part of the process: it springs into existence when it is first opened, in every topology mode.
//!   Opening it with other settings is refused, `TOPOLOGY_MISMATCH`.
//! - With an ordering, each partition belongs to one member of a group, and a message that comes back is delivered
//!   before every later one of its partition that is not handed out; those wait for its delay. With ordering NONE the
//!   members compete, and a message that comes back queues after its delay.
//! - A confirmation is one copy in memory, observed. A settlement is `Processed`: it is applied before it is answered,
//!   and dies with the process.
//! - Time is tokio's, so that tests with paused time are exact.

pub mod codes;

mod broker;
mod capability;
mod chaos;
mod config;
mod connection;
mod consumer;
mod native;
mod outcome;
mod profile;
mod publisher;
mod script;
mod settlement;
mod topology;

#[cfg(test)]
mod tests;

pub use broker::HeldAt;
pub use chaos::{Chaos, Seed};
pub use native::{Broker, StoredMessage};
pub use script::{PublishFault, Script, SettleFault};
