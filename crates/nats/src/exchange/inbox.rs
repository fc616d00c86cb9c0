//! One subscription for the answers of every request of one kind.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::{Message, Subject, Subscriber};
use consign_core_api::spi::{Completion, CompletionSink, SlotKey};
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::time::Instant;

use super::{Exchange, Link};

/// How many answers are resolved at once, so that a waiting task is woken once for all of them.
const BATCH: usize = 256;
/// How often requests without an answer are looked for.
const SWEEP: Duration = Duration::from_millis(500);
/// How long after its verdict the answer to a request is still awaited: the residue. Then it is resolved as unanswered,
/// which frees its slot; the client may still send it once it is connected again.
const RESIDUE: Duration = Duration::from_secs(10);

/// The requests that wait for an answer. Bounded by the runtime's slots: an entry leaves by its answer, or by a bound.
pub(crate) struct Inbox<X: Exchange> {
    /// With its last dot.
    prefix: String,
    next: AtomicU64,
    waiting: Mutex<Waiting<X>>,
}

struct Waiting<X: Exchange> {
    entries: HashMap<u64, Entry<X>>,
    /// In the order of time, since every bound is the same.
    bounds: VecDeque<(Instant, u64)>,
    /// Entries whose verdict was not given yet.
    live: usize,
    closed: bool,
}

struct Entry<X: Exchange> {
    done: Completion<X::Reply>,
    context: X::Context,
    given_up: bool,
}

impl<X: Exchange> Waiting<X> {
    fn take(&mut self, key: u64) -> Option<Entry<X>> {
        let entry = self.entries.remove(&key)?;
        self.live -= usize::from(!entry.given_up);
        Some(entry)
    }
}

impl<X: Exchange> Inbox<X> {
    /// Makes an inbox under a prefix that nobody else uses.
    pub(crate) fn new(prefix: &str) -> Arc<Self> {
        let waiting = Waiting { entries: HashMap::new(), bounds: VecDeque::new(), live: 0, closed: false };
        Arc::new(Self { prefix: format!("{prefix}."), next: AtomicU64::new(1), waiting: Mutex::new(waiting) })
    }

    /// Returns the subject to subscribe to.
    pub(crate) fn wildcard(&self) -> String {
        format!("{}*", self.prefix)
    }

    /// Returns a number for a request, never used twice. An inbox numbers its requests in one way only: by this, where
    /// they come from several runtime parts whose keys may be equal, or by the key, where it has to be found again.
    pub(crate) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the subject on which the answer to a request comes.
    pub(crate) fn reply_to(&self, number: u64) -> Subject {
        let mut subject = String::with_capacity(self.prefix.len() + 16);
        subject.push_str(&self.prefix);
        // Writing to a string does not fail.
        let _ = write!(subject, "{number:x}");
        Subject::from(subject)
    }

    /// Notes a request that is about to be sent. After the inbox was closed the request is given back.
    pub(crate) fn expect(
        &self,
        number: u64,
        done: Completion<X::Reply>,
        context: X::Context,
    ) -> Option<Completion<X::Reply>> {
        let mut waiting = self.lock();
        if waiting.closed {
            return Some(done);
        }
        if let Some(patience) = X::PATIENCE {
            waiting.bounds.push_back((Instant::now() + patience, number));
        }
        waiting.live += 1;
        waiting.entries.insert(number, Entry { done, context, given_up: false });
        None
    }

    /// Takes a request back that the client did not take.
    pub(crate) fn forget(&self, number: u64) -> Option<Completion<X::Reply>> {
        self.lock().take(number).map(|entry| entry.done)
    }

    /// The verdict over a request was given without its answer; it is still awaited for the residue.
    pub(crate) fn given_up(&self, key: SlotKey) {
        let key = key.get().get();
        let mut waiting = self.lock();
        // Also where it is not there: it may be between its hand-over and its entry.
        waiting.bounds.push_back((Instant::now() + RESIDUE, key));
        let newly =
            waiting.entries.get_mut(&key).is_some_and(|entry| !std::mem::replace(&mut entry.given_up, true));
        waiting.live -= usize::from(newly);
    }

    /// Returns how many requests wait whose verdict was not given yet.
    pub(crate) fn live(&self) -> usize {
        self.lock().live
    }

    /// Resolves everything that waits as unanswered, and takes nothing more. Idempotent.
    pub(crate) fn close(&self) {
        let entries = {
            let mut waiting = self.lock();
            waiting.closed = true;
            waiting.live = 0;
            waiting.bounds.clear();
            std::mem::take(&mut waiting.entries)
        };
        let mut batch = Batch::<X>::default();
        for (_, entry) in entries {
            batch.add(entry.done, X::unanswered());
        }
        batch.resolve();
    }

