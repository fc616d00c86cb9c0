//! One run: its broker, its recorder, its destinations, and its end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use consign_core_api::{BytesCodec, DeliveryGuarantee, MessageId, OrderingScope, PublishOutcome};
use consign_policy::{ConsumerSpec, ProfileSpecs, PublishSpec};
use consign_runtime::{Consumer, Messaging, Observer, Publisher};
use consign_testkit::audit::history::{Delivery, Run, Told};
use consign_testkit::audit::{Event, History, Recorder};
use consign_testkit::lab::{Number, key_of, number_of};
use fastrand::Rng;

use super::target::Target;
use super::{Fault, Options, Recording};
use crate::adapters::Adapter;
use crate::{Error, Result};

/// By how much a verdict may miss its deadline besides the lag of the machine.
const TOLERANCE: Duration = Duration::from_millis(100);
/// When an unsettled delivery comes again.
pub(super) const SETTLEMENT_DEADLINE: Duration = Duration::from_secs(2);
/// How long a consumer must be quiet before everything is taken to be handled: longer than what is lost takes to come
/// again.
const QUIET: Duration = Duration::from_secs(5);
/// How long that may take.
const DRAIN: Duration = Duration::from_secs(90);
/// The group of every run.
pub(super) const GROUP: &str = "audit";

/// One run.
pub(super) struct Scene {
    pub(super) recorder: Recording,
    pub(super) target: Arc<Target>,
    pub(super) fault: Fault,
    pub(super) seed: u64,
    /// When no more faults are inflicted.
    pub(super) until: Instant,
    pub(super) deadline: Duration,
    /// What the reader should know besides the figures.
    pub(super) notes: Vec<String>,
    libraries: Vec<Messaging>,
    consumers: Vec<Consumer>,
    destinations: Vec<String>,
}

/// What a library of a run is like.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    pub(super) ordered: bool,
    pub(super) in_flight: u64,
    pub(super) through: Option<SocketAddr>,
}

impl Scene {
    pub(super) async fn open(options: &Options, fault: Fault, budget: Duration) -> Result<Self> {
        let target = open_target(options).await?;
        let deadline = Duration::from_millis(match fault {
            Fault::Kill | Fault::Freeze => 1_000,
            _ => 300,
        });
        let run = Run {
            seed: options.seed,
            broker: options.broker.to_string(),
            fault: fault.to_string(),
            ordered: matches!(fault, Fault::Kill | Fault::Freeze | Fault::Chaos),
            deadline: micros(deadline),
            tolerance: micros(TOLERANCE),
            expects: fault.expects(),
        };
        Ok(Self {
            recorder: Arc::new(Recorder::begin(run)),
            target: Arc::new(target),
            fault,
            seed: options.seed,
            until: Instant::now() + budget,
            deadline,
            notes: Vec::new(),
            libraries: Vec::new(),
            consumers: Vec::new(),
            destinations: Vec::new(),
        })
    }

    pub(super) fn rng(&self, lane: u64) -> Rng {
        Rng::with_seed(self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(lane))
    }

    pub(super) fn over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Starts a library with one destination.
    pub(super) async fn library(
        &mut self,
        destination: &str,
        setting: Setting,
        also: Option<Arc<dyn Observer>>,
    ) -> Result<Messaging> {
        let publish = PublishSpec::default().deadline(self.deadline).in_flight(setting.in_flight);
        let consumer = ConsumerSpec::default()
            .settlement_deadline(SETTLEMENT_DEADLINE)
            .handler_timeout(Duration::from_secs(30))
            .max_deliveries(1_000);
        let ordering = if setting.ordered { OrderingScope::Key } else { OrderingScope::None };
        let mut profile = consign_testkit::Profile::new("audit")
            .ordering(ordering)
            .delivery(DeliveryGuarantee::AtLeastOnce);
        if setting.ordered {
            profile = profile.native("partitions", 4);
        }
        let spec = profile.spec().publish(publish).consumer(consumer);
        let specs = ProfileSpecs::new().with(destination, spec);
        let mut builder = Messaging::builder()
            .transport("main", self.target.transport(setting.through))
            .observer(self.recorder.clone())
            .profiles(specs);
        if let Some(also) = also {
            builder = builder.observer(also);
        }
        let messaging = builder.build().await.map_err(|error| Error::Broker(error.to_string()))?;
        self.libraries.push(messaging.clone());
        if !self.destinations.iter().any(|known| known == destination) {
            self.destinations.push(destination.to_owned());
        }
        Ok(messaging)
    }

    /// Consumes with a handler that is recorded, waits for what `before` gives, and succeeds.
    pub(super) async fn consume<F, Fut>(
        &mut self,
        messaging: &Messaging,
        destination: &str,
        before: F,
    ) -> Result<()>
    where
        F: Fn(String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let recorder = self.recorder.clone();
        let handler = move |delivery: consign_runtime::Delivery<bytes::Bytes>, _| {
            let id = delivery.encoded().id().map(ToString::to_string).unwrap_or_default();
            recorder.note(Event::Handled {
                delivery: Delivery {
                    group: GROUP.into(),
                    id: id.clone(),
                    position: delivery.position().map(ToString::to_string),
                },
                key: key_of(delivery.key()),
                n: number_of(delivery.encoded()).unwrap_or(u64::MAX),
            });
            let wait = before(id);
            async move {
                wait.await;
                Ok(())
            }
        };
        let consumer = messaging.consume_with(destination, GROUP, BytesCodec::new(), handler).await;
        self.consumers.push(consumer.map_err(|error| Error::Broker(error.to_string()))?);
        Ok(())
    }

