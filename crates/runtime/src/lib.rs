//! What runs in Consign: [`Messaging`], publishers, deadlines, the consumer driver, retries, dead letters, shutdown.
//!
//! The runtime knows transports only through the seam in `consign_core_api::spi`, and takes every decision from
//! `consign_policy`. Applications reach it through the facade crate `consign`.
//!
//! | room | what it holds |
//! |---|---|
//! | [`messaging`] | the handle, and how it is built |
//! | [`publisher`] | one message, many, a window |
//! | [`consumer`] | handlers, lanes, settlement, retries |
//! | [`inbox`] | effects and message ids in one transaction |
//! | [`redrive`] | out of a dead letter, back to its origin |
//! | [`observer`] | everything that happens |
//! | [`health`], [`shutdown`] | how it is, and how it ends |

pub mod clock;
pub mod codes;
mod core;
pub mod health;
pub mod messaging;
pub mod observer;
pub mod publisher;
mod registry;
pub mod shutdown;
mod slab;

pub use messaging::{Builder, Messaging};
pub use observer::{Observed, Observer};
pub use publisher::{Pipeline, Publisher, Receipt};
