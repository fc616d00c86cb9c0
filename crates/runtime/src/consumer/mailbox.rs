//! Where settlement replies arrive: one lock, one wake per batch, bounded by what was asked.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use consign_core_api::spi::{CompletionSink, Reply, SettlementReply, SlotKey};

use super::works::WorkKey;

/// Collects the replies to settlements. It takes one reply per question that was opened, so that it never holds more
/// than there are deliveries; anything else is stale, and counted.
#[derive(Debug, Default)]
pub(super) struct Mailbox(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// By index: the generation that waits for a reply.
    open: Vec<Option<u32>>,
    replies: Vec<(WorkKey, SettlementReply)>,
    waker: Option<Waker>,
    stale: u64,
}

impl Mailbox {
    /// Allows one reply for this key.
    pub(super) fn open(&self, key: WorkKey) {
        let mut inner = self.lock();
        if inner.open.len() <= key.index() {
            inner.open.resize(key.index() + 1, None);
        }
        inner.open[key.index()] = Some(key.generation());
    }

    /// Waits no longer for this key: a reply that comes now is stale.
    pub(super) fn close(&self, key: WorkKey) {
        let mut inner = self.lock();
        if inner.is_open(key) {
            inner.open[key.index()] = None;
        }
    }

    /// Takes all replies, or registers the task to be woken by the next.
    pub(super) fn poll_replies(
        &self,
        cx: &mut Context<'_>,
        replies: &mut Vec<(WorkKey, SettlementReply)>,
    ) -> Poll<()> {
        let waker = cx.waker().clone();
        let mut inner = self.lock();
        if inner.replies.is_empty() {
            let replaced = inner.waker.replace(waker);
            drop(inner);
            drop(replaced);
            return Poll::Pending;
        }
        replies.append(&mut inner.replies);
        Poll::Ready(())
    }

    /// Returns how many replies came for nobody.
    pub(super) fn stale(&self) -> u64 {
        self.lock().stale
    }

    fn take(&self, batch: impl Iterator<Item = (SlotKey, SettlementReply)>) {
        // What is stale is dropped outside the lock: a reply carries a foreign error, whose drop is foreign code.
        let mut stale = Vec::new();
        let waker = {
            let mut inner = self.lock();
            let before = inner.replies.len();
            for (slot, reply) in batch {
                match WorkKey::from_slot(slot).filter(|key| inner.is_open(*key)) {
                    Some(key) => {
                        inner.open[key.index()] = None;
                        inner.replies.push((key, reply));
                    }
                    None => {
                        inner.stale += 1;
                        stale.push(reply);
                    }
                }
            }
            if inner.replies.len() > before { inner.waker.take() } else { None }
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn is_open(&self, key: WorkKey) -> bool {
        self.open.get(key.index()) == Some(&Some(key.generation()))
    }
}

impl CompletionSink<SettlementReply> for Mailbox {
    fn hand_over(&self, key: SlotKey) -> bool {
        WorkKey::from_slot(key).is_some_and(|key| self.lock().is_open(key))
    }

    fn resolve(&self, batch: &mut Vec<(SlotKey, SettlementReply)>) {
        self.take(batch.drain(..));
    }

    fn resolve_one(&self, key: SlotKey, reply: SettlementReply) {
        self.take(std::iter::once((key, reply)));
    }

    fn released(&self, _: SlotKey) {}

    fn dropped(&self, key: SlotKey) {
        self.resolve_one(key, SettlementReply::dropped(true));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use consign_core_api::settlement::{SettlementEvidence, SettlementLevel};
    use consign_core_api::spi::Completion;

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn evidence() -> SettlementReply {
        SettlementReply::Evidence(SettlementEvidence::observed(SettlementLevel::Committed))
    }

    fn key(index: u32) -> WorkKey {
        WorkKey::new(index, 5)
    }

    #[test]
    fn a_batch_wakes_once_and_replies_come_in_order() {
        let (mailbox, wakes) = (Mailbox::default(), Arc::new(Wakes::default()));
        let waker = Waker::from(Arc::clone(&wakes));
        let mut replies = Vec::new();
        assert!(mailbox.poll_replies(&mut Context::from_waker(&waker), &mut replies).is_pending());
        (0..3).for_each(|index| mailbox.open(key(index)));
        let mut batch: Vec<_> = (0..3).map(|index| (key(index).slot(), evidence())).collect();
        mailbox.resolve(&mut batch);
        mailbox.resolve_one(key(0).slot(), evidence());
        assert_eq!(wakes.0.load(Ordering::SeqCst), 1);
        assert!(mailbox.poll_replies(&mut Context::from_waker(&waker), &mut replies).is_ready());
        assert_eq!(replies.iter().map(|(key, _)| *key).collect::<Vec<_>>(), [key(0), key(1), key(2)]);
        assert_eq!(mailbox.stale(), 1, "a second reply is for nobody");
    }

    #[test]
    fn a_closed_key_is_not_handed_over_and_its_reply_is_stale() {
        let mailbox = Arc::new(Mailbox::default());
        mailbox.open(key(1));
        assert!(mailbox.hand_over(key(1).slot()));
        assert!(!mailbox.hand_over(WorkKey::new(1, 4).slot()), "a former generation");
        mailbox.close(key(1));
        let sink: Arc<dyn CompletionSink<SettlementReply>> = mailbox.clone();
        drop(Completion::new(sink, key(1).slot()));
        assert_eq!(mailbox.stale(), 1);
    }

    #[test]
    fn a_dropped_completion_is_an_answer_without_evidence() {
        let mailbox = Arc::new(Mailbox::default());
        mailbox.open(key(0));
        let sink: Arc<dyn CompletionSink<SettlementReply>> = mailbox.clone();
        drop(Completion::new(sink, key(0).slot()));
        let mut replies = Vec::new();
        assert!(mailbox.poll_replies(&mut Context::from_waker(Waker::noop()), &mut replies).is_ready());
        assert!(matches!(&replies[..], [(_, SettlementReply::Unknown(_))]));
    }
}