    /// Ends everything, reads the broker back, and returns the history.
    pub(super) async fn close(mut self) -> Result<(History, Vec<String>)> {
        for consumer in &self.consumers {
            consumer
                .idle_within(QUIET, DRAIN)
                .await
                .map_err(|error| Error::Broker(format!("a consumer did not become quiet: {error}")))?;
        }
        for consumer in &self.consumers {
            let (group, destination) = (GROUP.into(), consumer.destination().to_string());
            self.recorder.note(Event::Drained { group, destination });
        }
        let (mut in_flight, mut bytes) = (0, 0);
        for messaging in &self.libraries {
            let health = settled_health(messaging).await;
            in_flight += health.publishes_in_flight;
            bytes += health.bytes_in_flight;
        }
        self.recorder.note(Event::Permits { in_flight, bytes });
        for messaging in &self.libraries {
            let report = messaging.shutdown(Duration::from_secs(5)).await;
            let text = report.to_string();
            self.recorder.note(Event::Fault { what: format!("shut down: {text}") });
        }
        let mut count = 0;
        for destination in &self.destinations {
            for found in self.target.read_back(destination).await? {
                count += 1;
                self.recorder.note(found);
            }
        }
        self.recorder.note(Event::ReadBack { count });
        Ok((self.recorder.history(), std::mem::take(&mut self.notes)))
    }
}

/// Waits, bounded, until nothing is charged.
async fn settled_health(messaging: &Messaging) -> consign_runtime::health::Health {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let health = messaging.health().await;
        if health.bytes_in_flight + health.publishes_in_flight == 0 || Instant::now() >= until {
            return health;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn open_target(options: &Options) -> Result<Target> {
    match options.broker {
        #[cfg(feature = "nats")]
        Adapter::Nats => Ok(Target::Nats(super::target::Server::start().await?)),
        #[cfg(feature = "in-memory")]
        Adapter::InMemory => chaotic(options.seed).map(Target::InMemory),
        #[cfg(not(all(feature = "nats", feature = "in-memory")))]
        other => Err(Error::Adapter(format!("{other} is not built in"))),
    }
}

/// For the dropped futures too: their outcomes should not all be the same.
#[cfg(feature = "in-memory")]
fn chaotic(seed: u64) -> Result<consign_in_memory::Broker> {
    use consign_in_memory::{Broker, Chaos, Seed};
    let late = Duration::from_millis(400);
    let chaos = Chaos::new(Seed(seed))
        .ambiguous(0.03)
        .and_then(|chaos| chaos.no_reply(0.02))
        .and_then(|chaos| chaos.rejected(0.02))
        .and_then(|chaos| chaos.confirmed_late(0.01, late))
        .and_then(|chaos| chaos.settle_reply_lost(0.02))
        .and_then(|chaos| chaos.redelivered(0.02))
        .and_then(|chaos| chaos.interrupted(0.002));
    chaos.map(Broker::chaotic).map_err(|error| Error::Command(error.to_string()))
}

pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Makes numbered messages of one key, and records their calls and ends.
pub(super) struct Numbers {
    recorder: Recording,
    destination: String,
    key: String,
    next: AtomicU64,
}

impl Numbers {
    pub(super) fn new(recorder: &Recording, destination: &str, key: impl Into<String>) -> Self {
        Self {
            recorder: recorder.clone(),
            destination: destination.to_owned(),
            key: key.into(),
            next: AtomicU64::new(0),
        }
    }

    /// Makes the next message. Its call is recorded now: make it right before.
    pub(super) fn call(&self, awaited: bool) -> (String, consign_core_api::Message<Number>) {
        self.call_behind(awaited, Duration::ZERO)
    }

    /// Makes the next message, whose call may wait so long for others.
    pub(super) fn call_behind(
        &self,
        awaited: bool,
        behind: Duration,
    ) -> (String, consign_core_api::Message<Number>) {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        let id = MessageId::generate();
        let message = consign_core_api::Message::new(Number { n }).key(&self.key).id(id.clone());
        let id = id.to_string();
        let destination = self.destination.clone();
        self.recorder.note(Event::Call {
            id: id.clone(),
            destination,
            key: self.key.clone(),
            n,
            awaited,
            behind: micros(behind),
        });
        (id, message)
    }

    pub(super) fn told(&self, id: &str, outcome: &PublishOutcome) {
        let (id, verdict) = (id.to_owned(), outcome.into());
        self.recorder.note(Event::Told { id, to: Told::Caller, verdict });
    }

    pub(super) fn dropped(&self, id: &str, polls: u64) {
        self.recorder.note(Event::Dropped { id: id.to_owned(), polls });
    }

    /// Publishes one and waits for its end.
    pub(super) async fn publish(&self, publisher: &Publisher<Number>) -> PublishOutcome {
        let (id, message) = self.call(true);
        let outcome = publisher.publish(message).await;
        self.told(&id, &outcome);
        outcome
    }
}
