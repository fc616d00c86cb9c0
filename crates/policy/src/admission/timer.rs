//! The bound on a wait.

use std::future::Future;
use std::time::Duration;

/// Polls `future` for at most `bound`. The future stays with the caller, who may still ask it.
#[cfg(not(loom))]
pub(super) async fn within<F: Future + Unpin>(bound: Duration, future: &mut F) -> Option<F::Output> {
    tokio::time::timeout(bound, future).await.ok()
}

/// Loom has no time: a bound of one nanosecond ends when the first poll finds nothing, every other bound never does.
#[cfg(loom)]
pub(super) async fn within<F: Future + Unpin>(bound: Duration, future: &mut F) -> Option<F::Output> {
    use std::{future::poll_fn, pin::Pin, task::Poll};

    poll_fn(|cx| match Pin::new(&mut *future).poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if bound == Duration::from_nanos(1) => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    })
    .await
}