    /// Receives answers until the subscription ends, which it does with the client.
    pub(crate) async fn receive(self: Arc<Self>, mut answers: Subscriber, link: Link) {
        let lost = link.losses();
        tokio::pin!(lost);
        let mut sweep = tokio::time::interval(SWEEP);
        sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut batch = Batch::<X>::default();
        loop {
            tokio::select! {
                biased;
                answer = answers.next() => {
                    let Some(answer) = answer else { break };
                    self.answered(&answer, &mut batch);
                    while batch.len() < BATCH {
                        let Some(Some(answer)) = answers.next().now_or_never() else { break };
                        self.answered(&answer, &mut batch);
                    }
                }
                Some(()) = lost.next() => self.lost(&mut batch),
                _ = sweep.tick() => self.expire(Instant::now(), &mut batch),
            }
            batch.resolve();
        }
        self.close();
    }

    fn answered(&self, answer: &Message, batch: &mut Batch<X>) {
        let number =
            answer.subject.strip_prefix(&self.prefix).and_then(|number| u64::from_str_radix(number, 16).ok());
        let Some(number) = number else { return };
        let entry = self.lock().take(number);
        if let Some(entry) = entry {
            batch.add(entry.done, X::judge(&entry.context, answer));
        }
    }

    /// Resolves what it helps to resolve now that the connection is gone.
    fn lost(&self, batch: &mut Batch<X>) {
        let mut waiting = self.lock();
        let lost = |(number, entry): (&u64, &Entry<X>)| {
            (!entry.given_up).then(|| X::lost(&entry.context)).flatten().map(|reply| (*number, reply))
        };
        let lost: Vec<_> = waiting.entries.iter().filter_map(lost).collect();
        for (number, reply) in lost {
            if let Some(entry) = waiting.take(number) {
                batch.add(entry.done, reply);
            }
        }
    }

