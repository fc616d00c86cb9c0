//! A transport whose every answer is given by the test.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering as Atomic};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use consign_core_api::capability::{DeliveryCount, HeaderModel, Ordering};
use consign_core_api::outcome::{ConfirmationEvidence, Copies, Evidenced, Persistence};
use consign_core_api::spi::{
    Acceptance, Completion, ConnectContext, Connection, ConnectionHealth, Destination, DestinationSetup,
    PublishReply, PublishRequest, SlotKey, Subscription, SubscriptionSpec, Transport, TransportError,
    Withdrawal,
};
use consign_core_api::{
    Capabilities, Capability, CapabilityUnavailable, Failure, FailureCategory, MessageId, Problem,
    PublishOutcome, SettlementLevel, Support,
};
use consign_policy::ProfileSpecs;
use consign_runtime::{Messaging, Observed, Observer};

type Queue = VecDeque<(PublishRequest, Completion<PublishReply>)>;

/// Keeps what it is given until the test answers.
#[derive(Clone, Default)]
pub struct Manual {
    pub queue: Arc<Mutex<Queue>>,
    pub withdrawn: Arc<AtomicBool>,
    pub unpipelined: bool,
    pub window: Option<Duration>,
    pub closed: Arc<AtomicBool>,
    /// What happens while the runtime asks for a publish back; the first call takes it.
    pub while_withdrawing: Hook,
    /// What happens while the connection closes; the first call takes it.
    pub while_closing: Hook,
    /// Whether closing never ends.
    pub never_closes: bool,
    /// Whether connecting never ends.
    pub never_connects: bool,
}

/// Something that a test does in the middle of a call.
pub type Hook = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

fn run(hook: &Hook) {
    let taken = hook.lock().unwrap().take();
    if let Some(act) = taken {
        act();
    }
}

impl Manual {
    pub fn while_withdrawing(&self, act: impl FnOnce() + Send + 'static) {
        *self.while_withdrawing.lock().unwrap() = Some(Box::new(act));
    }

    pub fn while_closing(&self, act: impl FnOnce() + Send + 'static) {
        *self.while_closing.lock().unwrap() = Some(Box::new(act));
    }

    pub fn next(&self) -> (PublishRequest, Completion<PublishReply>) {
        self.queue.lock().unwrap().pop_front().expect("nothing was published")
    }

    pub fn waiting(&self) -> usize {
        self.queue.lock().unwrap().len()
    }
}

pub fn evidence() -> ConfirmationEvidence {
    ConfirmationEvidence::new(
        Evidenced::observed(Copies::Leader),
        Evidenced::observed(Persistence::PageCache),
    )
}

pub fn accepted() -> PublishReply {
    PublishReply::Accepted(Acceptance::new(evidence()))
}

pub fn unknown() -> PublishReply {
    PublishReply::Unknown(Failure::new(FailureCategory::TransientInfrastructure, "TEST".into(), "unknown"))
}

#[async_trait]
impl Transport for Manual {
    fn kind(&self) -> &'static str {
        "manual"
    }

    fn validate(&self, _: &DestinationSetup) -> Vec<Problem> {
        Vec::new()
    }

    fn capabilities(&self, _: &DestinationSetup) -> Capabilities {
        let mut all = Capabilities::builder(Ordering::Key(Support::Native("".into())))
            .strongest_evidence(evidence())
            .settlement_level(SettlementLevel::Committed)
            .pipelined_order(!self.unpipelined)
            .redelivery_keeps_order(true)
            .delivery_count(DeliveryCount::Counted)
            .headers(HeaderModel::FULL)
            .tombstones(true);
        if let Some(window) = self.window {
            all = all.deduplication_window(window);
        }
        for capability in Capability::ALL {
            all = all.native(capability, "");
        }
        all.build()
    }

    async fn connect(&self, _: ConnectContext) -> Result<Arc<dyn Connection>, TransportError> {
        if self.never_connects {
            std::future::pending::<()>().await;
        }
        Ok(Arc::new(self.clone()))
    }
}

#[async_trait]
impl Connection for Manual {
    async fn open(&self, _: &DestinationSetup) -> Result<Arc<dyn Destination>, Vec<Problem>> {
        Ok(Arc::new(self.clone()))
    }

    async fn health(&self) -> ConnectionHealth {
        ConnectionHealth::Up
    }

    async fn close(&self, _: Duration) {
        self.closed.store(true, Atomic::SeqCst);
        run(&self.while_closing);
        if self.never_closes {
            std::future::pending::<()>().await;
        }
    }
}

#[async_trait]
impl Destination for Manual {
    fn publish(&self, request: PublishRequest, done: Completion<PublishReply>) {
        self.queue.lock().unwrap().push_back((request, done));
    }

    fn withdraw(&self, _: SlotKey) -> Withdrawal {
        let withdrawn = self.withdrawn.swap(false, Atomic::SeqCst);
        run(&self.while_withdrawing);
        if withdrawn { Withdrawal::Withdrawn } else { Withdrawal::TooLate }
    }

    async fn subscribe(&self, _: SubscriptionSpec) -> Result<Box<dyn Subscription>, TransportError> {
        Err(TransportError::Unavailable(CapabilityUnavailable::new(
            "consuming",
            "this transport only publishes",
        )))
    }
}

/// Notes outcomes and late answers.
#[derive(Default)]
pub struct Notes(pub Mutex<Vec<String>>);

impl Observer for Notes {
    fn observe(&self, event: &Observed<'_>) {
        let line = match event {
            Observed::Outcome { outcome, .. } => match outcome {
                PublishOutcome::Confirmed(_) => "confirmed".to_owned(),
                PublishOutcome::Rejected(rejection) => format!("rejected {}", rejection.failure().code()),
                PublishOutcome::Ambiguous(ambiguity) => format!("ambiguous {}", ambiguity.failure().code()),
            },
            Observed::LateResolution { id, .. } => format!("late, id known: {}", id.is_some()),
            _ => return,
        };
        self.0.lock().unwrap().push(line);
    }
}

impl Notes {
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

pub struct Bench {
    pub manual: Manual,
    pub notes: Arc<Notes>,
    pub messaging: Messaging,
}

/// Starts a library on the manual transport with these profiles.
pub async fn start(manual: Manual, profiles: &str) -> Bench {
    let notes = Arc::new(Notes::default());
    let messaging = Messaging::builder()
        .transport("main", manual.clone())
        .profiles(ProfileSpecs::from_toml(profiles).unwrap())
        .observer(notes.clone())
        .key_resolver("first-header", |message| {
            message.headers().iter().next().map(|header| header.value().clone())
        })
        .build()
        .await
        .unwrap();
    Bench { manual, notes, messaging }
}

/// One unordered destination `d` with a deadline of 2 s.
pub const PLAIN: &str = r#"
[destinations.d]
transport = "main"
delivery = "AT_LEAST_ONCE"
ordering = "NONE"
publish = { deadline = "2s" }
"#;

pub fn id(text: &str) -> MessageId {
    MessageId::new(text).unwrap()
}
