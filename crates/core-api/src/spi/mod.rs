//! The transport seam: what an adapter fills.
//!
//! # For adapter authors
//! An adapter implements [`Transport`] (configuration only, no I/O), [`Connection`], [`Destination`],
//! [`Subscription`] and [`Settler`]. Publishing and settling are *completion-based*: the call returns at once,
//! and the [`Completion`] that came with it is resolved later, exactly once, from any thread.
//!
//! What an adapter reports is believed: an [`Acceptance`], a [`Refusal`] and a settlement's evidence become the outcome
//! that the application acts on. None may be made without the broker's answer to that very request. No type can check
//! this; the contract suite and its mutants do.
//!
//! Rules that hold for every method, unless it says otherwise:
//! - The adapter never retries a publish or a settlement. Where a client does so by itself, the capabilities say so.
//! - The adapter owns no publish timer. The runtime alone decides at the deadline.
//! - No method blocks the calling thread.
//! - Nothing is altered silently: what cannot be carried is refused before transmission, naming it.
//!
//! # For application authors
//! Nothing here is needed to publish or to consume.

mod completion;
mod delivery;
mod partition;
mod publish;
mod settler;
mod setup;
mod subscription;
mod transport;

pub use completion::{Completion, CompletionSink, Reply, SlotKey};
pub use delivery::{DeliveryToken, Epoch, Inbound, UnitId};
pub use partition::partition_of;
pub use publish::{Acceptance, PublishReply, PublishRequest, Refusal, Withdrawal};
pub use settler::{SettlementReply, Settler};
pub use setup::{
    Confirm, ConsumerSetup, DestinationSetup, NativeSettings, OrderImpact, PublishSetup, RetrySetup,
    RetryStrategy, Start, TopologyMode,
};
pub use subscription::{Batch, Event, Subscription, SubscriptionSpec};
pub use transport::{
    ConnectContext, Connection, ConnectionHealth, Destination, Lookup, Transaction, Transport, TransportError,
};
