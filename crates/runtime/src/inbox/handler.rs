//! Handlers that work inside a transaction.

use std::future::Future;

use crate::consumer::{Delivery, HandlerContext, HandlerFailure};

/// Handles messages inside a transaction, which it takes and gives back. Closures and functions do.
///
/// ```
/// use consign_runtime::consumer::{Delivery, HandlerContext, HandlerFailure};
/// use consign_runtime::inbox::{InboxHandler, TransactionHandler, in_transaction};
///
/// struct Tx;
/// fn is_handler<T>(_: impl InboxHandler<T, Tx>) {}
///
/// is_handler(|order: Delivery<String>, tx: Tx| async move {
///     order.require()?;
///     Ok(tx)
/// });
///
/// struct Billing;
/// impl TransactionHandler<String, Tx> for Billing {
///     async fn handle(&self, order: Delivery<String>, tx: &mut Tx, _: HandlerContext) -> Result<(), HandlerFailure> {
///         order.require().map(drop)
///     }
/// }
/// is_handler(in_transaction(Billing));
/// ```
pub trait InboxHandler<T, Tx>: Send + Sync + 'static {
    /// Handles one message and gives the transaction back, to be committed.
    ///
    /// # Errors
    /// Why it failed; the transaction is dropped.
    fn handle(
        &self,
        delivery: Delivery<T>,
        tx: Tx,
        context: HandlerContext,
    ) -> impl Future<Output = Result<Tx, HandlerFailure>> + Send;
}

impl<T, Tx, F, Fut> InboxHandler<T, Tx> for F
where
    F: Fn(Delivery<T>, Tx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Tx, HandlerFailure>> + Send,
{
    fn handle(
        &self,
        delivery: Delivery<T>,
        tx: Tx,
        _: HandlerContext,
    ) -> impl Future<Output = Result<Tx, HandlerFailure>> + Send {
        self(delivery, tx)
    }
}

/// Handles messages inside a transaction that it borrows. For structs; [`in_transaction`] makes an [`InboxHandler`] of
/// it.
pub trait TransactionHandler<T, Tx>: Send + Sync + 'static {
    /// Handles one message.
    ///
    /// # Errors
    /// Why it failed; the transaction is dropped.
    fn handle(
        &self,
        delivery: Delivery<T>,
        tx: &mut Tx,
        context: HandlerContext,
    ) -> impl Future<Output = Result<(), HandlerFailure>> + Send;
}

/// A handler that borrows its transaction.
#[derive(Debug, Clone, Copy)]
pub struct InTransaction<H>(H);

/// Makes an [`InboxHandler`] of a handler that borrows its transaction.
#[must_use]
pub const fn in_transaction<H>(handler: H) -> InTransaction<H> {
    InTransaction(handler)
}

impl<T, Tx, H> InboxHandler<T, Tx> for InTransaction<H>
where
    T: Send + 'static,
    Tx: Send + 'static,
    H: TransactionHandler<T, Tx>,
{
    async fn handle(
        &self,
        delivery: Delivery<T>,
        mut tx: Tx,
        context: HandlerContext,
    ) -> Result<Tx, HandlerFailure> {
        self.0.handle(delivery, &mut tx, context).await?;
        Ok(tx)
    }
}
