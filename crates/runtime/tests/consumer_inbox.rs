//! The inbox: effect and message id together, then the settlement.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod consumer_support;

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use consign_core_api::settlement::SettledBecause::Handled;
use consign_core_api::{DestinationName, GroupName};
use consign_runtime::Inbox;
use consign_runtime::consumer::{Delivery, HandlerContext, HandlerFailure};
use consign_runtime::inbox::{
    Begin, InboxKey, MemoryInbox, MemoryInboxError, MemoryTransaction, TransactionHandler, in_transaction,
};
use consumer_support::{Bench, Verb, a_while, id, inbound, profile, start, until};

const RETRY: &str = "retry = { strategy = \"IN_PLACE\", max_attempts = 3, first = \"1s\", max = \"1s\" }";

async fn bench() -> Bench {
    let more = format!("side_effects = \"INBOX_TRANSACTIONAL\"\n{RETRY}\non_exhausted = \"discard\"");
    start(&profile("orders", "NONE", &more)).await
}

fn numbered(tag: u64) -> consign_core_api::spi::Inbound {
    let mut inbound = inbound(tag);
    let (_, parts) = consign_core_api::Message::<()>::tombstone().id(id(tag)).into_parts();
    inbound.message = consign_core_api::EncodedMessage::new(tag.to_string(), parts);
    inbound
}

fn key(tag: u64) -> InboxKey {
    InboxKey::new(DestinationName::new("orders").unwrap(), GroupName::new("billing").unwrap(), id(tag))
}

/// An inbox whose next commits land or not, and fail either way.
#[derive(Clone)]
struct Flaky {
    inner: MemoryInbox,
    /// Each failing commit: whether it lands.
    failing: Arc<Mutex<Vec<bool>>>,
}

impl Flaky {
    fn new(failing: &[bool]) -> Self {
        let inner = MemoryInbox::new(NonZeroUsize::new(100).unwrap());
        Self { inner, failing: Arc::new(Mutex::new(failing.to_vec())) }
    }
}

impl Inbox for Flaky {
    type Tx = MemoryTransaction;
    type Error = MemoryInboxError;

    async fn begin(&self, key: &InboxKey) -> Result<Begin<MemoryTransaction>, MemoryInboxError> {
        self.inner.begin(key).await
    }

    async fn commit(&self, tx: MemoryTransaction) -> Result<(), MemoryInboxError> {
        let failing = self.failing.lock().unwrap().pop();
        match failing {
            None => self.inner.commit(tx).await,
            Some(false) => Err(MemoryInboxError::Conflict),
            Some(true) => {
                self.inner.commit(tx).await?;
                Err(MemoryInboxError::Conflict)
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_comes_twice_has_its_effect_once_and_is_settled_twice() {
    let (bench, inbox) = (bench().await, Flaky::new(&[]));
    let effects = Arc::new(AtomicUsize::new(0));
    let adds = Arc::clone(&effects);
    let handler = move |number: Delivery<u64>, mut tx: MemoryTransaction| {
        let adds = Arc::clone(&adds);
        async move {
            assert_eq!(*number.require()?, 1);
            tx.on_commit(move || {
                adds.fetch_add(1, Ordering::SeqCst);
            });
            Ok(tx)
        }
    };
    let consumer =
        bench.messaging.consume_with_inbox("orders", "billing", inbox.clone(), handler).await.unwrap();
    bench.fake.deliver(numbered(1));
    until("settled", || consumer.counters().settled == 1).await;
    assert!(inbox.inner.contains(&key(1)));
    bench.fake.deliver(numbered(1).counted(2));
    until("settled again", || consumer.counters().settled == 2).await;
    assert_eq!(effects.load(Ordering::SeqCst), 1);
    assert_eq!(bench.fake.verbs(), [Verb::Settle(1, Handled), Verb::Settle(1, Handled)]);
}

#[tokio::test(start_paused = true)]
async fn a_commit_of_unknown_end_is_found_out_by_the_next_attempt() {
    for landed in [false, true] {
        let (bench, inbox) = (bench().await, Flaky::new(&[landed]));
        let calls = Arc::new(AtomicUsize::new(0));
        let counts = Arc::clone(&calls);
        let handler = move |_: Delivery<u64>, tx: MemoryTransaction| {
            counts.fetch_add(1, Ordering::SeqCst);
            async move { Ok(tx) }
        };
        let consumer = bench.messaging.consume_with_inbox("orders", "billing", inbox, handler).await.unwrap();
        bench.fake.deliver(numbered(1));
        a_while().await;
        assert_eq!(bench.fake.verbs(), [], "nothing is settled on a failed commit");
        assert_eq!(bench.notes.count("failed m1 1 INBOX_FAILED"), 1);
        until("settled", || consumer.counters().settled == 1).await;
        assert_eq!(calls.load(Ordering::SeqCst), if landed { 1 } else { 2 });
    }
}

#[tokio::test(start_paused = true)]
async fn a_struct_borrows_its_transaction_and_a_failure_rolls_it_back() {
    struct Odd;
    impl TransactionHandler<u64, MemoryTransaction> for Odd {
        async fn handle(
            &self,
            number: Delivery<u64>,
            _: &mut MemoryTransaction,
            _: HandlerContext,
        ) -> Result<(), HandlerFailure> {
            if number.require()?.is_multiple_of(2) {
                Err(HandlerFailure::permanent("EVEN", "even"))
            } else {
                Ok(())
            }
        }
    }
    let (bench, inbox) = (bench().await, Flaky::new(&[]));
    let handler = in_transaction(Odd);
    let consumer =
        bench.messaging.consume_with_inbox("orders", "billing", inbox.clone(), handler).await.unwrap();
    bench.fake.deliver(numbered(1));
    bench.fake.deliver(numbered(2));
    until("both", || consumer.counters().settled == 2).await;
    assert!(inbox.inner.contains(&key(1)) && !inbox.inner.contains(&key(2)));
    assert_eq!(consumer.counters().discarded, 1);
}

#[tokio::test(start_paused = true)]
async fn a_message_without_an_id_is_a_permanent_failure() {
    let (bench, inbox) = (bench().await, Flaky::new(&[]));
    let handler = |_: Delivery<u64>, tx: MemoryTransaction| async move { Ok(tx) };
    let consumer = bench.messaging.consume_with_inbox("orders", "billing", inbox, handler).await.unwrap();
    let mut nameless = numbered(1);
    nameless.message.set_id(None);
    bench.fake.deliver(nameless);
    until("discarded", || consumer.counters().discarded == 1).await;
    assert_eq!(bench.notes.count("failed  1 MESSAGE_ID_MISSING"), 1);
}
