//! A broker whose events, and whose every answer to a settlement or a copy, are given by the test.
#![allow(dead_code, unreachable_pub, unused_imports, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

mod fake;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use consign_core_api::spi::{DeliveryToken, Epoch, Inbound, UnitId};
use consign_core_api::{BytesCodec, EncodedMessage, Message, MessageId, MessagePosition, SettlementOutcome};
use consign_policy::ProfileSpecs;
use consign_runtime::consumer::Handler;
use consign_runtime::{Consumer, Messaging, Observed, Observer};

pub use fake::{Answer, Fake, Verb, sequence_of};

/// What the observers are told, as lines.
#[derive(Default)]
pub struct Notes(Mutex<Vec<String>>);

impl Notes {
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub fn count(&self, prefix: &str) -> usize {
        self.lines().iter().filter(|line| line.starts_with(prefix)).count()
    }
}

impl Observer for Notes {
    fn observe(&self, event: &Observed<'_>) {
        let id = |id: Option<&MessageId>| id.map(ToString::to_string).unwrap_or_default();
        let line = match event {
            Observed::Settled { delivery, outcome: SettlementOutcome::Settled(_) } => {
                format!("settled {}", id(delivery.id))
            }
            Observed::Settled { delivery, outcome: SettlementOutcome::Unknown(unknown) } => {
                format!("unknown {} {}", id(delivery.id), unknown.failure().code())
            }
            Observed::HandlerFailed { delivery, attempt, failure } => {
                format!("failed {} {attempt} {}", id(delivery.id), failure.code())
            }
            Observed::Retried { delivery, attempt, how, .. } => {
                format!("retried {} {attempt} {how}", id(delivery.id))
            }
            Observed::DeadLettered { delivery, dead_letter, .. } => {
                format!("dead {} {dead_letter}", id(delivery.id))
            }
            Observed::Discarded { delivery, failure } => {
                format!("discarded {} {}", id(delivery.id), failure.code())
            }
            Observed::Released { delivery } => format!("released {}", id(delivery.id)),
            Observed::Halted { delivery, failure } => {
                format!("halted {} {}", id(delivery.id), failure.code())
            }
            Observed::Filtered { delivery, what } => format!("filtered {} {what}", id(delivery.id)),
            _ => return,
        };
        self.0.lock().unwrap().push(line);
    }
}

pub struct Bench {
    pub fake: Fake,
    pub notes: Arc<Notes>,
    pub messaging: Messaging,
}

/// Starts a library with these profiles. Every profile names the transport `main`.
pub async fn start(profiles: &str) -> Bench {
    start_on(Fake::default(), profiles).await
}

pub async fn start_on(fake: Fake, profiles: &str) -> Bench {
    let notes = Arc::new(Notes::default());
    let messaging = Messaging::builder()
        .transport("main", fake.clone())
        .profiles(ProfileSpecs::from_toml(profiles).unwrap())
        .observer(notes.clone())
        .build()
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    Bench { fake, notes, messaging }
}

impl Bench {
    pub async fn consume<H: Handler<Bytes>>(&self, handler: H) -> Consumer {
        self.messaging.consume_with("orders", "billing", BytesCodec::new(), handler).await.unwrap()
    }
}

/// A profile of `orders`, unordered and at least once, with more lines.
pub fn orders(more: &str) -> String {
    profile("orders", "NONE", more)
}

pub fn profile(name: &str, ordering: &str, more: &str) -> String {
    let key = if ordering == "KEY" { "key = { from = \"message\" }" } else { "" };
    format!(
        "[destinations.\"{name}\"]\ntransport = \"main\"\ndelivery = \"AT_LEAST_ONCE\"\n\
         ordering = \"{ordering}\"\n{key}\n{more}\n"
    )
}

/// A delivery of unit 0, epoch 1; the tag is also the number in the id and in the position.
pub fn inbound(tag: u64) -> Inbound {
    inbound_of(0, 1, tag)
}

pub fn inbound_of(unit: u32, epoch: u64, tag: u64) -> Inbound {
    let (_, parts) = Message::<()>::tombstone().id(id(tag)).into_parts();
    let token = DeliveryToken::new(UnitId::new(unit), Epoch::new(epoch), tag);
    let position = MessagePosition::Offset { partition: unit, offset: tag };
    Inbound::new(token, EncodedMessage::new(format!("value {tag}"), parts)).at(position)
}

pub fn keyed(tag: u64, key: &str) -> Inbound {
    let mut inbound = inbound(tag);
    inbound.message.set_key(Some(Bytes::copy_from_slice(key.as_bytes())));
    inbound
}

pub fn id(tag: u64) -> MessageId {
    MessageId::new(format!("m{tag}")).unwrap()
}

/// Waits, in paused time, until something is true.
pub async fn until(what: &str, mut is: impl FnMut() -> bool) {
    for _ in 0..200_000 {
        if is() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("never happened: {what}");
}

/// Lets everything that can happen without time passing happen, and a little more.
pub async fn a_while() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}
