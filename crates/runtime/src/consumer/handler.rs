//! What handles messages.

use std::future::Future;

use super::{Delivery, HandlerContext, HandlerFailure};

/// Handles messages. Closures and functions do; structs implement it.
///
/// The message is settled after `Ok`, and never before. Handlers of one consumer run inside one task, concurrently as
/// far as they await: work that keeps a processor busy belongs into `spawn_blocking`, or the consumer cannot extend
/// deadlines meanwhile. A handler that panics or outlasts `consumer.handler_timeout` has failed, transiently; its
/// future is dropped then, and also at the end of a [`stop`](super::Consumer::stop), so that what must not be cut
/// belongs into a task of its own.
///
/// ```
/// use consign_runtime::consumer::{Delivery, Handler, HandlerContext, HandlerFailure};
///
/// fn is_handler<T>(_: impl Handler<T>) {}
///
/// async fn function(order: Delivery<String>, _context: HandlerContext) -> Result<(), HandlerFailure> {
///     order.require()?;
///     Ok(())
/// }
/// is_handler(function);
/// is_handler(|order: Delivery<String>, context: HandlerContext| async move {
///     let number: u32 = order.require()?.parse()?;
///     println!("{number}, attempt {}", context.attempt());
///     Ok(())
/// });
///
/// struct Billing;
/// impl Handler<String> for Billing {
///     async fn handle(&self, order: Delivery<String>, _: HandlerContext) -> Result<(), HandlerFailure> {
///         order.require().map(drop)
///     }
/// }
/// is_handler(Billing);
/// ```
pub trait Handler<T>: Send + Sync + 'static {
    /// Handles one message.
    ///
    /// # Errors
    /// Why it failed. Whether there is another attempt depends on the category and the profile.
    fn handle(
        &self,
        delivery: Delivery<T>,
        context: HandlerContext,
    ) -> impl Future<Output = Result<(), HandlerFailure>> + Send;

    /// Tells whether a second delivery of one message has no further effect, which a destination with the side effects
    /// `IDEMPOTENCY_REQUIRED` asks for. The default is no; [`idempotent`] says yes.
    fn is_idempotent(&self) -> bool {
        false
    }
}

impl<T, F, Fut> Handler<T> for F
where
    F: Fn(Delivery<T>, HandlerContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), HandlerFailure>> + Send,
{
    fn handle(
        &self,
        delivery: Delivery<T>,
        context: HandlerContext,
    ) -> impl Future<Output = Result<(), HandlerFailure>> + Send {
        self(delivery, context)
    }
}

/// A handler that its author declared idempotent.
#[derive(Debug, Clone, Copy)]
pub struct Idempotent<H>(H);

/// Declares a handler idempotent: a second delivery of one message has no further effect.
#[must_use]
pub const fn idempotent<H>(handler: H) -> Idempotent<H> {
    Idempotent(handler)
}

impl<T, H: Handler<T>> Handler<T> for Idempotent<H> {
    fn handle(
        &self,
        delivery: Delivery<T>,
        context: HandlerContext,
    ) -> impl Future<Output = Result<(), HandlerFailure>> + Send {
        self.0.handle(delivery, context)
    }

    fn is_idempotent(&self) -> bool {
        true
    }
}
