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
pub mod consumer;
mod core;
pub mod health;
pub mod inbox;
pub mod messaging;
pub mod observer;
pub mod publisher;
pub mod redrive;
mod registry;
pub mod shutdown;
mod slab;

pub use consumer::{Consumer, Delivery, Handler, HandlerContext, HandlerFailure, idempotent};
pub use inbox::Inbox;
pub use messaging::{Builder, Messaging};
pub use observer::{Observed, Observer};
pub use publisher::{Pipeline, Publisher, Receipt};
pub use redrive::{RedriveOptions, RedriveReport};
pub use shutdown::ShutdownReport;
