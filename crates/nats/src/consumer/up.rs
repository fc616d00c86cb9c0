//! A unit that is up: the inbox of its pulls, and how that is ended without losing what is under way.

use std::time::Duration;

use async_nats::{Message, Subject, Subscriber};
use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::time::Instant;

use super::pull::{self, Came};
use crate::exchange::Link;

pub(super) struct Up {
    pub(super) answers: Subscriber,
    pub(super) inbox: Subject,
    pub(super) generation: u64,
    /// How many messages were asked for and did not come yet.
    pub(super) asked: usize,
    /// When the server was heard last.
    pub(super) heard: Instant,
    /// How many messages of any kind came on the inbox.
    pub(super) came: u64,
    /// Deliveries that came and that nobody will be given.
    unread: Vec<Subject>,
}

/// More than the server sends on an inbox, beside deliveries, within a round trip.
const OTHERS: u64 = 16;
/// How long an orderly end may take.
const END_WITHIN: Duration = Duration::from_secs(1);

impl Up {
    pub(super) fn new(answers: Subscriber, inbox: Subject, generation: u64) -> Self {
        Self { answers, inbox, generation, asked: 0, heard: Instant::now(), came: 0, unread: Vec::new() }
    }

    /// Takes what has come and nobody was given.
    pub(super) fn take_unread(&mut self) -> Vec<Subject> {
        while let Some(Some(message)) = self.answers.next().now_or_never() {
            self.pass_over(message);
        }
        std::mem::take(&mut self.unread)
    }

    /// Ends the pulls and collects every delivery that comes for them meanwhile. `most` is how many those can be. Cancel
    /// safe: what was collected stays, and a further call goes on.
    ///
    /// The protocol's plain unsubscription loses some: the client forgets the inbox before the server does, and what was
    /// under way comes again only after its settlement deadline, an order standing still for so long. So client and
    /// server are told a number of messages after which the inbox ends, and empty messages of our own make that number
    /// full. Where publishing to one's own inbox is not allowed, this ends by its bound, and loses as said.
    pub(super) async fn end(&mut self, link: &Link, most: usize) {
        if link.is_up() && link.generation() == self.generation && self.asked > 0 {
            let _ = tokio::time::timeout(END_WITHIN, self.fill(link, most)).await;
        }
    }

    async fn fill(&mut self, link: &Link, most: usize) {
        let fillers = (self.asked.min(most) as u64).saturating_add(OTHERS);
        if self.answers.unsubscribe_after(self.came.saturating_add(fillers)).await.is_err() {
            return;
        }
        for _ in 0..fillers {
            if link.client().publish(self.inbox.clone(), Bytes::new()).await.is_err() {
                return;
            }
        }
        while let Some(message) = self.answers.next().await {
            self.pass_over(message);
        }
    }

    fn pass_over(&mut self, message: Message) {
        self.came += 1;
        if let (Came::Delivery(_), Some(reply)) = (pull::read(&message), message.reply) {
            self.unread.push(reply);
        }
    }
}
