//! The inbox: an effect and the id of the message that caused it, committed together in the application's store.
//!
//! The runtime begins, the handler works inside the transaction, the runtime commits and then settles. A message that
//! was committed before is recognised and settled without a second effect. A commit of unknown end is a transient
//! failure: the next attempt finds out.

mod handler;
mod memory;
mod pool;

use std::error::Error as StdError;
use std::future::Future;
use std::sync::Arc;

use consign_core_api::{DestinationName, GroupName, MessageId};

pub use handler::{InTransaction, InboxHandler, TransactionHandler, in_transaction};
pub use memory::{MemoryInbox, MemoryInboxError, MemoryTransaction};

pub(crate) use pool::inbox_pools;

/// What identifies a message to an inbox: where it was first published, who handles it, and its id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct InboxKey {
    /// The destination that is consumed; also for a delivery from one of its retry destinations.
    pub destination: DestinationName,
    /// The group.
    pub group: GroupName,
    /// The message.
    pub id: MessageId,
}

impl InboxKey {
    /// Makes a key.
    #[must_use]
    pub const fn new(destination: DestinationName, group: GroupName, id: MessageId) -> Self {
        Self { destination, group, id }
    }
}

/// Whether a message is new.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a message was committed before or it was not")]
pub enum Begin<Tx> {
    /// It is new; this is the transaction to work in.
    Fresh(Tx),
    /// It was committed before.
    Duplicate,
}

/// The application's store of message ids, joined with its effects in one transaction.
///
/// Dropping a transaction must roll it back: that is what happens to one whose handler failed, panicked or ran out of
/// time, also in the middle of `commit`.
pub trait Inbox: Send + Sync + 'static {
    /// A transaction of the store.
    type Tx: Send + 'static;
    /// How the store fails.
    type Error: StdError + Send + Sync + 'static;

    /// Begins a transaction that will record the key when it commits, or says that the key is recorded.
    ///
    /// # Errors
    /// Whatever keeps it from beginning; the message is tried again.
    fn begin(&self, key: &InboxKey) -> impl Future<Output = Result<Begin<Self::Tx>, Self::Error>> + Send;

    /// Commits the effect and the key. Two commits of one key must not both succeed.
    ///
    /// # Errors
    /// Whatever kept it from committing, or from knowing; the message is tried again.
    fn commit(&self, tx: Self::Tx) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

impl<I: Inbox> Inbox for Arc<I> {
    type Tx = I::Tx;
    type Error = I::Error;

    fn begin(&self, key: &InboxKey) -> impl Future<Output = Result<Begin<I::Tx>, I::Error>> + Send {
        self.as_ref().begin(key)
    }

    fn commit(&self, tx: I::Tx) -> impl Future<Output = Result<(), I::Error>> + Send {
        self.as_ref().commit(tx)
    }
}
