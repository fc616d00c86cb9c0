//! NATS JetStream for Consign.
//!
//! # For application authors
//! ```no_run
//! use consign_nats::{NatsConfig, Transport};
//! let transport = Transport::new(NatsConfig::new("nats://127.0.0.1:4222"));
//! ```
//! A destination is a subject. `native.stream` names the stream that stores it (default: the destination's name,
//! where that has no dot); every other native setting is in [`NativeProfile`]. A group is a durable pull consumer.
//! KEY and PARTITION ordering need `native.partitions`, each of which is a subject `<destination>.p<i>` and a
//! durable of its own; DESTINATION and partitions hand out one delivery at a time.
//!
//! What JetStream cannot do stays visible: headers carry text only and lose the order across different names, an
//! acknowledgement says nothing about a flush to disk unless the profile declares how the server is run, and an
//! answer that names the expected stream is believed, whoever wrote it. A settlement's answer is `Processed` evidence:
//! a server with one replica that is killed comes back with an older state of the group, delivers settled messages
//! again and counts them from one. What a broken connection swallowed, or another process had when the server was killed,
//! comes again only after its settlement deadline, and an ordered unit stands still for so long; so does, with
//! `topology = "trust"`, whatever a killed server has forgotten. `docs/nats.md` has the whole page.
//!
//! # For adapter authors
//! | room | what it holds |
//! |---|---|
//! | [`config`] | servers and credentials |
//! | [`profile`] | native settings and their validator |
//! | [`capability`] | what JetStream can do, per destination |
//! | `publisher`, `consumer`, `settlement` | the three paths |
//! | `outcome` | the one place where an answer of the server becomes an outcome |
//! | `topology` | declare, verify, preflight |
//! | `wire` | messages to and from headers and bytes |
//! | `exchange` | requests under one wildcard inbox, and the link beneath |
//! | [`native`] | the client itself |

pub mod capability;
pub mod codes;
pub mod config;
pub mod native;
pub mod profile;

mod connection;
mod consumer;
mod exchange;
mod outcome;
mod partition;
mod publisher;
mod settlement;
mod topology;
mod transport;
mod wire;

pub use config::{Credentials, NatsConfig};
pub use profile::NativeProfile;
pub use transport::Transport;
