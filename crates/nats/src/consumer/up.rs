//! A unit that is up: the inbox of its pulls, and how that is ended without losing what is under way.

use std::time::Duration;

use async_nats::{Subject, Subscriber};
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
}

/// More than the server sends on an inbox, beside deliveries, within a round trip.
const OTHERS: u64 = 16;
/// How long an orderly end may take.
const END_WITHIN: Duration = Duration::from_secs(1);

impl Up {
    /// Takes what has come unread.
    pub(super) fn unread(&mut self) -> Vec<Subject> {
        let mut unread = Vec::new();
        while let Some(Some(message)) = self.answers.next().now_or_never() {
            self.came += 1;
            if let (Came::Delivery(_), Some(reply)) = (pull::read(&message), message.reply) {
                unread.push(reply);
            }
        }
        unread
    }

    /// Ends the pulls and returns every delivery that came for them meanwhile. `most` is how many those can be.
    ///
    /// The protocol's plain unsubscription loses some: the client forgets the inbox before the server does, and what was
    /// under way comes again only after its settlement deadline, an order standing still for so long. So client and
    /// server are told a number of messages after which the inbox ends, and empty messages of our own make that number
    /// full. Where publishing to one's own inbox is not allowed, this ends by its bound, and loses as said.
    pub(super) async fn end(mut self, link: &Link, most: usize) -> Vec<Subject> {
        let mut unread = Vec::new();
        if link.is_up() && link.generation() == self.generation && self.asked > 0 {
            let _ = tokio::time::timeout(END_WITHIN, self.fill(link, most, &mut unread)).await;
        }
        unread.extend(self.unread());
        unread
    }

    async fn fill(&mut self, link: &Link, most: usize, unread: &mut Vec<Subject>) {
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
            if let (Came::Delivery(_), Some(reply)) = (pull::read(&message), message.reply) {
                unread.push(reply);
            }
        }
    }
}
