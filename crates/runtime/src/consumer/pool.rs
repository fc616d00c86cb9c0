//! The handlers that run. Generic over handler and value inside, erased once per consumer outside: a message costs one
//! allocation for its future, no task and no channel.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use consign_core_api::{Codec, Failure, FailureCategory};
use futures_util::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};

use super::delivery::Content;
use super::works::WorkKey;
use super::{Delivery, Handler, HandlerContext, HandlerFailure};
use crate::codes;

/// One message on its way into a handler.
pub(crate) struct Job {
    pub(crate) key: WorkKey,
    pub(crate) content: Arc<Content>,
    pub(crate) context: HandlerContext,
    pub(crate) timeout: Duration,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) key: WorkKey,
    pub(crate) result: Result<(), Failure>,
}

/// The handlers of one driver that run.
pub(crate) trait HandlerPool: Send {
    /// Decodes and starts. `Err` is `DECODE_FAILED`; the handler was not called.
    fn start(&mut self, job: Job) -> Result<(), Failure>;

    /// Polls the handlers and returns the next that finished. Pending also when none runs.
    fn poll_finished(&mut self, cx: &mut Context<'_>) -> Poll<Finished>;

    /// Drops every handler that runs.
    fn clear(&mut self);
}

/// Makes a pool for each driver of a consumer.
pub(crate) type PoolFactory = Arc<dyn Fn() -> Box<dyn HandlerPool> + Send + Sync>;

/// Makes pools for a plain handler.
pub(crate) fn plain<T, H>(codec: Arc<dyn Codec<T>>, handler: H) -> PoolFactory
where
    T: Send + 'static,
    H: Handler<T>,
{
    let handler = Arc::new(handler);
    Arc::new(move || {
        let (codec, handler) = (Arc::clone(&codec), Arc::clone(&handler));
        new_pool(move |job: &Job| {
            let delivery = decode(codec.as_ref(), &job.content)?;
            let (handler, context) = (Arc::clone(&handler), job.context.clone());
            Ok(async move { handler.handle(delivery, context).await })
        })
    })
}

/// Makes a pool of the futures that `make` returns.
pub(crate) fn new_pool<Make, Fut>(make: Make) -> Box<dyn HandlerPool>
where
    Make: Fn(&Job) -> Result<Fut, Failure> + Send + 'static,
    Fut: Future<Output = Result<(), HandlerFailure>> + Send + 'static,
{
    // The guarded future has no name to write down, so that the pool learns it from this function.
    let guarded = move |job: Job| -> Result<_, Failure> {
        let handling = make(&job)?;
        Ok(guard(job.key, job.timeout, handling))
    };
    Box::new(Pool { make: guarded, running: FuturesUnordered::new() })
}

/// Decodes a payload; a tombstone is not shown to the codec, and a codec that panics has failed.
pub(crate) fn decode<T: 'static>(
    codec: &dyn Codec<T>,
    content: &Arc<Content>,
) -> Result<Delivery<T>, Failure> {
    let value = match content.message.payload().as_bytes() {
        None => None,
        Some(bytes) => Some(decode_bytes(codec, bytes)?),
    };
    Ok(Delivery::new(Arc::clone(content), value))
}

fn decode_bytes<T: 'static>(codec: &dyn Codec<T>, bytes: &Bytes) -> Result<T, Failure> {
    let failed = |text: String| {
        Failure::new(FailureCategory::PermanentBusiness, consign_core_api::codes::DECODE_FAILED, text)
    };
    match catch_unwind(AssertUnwindSafe(|| codec.decode(bytes))) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => {
            Err(failed(format!("the payload could not be decoded: {error}")).with_source(error))
        }
        Err(_) => Err(failed("the codec panicked".to_owned())),
    }
}

async fn guard<Fut>(key: WorkKey, timeout: Duration, handling: Fut) -> Finished
where
    Fut: Future<Output = Result<(), HandlerFailure>>,
{
    // The future is dropped inside the guard too: a drop may panic as well.
    let bounded = async move { tokio::time::timeout(timeout, handling).await };
    let result = match AssertUnwindSafe(bounded).catch_unwind().await {
        Ok(Ok(result)) => result.map_err(HandlerFailure::into_failure),
        Ok(Err(_)) => {
            Err(transient(codes::HANDLER_TIMED_OUT, format!("the handler ran longer than {timeout:?}")))
        }
        Err(panic) => Err(transient(codes::HANDLER_PANICKED, told(panic.as_ref()))),
    };
    Finished { key, result }
}

fn transient(code: consign_core_api::Code, text: String) -> Failure {
    Failure::new(FailureCategory::TransientInfrastructure, code, text)
}

/// Returns what a panic said, cut to a length that fits a header.
fn told(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.map_or_else(
        || "the handler panicked".to_owned(),
        |text| format!("the handler panicked: {}", text.chars().take(200).collect::<String>()),
    )
}

struct Pool<Make, Fut> {
    make: Make,
    running: FuturesUnordered<Fut>,
}

impl<Make, Fut> HandlerPool for Pool<Make, Fut>
where
    Make: Fn(Job) -> Result<Fut, Failure> + Send,
    Fut: Future<Output = Finished> + Send,
{
    fn start(&mut self, job: Job) -> Result<(), Failure> {
        self.running.push((self.make)(job)?);
        Ok(())
    }

    fn poll_finished(&mut self, cx: &mut Context<'_>) -> Poll<Finished> {
        match self.running.poll_next_unpin(cx) {
            Poll::Ready(Some(finished)) => Poll::Ready(finished),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    fn clear(&mut self) {
        let running = std::mem::take(&mut self.running);
        // A handler whose drop panics must not take the driver with it.
        drop(catch_unwind(AssertUnwindSafe(move || drop(running))));
    }
}
