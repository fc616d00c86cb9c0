//! Requests whose answers come under one wildcard inbox, and the link beneath.
//!
//! The client's own request methods keep an entry for ever where no answer comes, and its JetStream publish starts by
//! waiting; here a request costs one entry in a map, is sent in call order by one task per lane, and its entry leaves
//! the map by its answer or by a bound.

mod inbox;
mod lane;
mod link;

pub(crate) use inbox::Inbox;
pub(crate) use lane::{Ask, Lane, LaneWatch, Outgoing, Unsent};
pub(crate) use link::{Link, LinkEvents};

use std::time::Duration;

use async_nats::Message;
use consign_core_api::spi::Reply;

/// What differs between publishes and settlements.
pub(crate) trait Exchange: Send + Sync + 'static {
    /// What a completion is resolved with.
    type Reply: Reply;
    /// What is needed to judge an answer.
    type Context: Send + 'static;
    /// For how long an answer is waited for from the hand-over on; `None` waits until somebody else gives up.
    const PATIENCE: Option<Duration>;

    /// Judges an answer.
    fn judge(context: &Self::Context, answer: &Message) -> Self::Reply;

    /// The client did not take the request: nothing was written.
    fn not_sent(error: &async_nats::PublishError) -> Self::Reply;

    /// It waited too long to be sent. `None` where the verdict was given meanwhile, so that nobody needs another.
    fn never_sent() -> Option<Self::Reply>;

    /// No answer came within the bound.
    fn unanswered() -> Self::Reply;

    /// The connection on which the request was sent is gone, and its answer with it, unless the client still has the
    /// request. `None` waits for that; the default.
    fn lost(context: &Self::Context) -> Option<Self::Reply> {
        let _ = context;
        None
    }
}
