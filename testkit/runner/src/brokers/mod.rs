//! Brokers for tests: found, started, stopped, killed and frozen.
//!
//! A broker is provided in one of three ways, tried in this order:
//! 1. **external**: `CONSIGN_NATS_URL` names a running server;
//! 2. **container**: not implemented yet; it belongs into [`nats::provide`], between the other two;
//! 3. **native**: a process that the testkit starts itself, on a free loopback port with its data in a temporary folder.
//!
//! Everything here blocks the calling thread. A server that a test starts ends with its guard, after a panic too; if the
//! whole test process is killed, a watcher ends the server and removes its data. A server that `brokers up` starts
//! runs until `brokers down`, which may be another process.

mod detached;
mod launch;
pub mod nats;
mod port;
mod ready;
mod watch;

pub use detached::{Status, down, status, up};
