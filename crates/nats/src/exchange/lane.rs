//! A bounded queue and the one task that sends what is in it, in order.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_nats::message::OutboundMessage;
use async_nats::{Client, PublishError};
use consign_core_api::spi::Completion;
use futures_util::{FutureExt as _, Sink as _};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::{Exchange, Inbox, Link};

/// Something to send.
pub(crate) struct Outgoing<X: Exchange> {
    /// The message, its reply subject already the inbox's where an answer is asked for.
    pub(crate) message: OutboundMessage,
    /// When it need not be sent any more.
    pub(crate) until: Instant,
    /// The answer that is asked for; without one nobody is told what became of it.
    pub(crate) ask: Option<Ask<X>>,
}

/// The answer that is asked for.
pub(crate) struct Ask<X: Exchange> {
    /// The request's number in the inbox.
    pub(crate) number: u64,
    pub(crate) done: Completion<X::Reply>,
    pub(crate) context: X::Context,
}

/// Why the queue did not take something, which is given back.
pub(crate) enum Unsent<X: Exchange> {
    Full(Box<Outgoing<X>>),
    Closed(Box<Outgoing<X>>),
}

/// The queue. Dropping it ends the task once everything in it was sent or given up.
pub(crate) struct Lane<X: Exchange> {
    queue: mpsc::Sender<Outgoing<X>>,
    unsent: Arc<AtomicUsize>,
}

/// A lane seen from its connection: what it still holds, and the way to end it at once.
#[derive(Debug, Clone)]
pub(crate) struct LaneWatch {
    unsent: Arc<AtomicUsize>,
    task: AbortHandle,
}

impl LaneWatch {
    /// Tells whether nothing waits to be sent.
    pub(crate) fn is_empty(&self) -> bool {
        self.task.is_finished() || self.unsent.load(Ordering::Acquire) == 0
    }

    /// Tells whether the task has ended.
    pub(crate) fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    /// Ends the task; the completions of what it held are dropped, none of them handed over.
    pub(crate) fn abort(&self) {
        self.task.abort();
    }
}

impl<X: Exchange> Lane<X> {
    /// Starts the task. `room` is how many may wait; at least one.
    pub(crate) fn start(link: Link, inbox: Arc<Inbox<X>>, room: usize) -> (Self, LaneWatch) {
        let (queue, waiting) = mpsc::channel(room.clamp(1, MOST));
        let unsent = Arc::new(AtomicUsize::new(0));
        let task = tokio::spawn(send_all(link, inbox, waiting, Arc::clone(&unsent)));
        let watch = LaneWatch { unsent: Arc::clone(&unsent), task: task.abort_handle() };
        (Self { queue, unsent }, watch)
    }

    /// Queues something. Calls of one caller are sent in their order.
    pub(crate) fn offer(&self, outgoing: Outgoing<X>) -> Result<(), Unsent<X>> {
        self.unsent.fetch_add(1, Ordering::AcqRel);
        self.queue.try_send(outgoing).map_err(|error| {
            self.unsent.fetch_sub(1, Ordering::AcqRel);
            match error {
                mpsc::error::TrySendError::Full(outgoing) => Unsent::Full(Box::new(outgoing)),
                mpsc::error::TrySendError::Closed(outgoing) => Unsent::Closed(Box::new(outgoing)),
            }
        })
    }
}

/// What a channel takes at most.
const MOST: usize = tokio::sync::Semaphore::MAX_PERMITS;

async fn send_all<X: Exchange>(
    link: Link,
    inbox: Arc<Inbox<X>>,
    mut waiting: mpsc::Receiver<Outgoing<X>>,
    unsent: Arc<AtomicUsize>,
) {
    // A clone has a place of its own in the client's command queue.
    let mut client = link.client().clone();
    while let Some(next) = waiting.recv().await {
        let Outgoing { message, until, ask } = next;
        // Handed over only where the client has room and is connected: what cannot leave now stays withdrawable.
        let room = match has_room(&mut client, &link).now_or_never() {
            Some(room) => Ok(room),
            None => tokio::time::timeout_at(until, has_room(&mut client, &link)).await,
        };
        match (room, ask) {
            (Ok(Ok(())), Some(ask)) => send_asking(&mut client, &inbox, message, ask),
            (Ok(Ok(())), None) => {
                let _ = Pin::new(&mut client).start_send(message);
            }
            (Ok(Err(error)), Some(Ask { done, .. })) => done.resolve(X::not_sent(&error)),
            (Err(_), Some(Ask { done, .. })) => {
                if let Some(reply) = X::never_sent() {
                    done.resolve(reply);
                }
            }
            (Ok(Err(_)) | Err(_), None) => {}
        }
        unsent.fetch_sub(1, Ordering::AcqRel);
    }
}

fn send_asking<X: Exchange>(client: &mut Client, inbox: &Inbox<X>, message: OutboundMessage, ask: Ask<X>) {
    let Ask { number, done, context } = ask;
    if !done.hand_over() {
        return;
    }
    // Noted before it is sent: the answer may be faster than the next line.
    if inbox.expect(number, done, context).is_some() {
        return;
    }
    if let Err(error) = Pin::new(client).start_send(message)
        && let Some(done) = inbox.forget(number)
    {
        done.resolve(X::not_sent(&error));
    }
}

/// Waits until the link is up and the client's command queue has a place for one message. Cancel safe.
async fn has_room(client: &mut Client, link: &Link) -> Result<(), PublishError> {
    loop {
        if !link.is_up() {
            link.up().await;
        }
        std::future::poll_fn(|cx| Pin::new(&mut *client).poll_ready(cx)).await?;
        // The place stays reserved while the link is down.
        if link.is_up() {
            return Ok(());
        }
    }
}
