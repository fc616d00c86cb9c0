//! Transports, connections and destinations.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{
    Completion, DestinationSetup, PublishReply, PublishRequest, SlotKey, Subscription, SubscriptionSpec,
    Withdrawal,
};
use crate::capability::Capabilities;
use crate::error::{CapabilityUnavailable, Problem};
use crate::failure::Failure;
use crate::message::MessageId;
use crate::name::TransportName;
use crate::position::MessagePosition;
use crate::time::Clock;

/// A configured broker, not connected yet. Making one does no I/O.
#[async_trait]
pub trait Transport: Send + Sync + 'static {
    /// Returns the word for this kind of broker: folder, crate suffix and facade feature, such as `in-memory`.
    fn kind(&self) -> &'static str;

    /// Checks one destination against the broker's own rules. Pure: no I/O, linear in the size of the set-up.
    ///
    /// Every problem is reported, with the phase [`Broker`](crate::error::Phase::Broker) and a code of the adapter's.
    fn validate(&self, setup: &DestinationSetup) -> Vec<Problem>;

    /// Declares what the broker can do for this destination. Pure; the only place where it is said.
    ///
    /// Called only for set-ups that [`validate`](Self::validate) found no fault with.
    fn capabilities(&self, setup: &DestinationSetup) -> Capabilities;

    /// Names what the destination occupies at the broker, where that is not just its logical name; empty, the default,
    /// is the logical name alone. Pure. Two destinations of one transport that share a name are refused.
    ///
    /// Called only for set-ups that [`validate`](Self::validate) found no fault with.
    fn physical_names(&self, setup: &DestinationSetup) -> Vec<String> {
        let _ = setup;
        Vec::new()
    }

    /// Connects, within [`ConnectContext::timeout`]. Dropping the future ends the attempt and leaves nothing behind.
    ///
    /// # Errors
    /// Why the broker could not be reached or did not let us in, secrets redacted.
    async fn connect(&self, context: ConnectContext) -> Result<Arc<dyn Connection>, TransportError>;
}

#[async_trait]
impl<T: Transport + ?Sized> Transport for Arc<T> {
    fn kind(&self) -> &'static str {
        self.as_ref().kind()
    }

    fn validate(&self, setup: &DestinationSetup) -> Vec<Problem> {
        self.as_ref().validate(setup)
    }

    fn capabilities(&self, setup: &DestinationSetup) -> Capabilities {
        self.as_ref().capabilities(setup)
    }

    fn physical_names(&self, setup: &DestinationSetup) -> Vec<String> {
        self.as_ref().physical_names(setup)
    }

    async fn connect(&self, context: ConnectContext) -> Result<Arc<dyn Connection>, TransportError> {
        self.as_ref().connect(context).await
    }
}

/// What a transport is told when it connects.
#[derive(Clone)]
#[non_exhaustive]
pub struct ConnectContext {
    /// The name under which the transport is bound.
    pub name: TransportName,
    /// The bound on connecting.
    pub timeout: Duration,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

impl ConnectContext {
    /// Makes a context.
    #[must_use]
    pub fn new(name: TransportName, timeout: Duration, clock: Arc<dyn Clock>) -> Self {
        Self { name, timeout, clock }
    }
}

impl fmt::Debug for ConnectContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectContext")
            .field("name", &self.name)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// A connection to a broker. It reconnects by itself, with back-off, and says so in its health.
#[async_trait]
pub trait Connection: Send + Sync + 'static {
    /// Declares or verifies the topology of one destination, compares it with what was declared before connecting,
    /// and opens it.
    ///
    /// Idempotent. Dropping the future may leave declared topology behind.
    ///
    /// # Errors
    /// Every problem found, with the phase [`Preflight`](crate::error::Phase::Preflight).
    async fn open(&self, setup: &DestinationSetup) -> Result<Arc<dyn Destination>, Vec<Problem>>;

    /// Tells how the connection is. Does no I/O that could wait.
    async fn health(&self) -> ConnectionHealth;

    /// Begins a transaction.
    ///
    /// # Errors
    /// [`CapabilityUnavailable`] where the broker has none; this is the default.
    async fn begin(&self) -> Result<Box<dyn Transaction>, CapabilityUnavailable> {
        Err(CapabilityUnavailable::new("broker transaction", "this transport has none"))
    }

    /// Sends what is queued, answers what it can, and closes, by `within`. Whatever is unanswered then is resolved:
    /// unknown if handed over, refused if not. Twice or concurrently: harmless.
    async fn close(&self, within: Duration);
}

/// A transaction of the broker: publishes within it are answered at the commit.
#[async_trait]
pub trait Transaction: Send + 'static {
    /// Publishes within the transaction.
    fn publish(
        &mut self,
        destination: &dyn Destination,
        request: PublishRequest,
        done: Completion<PublishReply>,
    );

    /// Commits. Whatever the answer, every publish of the transaction is resolved accordingly.
    async fn commit(self: Box<Self>) -> Result<(), Failure>;

    /// Gives everything up.
    async fn abort(self: Box<Self>) -> Result<(), Failure>;
}

/// An open destination.
#[async_trait]
pub trait Destination: Send + Sync + 'static {
    /// Publishes one message and returns at once.
    ///
    /// - Before the first call that could transmit, the adapter takes [`Completion::hand_over`]; `false` means that the
    ///   request was given up, and it must not be transmitted.
    /// - Calls for one ordering unit reach the wire in call order.
    /// - A full client queue is answered as refused, not transmitted, with the category `Capacity`.
    /// - What the broker cannot carry (a header, a tombstone, a partition) is answered as refused, naming it.
    /// - The adapter sends it once.
    fn publish(&self, request: PublishRequest, done: Completion<PublishReply>);

    /// Tries to take a publish back at its deadline. Synchronous. `Withdrawn` only where the last byte was provably not
    /// written and never will be; the completion is then forgotten, not resolved.
    fn withdraw(&self, key: SlotKey) -> Withdrawal;

    /// Looks for a message by its id.
    ///
    /// # Errors
    /// [`CapabilityUnavailable`] where the broker cannot; this is the default.
    async fn lookup(&self, id: &MessageId) -> Result<Lookup, CapabilityUnavailable> {
        let _ = id;
        Err(CapabilityUnavailable::new("lookup by message id", "this transport has none"))
    }

    /// Subscribes a group. The group is created on first use, where `start` applies.
    ///
    /// # Errors
    /// Why the subscription could not be made; [`TransportError::Unavailable`] where the transport has no consumers.
    async fn subscribe(&self, spec: SubscriptionSpec) -> Result<Box<dyn Subscription>, TransportError>;
}

/// What a lookup found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lookup {
    /// The message stands here.
    Found(MessagePosition),
    /// It is certain that it is not there, and no attempt that was sent can still bring it.
    Absent,
    /// Nobody knows.
    Unknown,
}

/// How a connection is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ConnectionHealth {
    /// It works.
    Up,
    /// It works, but the broker asks to be sent less.
    Degraded(Failure),
    /// It is down, and being rebuilt unless it was closed.
    Down(Failure),
}

impl ConnectionHealth {
    /// Tells whether it works.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        !matches!(self, Self::Down(_))
    }
}

/// Why a transport could not connect or subscribe.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The broker refused, or could not be reached.
    #[error(transparent)]
    Failed(Failure),
    /// The broker's real configuration makes the promise false.
    #[error("the broker's configuration does not fit")]
    Refused(Vec<Problem>),
    /// The transport does not offer it.
    #[error(transparent)]
    Unavailable(CapabilityUnavailable),
}