    fn expire(&self, now: Instant, batch: &mut Batch<X>) {
        let mut waiting = self.lock();
        while waiting.bounds.front().is_some_and(|(bound, _)| *bound <= now) {
            let Some((_, key)) = waiting.bounds.pop_front() else { break };
            if let Some(entry) = waiting.take(key) {
                batch.add(entry.done, X::unanswered());
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<X>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Replies that are resolved together. One connection serves one runtime, so its sink is nearly always the same.
struct Batch<X: Exchange> {
    sink: Option<Arc<dyn CompletionSink<X::Reply>>>,
    replies: Vec<(SlotKey, X::Reply)>,
}

impl<X: Exchange> Default for Batch<X> {
    fn default() -> Self {
        Self { sink: None, replies: Vec::new() }
    }
}

impl<X: Exchange> Batch<X> {
    fn add(&mut self, done: Completion<X::Reply>, reply: X::Reply) {
        let same = self.sink.as_ref().is_some_and(|sink| Arc::ptr_eq(sink, done.sink()));
        if !same {
            self.resolve();
            self.sink = Some(Arc::clone(done.sink()));
        }
        done.into_batch(reply, &mut self.replies);
    }

    fn len(&self) -> usize {
        self.replies.len()
    }

    fn resolve(&mut self) {
        if let Some(sink) = self.sink.as_ref().filter(|_| !self.replies.is_empty()) {
            sink.resolve(&mut self.replies);
            self.replies.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use consign_core_api::spi::PublishReply;
    use std::num::NonZeroU64;

    use super::*;
    use crate::outcome::Expected;
    use crate::publisher::Publishing;

    #[derive(Default)]
    struct Log(Mutex<Vec<(u64, &'static str)>>);

    impl Log {
        fn note(&self, key: SlotKey, what: &'static str) {
            self.0.lock().unwrap().push((key.get().get(), what));
        }
    }

    impl CompletionSink<PublishReply> for Log {
        fn hand_over(&self, _: SlotKey) -> bool {
            true
        }
        fn resolve(&self, batch: &mut Vec<(SlotKey, PublishReply)>) {
            for (key, reply) in batch.drain(..) {
                self.resolve_one(key, reply);
            }
        }
        fn resolve_one(&self, key: SlotKey, reply: PublishReply) {
            let what = match reply {
                PublishReply::Accepted(_) => "accepted",
                PublishReply::Refused(_) => "refused",
                PublishReply::Unknown(_) => "unknown",
            };
            self.note(key, what);
        }
        fn released(&self, _: SlotKey) {}
        fn dropped(&self, key: SlotKey) {
            self.note(key, "dropped");
        }
    }

    fn key(number: u64) -> SlotKey {
        SlotKey::new(NonZeroU64::new(number).unwrap())
    }

    fn expected() -> Expected {
        let evidence = consign_core_api::outcome::ConfirmationEvidence::new(
            consign_core_api::outcome::Evidenced::observed(consign_core_api::outcome::Copies::Leader),
            consign_core_api::outcome::Evidenced::declared(consign_core_api::outcome::Persistence::PageCache),
        );
        Expected { stream: "S".into(), evidence, resend: false, repeatable: false }
    }

    fn expect(inbox: &Inbox<Publishing>, log: &Arc<Log>, number: u64) {
        let sink = Arc::clone(log) as Arc<dyn CompletionSink<PublishReply>>;
        drop(inbox.expect(number, Completion::new(sink, key(number)), expected()));
    }

    fn answer(inbox: &Inbox<Publishing>, subject: &str, payload: &'static str) {
        let mut batch = Batch::default();
        let message = Message {
            subject: Subject::from(subject),
            reply: None,
            payload: payload.into(),
            headers: None,
            status: None,
            description: None,
            length: 0,
        };
        inbox.answered(&message, &mut batch);
        batch.resolve();
    }

    fn expire(inbox: &Inbox<Publishing>, after: Duration) {
        let mut batch = Batch::default();
        inbox.expire(Instant::now() + after, &mut batch);
        batch.resolve();
    }

    const ACKNOWLEDGED: &str = r#"{"stream":"S","seq":1}"#;

    #[tokio::test]
    async fn an_answer_finds_its_request_once_and_strangers_find_nothing() {
        let (inbox, log) = (Inbox::<Publishing>::new("_INBOX.a"), Arc::new(Log::default()));
        expect(&inbox, &log, 0xab);
        for stranger in ["_INBOX.a.ac", "_INBOX.b.ab", "_INBOX.a.", "_INBOX.a.0", "_INBOX.a.zz", ""] {
            answer(&inbox, stranger, ACKNOWLEDGED);
        }
        assert_eq!((inbox.live(), log.0.lock().unwrap().len()), (1, 0));
        let subject = inbox.reply_to(0xab);
        answer(&inbox, &subject, ACKNOWLEDGED);
        answer(&inbox, &subject, ACKNOWLEDGED);
        assert_eq!(*log.0.lock().unwrap(), [(0xab, "accepted")]);
        assert_eq!(inbox.live(), 0);
    }

    #[test]
    fn a_lost_connection_answers_what_can_be_repeated_and_leaves_the_rest_waiting() {
        let (inbox, log) = (Inbox::<Publishing>::new("_INBOX.a"), Arc::new(Log::default()));
        for (number, repeatable) in [(1, false), (2, true), (3, true)] {
            let sink = Arc::clone(&log) as Arc<dyn CompletionSink<PublishReply>>;
            let context = Expected { repeatable, ..expected() };
            drop(inbox.expect(number, Completion::new(sink, key(number)), context));
        }
        inbox.given_up(key(3));
        let mut batch = Batch::default();
        inbox.lost(&mut batch);
        batch.resolve();
        assert_eq!(*log.0.lock().unwrap(), [(2, "unknown")]);
        assert_eq!(inbox.live(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_for_ever_until_it_is_given_up_and_then_for_the_residue() {
        let (inbox, log) = (Inbox::<Publishing>::new("_INBOX.a"), Arc::new(Log::default()));
        expect(&inbox, &log, 1);
        expect(&inbox, &log, 2);
        expire(&inbox, Duration::from_secs(1_000_000));
        assert_eq!((inbox.live(), log.0.lock().unwrap().len()), (2, 0));
        inbox.given_up(key(1));
        inbox.given_up(key(1));
        assert_eq!(inbox.live(), 1, "a close does not wait for what was given up");
        expire(&inbox, RESIDUE / 2);
        assert!(log.0.lock().unwrap().is_empty(), "a late answer still counts");
        expire(&inbox, RESIDUE);
        assert_eq!(*log.0.lock().unwrap(), [(1, "unknown")]);
        assert_eq!(inbox.live(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_given_up_between_its_hand_over_and_its_entry_does_not_stay() {
        let (inbox, log) = (Inbox::<Publishing>::new("_INBOX.a"), Arc::new(Log::default()));
        inbox.given_up(key(1));
        expect(&inbox, &log, 1);
        expire(&inbox, RESIDUE);
        assert_eq!(*log.0.lock().unwrap(), [(1, "unknown")]);
    }

    #[tokio::test]
    async fn requests_with_equal_keys_get_their_own_answers() {
        let inbox = Inbox::<Publishing>::new("_INBOX.a");
        let logs = [Arc::new(Log::default()), Arc::new(Log::default())];
        let numbers = logs.clone().map(|log| {
            let number = inbox.number();
            let sink = log as Arc<dyn CompletionSink<PublishReply>>;
            drop(inbox.expect(number, Completion::new(sink, key(7)), expected()));
            number
        });
        answer(&inbox, &inbox.reply_to(numbers[1]), "{}");
        answer(&inbox, &inbox.reply_to(numbers[0]), ACKNOWLEDGED);
        let told = logs.map(|log| log.0.lock().unwrap().clone());
        assert_eq!(told, [[(7, "accepted")], [(7, "unknown")]]);
    }

    #[tokio::test]
    async fn a_closed_inbox_answers_everything_and_takes_nothing_more() {
        let (inbox, log) = (Inbox::<Publishing>::new("_INBOX.a"), Arc::new(Log::default()));
        expect(&inbox, &log, 1);
        inbox.close();
        inbox.close();
        expect(&inbox, &log, 2);
        assert_eq!(*log.0.lock().unwrap(), [(1, "unknown"), (2, "dropped")]);
        assert_eq!(inbox.live(), 0);
    }
}
