//! Many threads against the one verdict: a transport that answers from several threads of the operating system, early,
//! late, or never, under publishers that drop their futures at any moment.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

mod support;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use async_trait::async_trait;
use consign_core_api::outcome::Transmission;
use consign_core_api::spi::{
    Completion, ConnectContext, Connection, ConnectionHealth, Destination, DestinationSetup, PublishReply,
    PublishRequest, Refusal, SlotKey, Subscription, SubscriptionSpec, Transport, TransportError, Withdrawal,
};
use consign_core_api::{Capabilities, Failure, FailureCategory, Message, MessageId, Problem, PublishOutcome};
use consign_policy::ProfileSpecs;
use consign_runtime::{Messaging, Observed, Observer, Publisher, Receipt};
use serde_json::{Value, json};
use support::{Manual, accepted, id, unknown};

const TASKS: usize = 48;
const EACH: usize = 200;
const THREADS: usize = 4;

const PROFILES: &str = r#"
[admission]
in_flight = 96
wait = "3ms"
[destinations.plain]
transport = "main"
delivery = "AT_LEAST_ONCE"
ordering = "NONE"
publish = { deadline = "9ms", in_flight = 80 }
[destinations.once]
transport = "main"
delivery = "AT_MOST_ONCE"
ordering = "NONE"
publish = { deadline = "4ms", in_flight = 80 }
[destinations.keyed]
transport = "main"
delivery = "AT_LEAST_ONCE"
ordering = "KEY"
key = { from = "message" }
publish = { deadline = "6ms", in_flight = 80 }
[destinations.long]
transport = "main"
delivery = "AT_LEAST_ONCE"
ordering = "NONE"
publish = { deadline = "80ms", in_flight = 80 }
"#;

/// A sequence of numbers that a seed decides.
struct Dice(u64);

impl Dice {
    fn new(seed: usize) -> Self {
        Self((seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
}

/// What is known of each message by its number.
#[derive(Default)]
struct Facts {
    /// How often an outcome was told to the observers.
    told: AtomicUsize,
    /// The outcome that was told, and the one that a caller got.
    outcome: AtomicU8,
    returned: AtomicU8,
    /// The adapter was given it, may have put it where a consumer sees it, told that the broker accepted it.
    given: AtomicBool,
    stored: AtomicBool,
    accepted: AtomicBool,
}

struct Log(Vec<Facts>);

impl Log {
    fn of(&self, id: Option<&MessageId>) -> &Facts {
        &self.0[id.unwrap().to_string().parse::<usize>().unwrap()]
    }
}

fn word(outcome: &PublishOutcome) -> u8 {
    match outcome {
        PublishOutcome::Confirmed(_) => b'C',
        PublishOutcome::Rejected(_) => b'R',
        PublishOutcome::Ambiguous(_) => b'A',
    }
}

impl Observer for Log {
    fn observe(&self, event: &Observed<'_>) {
        if let Observed::Outcome { id, outcome, .. } = event {
            let facts = self.of(*id);
            facts.told.fetch_add(1, Ordering::SeqCst);
            facts.outcome.store(word(outcome), Ordering::SeqCst);
        }
    }
}

type Job = (PublishRequest, Completion<PublishReply>);
type Buried = (Completion<PublishReply>, Option<MessageId>);

#[derive(Clone)]
struct Hostile {
    log: Arc<Log>,
    threads: Arc<Vec<mpsc::Sender<Job>>>,
    turn: Arc<AtomicUsize>,
    /// What can still be taken back.
    queue: Arc<Mutex<HashMap<SlotKey, Completion<PublishReply>>>>,
    /// What is answered when everything else is over; with its id, if it was handed over.
    grave: Arc<Mutex<Vec<Buried>>>,
    /// Answers everything well and at once.
    tame: Arc<AtomicBool>,
}

fn refused() -> PublishReply {
    let failure = Failure::new(FailureCategory::Capacity, "TEST".into(), "full");
    PublishReply::Refused(Refusal::new(Transmission::NotTransmitted, failure))
}

impl Hostile {
    fn start(log: &Arc<Log>) -> (Self, Vec<std::thread::JoinHandle<()>>) {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| mpsc::channel()).unzip();
        let hostile = Self {
            log: Arc::clone(log),
            threads: Arc::new(senders),
            turn: Arc::default(),
            queue: Arc::default(),
            grave: Arc::default(),
            tame: Arc::default(),
        };
        let threads = receivers.into_iter().enumerate().map(|(seed, jobs)| {
            // The thread holds no sender, so that it ends with the transport.
            let (log, queue, grave) = (hostile.log.clone(), hostile.queue.clone(), hostile.grave.clone());
            std::thread::spawn(move || {
                Thread { log, queue, grave, dice: Dice::new(seed), late: Vec::new() }.run(&jobs)
            })
        });
        let threads = threads.collect();
        (hostile, threads)
    }
}

struct Thread {
    log: Arc<Log>,
    queue: Arc<Mutex<HashMap<SlotKey, Completion<PublishReply>>>>,
    grave: Arc<Mutex<Vec<Buried>>>,
    dice: Dice,
    /// What is answered when some more came.
    late: Vec<(Completion<PublishReply>, MessageId)>,
}

impl Thread {
    fn run(mut self, jobs: &mpsc::Receiver<Job>) {
        loop {
            match jobs.recv_timeout(Duration::from_millis(20)) {
                Ok((request, done)) => self.act(request.message.id().unwrap().clone(), done),
                Err(mpsc::RecvTimeoutError::Timeout) => self.late.clear(),
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn accept(&self, id: &MessageId) -> PublishReply {
        let facts = self.log.of(Some(id));
        facts.stored.store(true, Ordering::SeqCst);
        facts.accepted.store(true, Ordering::SeqCst);
        accepted()
    }

    fn act(&mut self, id: MessageId, done: Completion<PublishReply>) {
        let facts = self.log.clone();
        let facts = facts.of(Some(&id));
        match self.dice.roll(16) {
            0 => return drop(done),
            1 => return done.resolve(refused()),
            2 => std::thread::sleep(Duration::from_micros(self.dice.roll(300))),
            3 => {
                // Never handed over until the end of everything.
                return self.grave.lock().unwrap().push((done, None));
            }
            _ => {}
        }
        if !done.hand_over() {
            return;
        }
        let sink = Arc::clone(done.sink());
        match self.dice.roll(16) {
            0 => {
                facts.stored.store(true, Ordering::SeqCst);
                drop(done);
            }
            1..=3 => {
                facts.stored.store(self.dice.roll(2) == 0, Ordering::SeqCst);
                done.resolve(unknown());
            }
            4 => {
                facts.stored.store(true, Ordering::SeqCst);
                sink.released(done.key());
                self.grave.lock().unwrap().push((done, Some(id)));
            }
            5 => {
                facts.stored.store(true, Ordering::SeqCst);
                self.grave.lock().unwrap().push((done, Some(id)));
            }
            6 => {
                // Not written: it can be taken back, and is otherwise never written.
                self.queue.lock().unwrap().insert(done.key(), done);
            }
            7 | 8 => {
                let reply = self.accept(&id);
                self.late.push((done, id));
                if self.late.len() < 4 {
                    return;
                }
                let mut batch = Vec::new();
                for (done, _) in self.late.drain(..) {
                    if self.dice.roll(2) == 0 {
                        sink.released(done.key());
                    }
                    done.into_batch(reply.clone(), &mut batch);
                }
                sink.resolve(&mut batch);
            }
            9 => {
                let reply = self.accept(&id);
                let key = done.into_raw();
                std::thread::sleep(Duration::from_micros(self.dice.roll(300)));
                Completion::new(sink, key).resolve(reply);
            }
            10 => done.resolve(refused()),
            _ => {
                let reply = self.accept(&id);
                if self.dice.roll(2) == 0 {
                    sink.released(done.key());
                }
                done.resolve(reply);
            }
        }
    }
}

#[async_trait]
impl Transport for Hostile {
    fn kind(&self) -> &'static str {
        "hostile"
    }

    fn validate(&self, _: &DestinationSetup) -> Vec<Problem> {
        Vec::new()
    }

    fn capabilities(&self, setup: &DestinationSetup) -> Capabilities {
        let window = Some(Duration::from_secs(60));
        Manual { unpipelined: true, window, ..Manual::default() }.capabilities(setup)
    }

    async fn connect(&self, _: ConnectContext) -> Result<Arc<dyn Connection>, TransportError> {
        Ok(Arc::new(self.clone()))
    }
}

#[async_trait]
impl Connection for Hostile {
    async fn open(&self, _: &DestinationSetup) -> Result<Arc<dyn Destination>, Vec<Problem>> {
        Ok(Arc::new(self.clone()))
    }

    async fn health(&self) -> ConnectionHealth {
        ConnectionHealth::Up
    }

    async fn close(&self, _: Duration) {}
}

#[async_trait]
impl Destination for Hostile {
    fn publish(&self, request: PublishRequest, done: Completion<PublishReply>) {
        let facts = self.log.of(request.message.id());
        facts.given.store(true, Ordering::SeqCst);
        if self.tame.load(Ordering::SeqCst) {
            facts.accepted.store(true, Ordering::SeqCst);
            return done.resolve(accepted());
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        self.threads[turn % THREADS].send((request, done)).unwrap();
    }

    fn withdraw(&self, key: SlotKey) -> Withdrawal {
        match self.queue.lock().unwrap().remove(&key) {
            Some(done) => {
                let _ = done.into_raw();
                Withdrawal::Withdrawn
            }
            None => Withdrawal::TooLate,
        }
    }

    async fn subscribe(&self, _: SubscriptionSpec) -> Result<Box<dyn Subscription>, TransportError> {
        std::future::pending().await
    }
}

fn message(n: usize, key: u64) -> Message<Value> {
    Message::new(json!(n)).id(id(&n.to_string())).key(key.to_string())
}

fn note(log: &Log, n: usize, outcome: &PublishOutcome) {
    log.0[n].returned.store(word(outcome), Ordering::SeqCst);
}

/// Publishes in every way there is, and drops futures and receipts at any moment.
async fn publish(task: usize, log: Arc<Log>, publishers: Vec<Publisher<Value>>) {
    let mut dice = Dice::new(1000 + task);
    let mut kept: Vec<(usize, Receipt)> = Vec::new();
    for n in (task * EACH)..((task + 1) * EACH) {
        let publisher = &publishers[usize::try_from(dice.roll(64)).unwrap().min(3)];
        let publisher = if n % 3 == 0 { publisher } else { &publishers[n % 3] };
        let message = message(n, dice.roll(6));
        match dice.roll(8) {
            0 => note(&log, n, &publisher.publish(message).await),
            1 => {
                let bound = Duration::from_millis(dice.roll(7));
                if let Ok(outcome) = tokio::time::timeout(bound, publisher.publish(message)).await {
                    note(&log, n, &outcome);
                }
            }
            2 => {
                tokio::select! {
                    biased;
                    outcome = publisher.publish(message) => note(&log, n, &outcome),
                    () = tokio::task::yield_now() => {}
                }
            }
            _ => match publisher.submit(message).await {
                Err(rejection) => note(&log, n, &PublishOutcome::Rejected(rejection)),
                Ok(receipt) if dice.roll(6) == 0 => drop(receipt),
                Ok(receipt) => kept.push((n, receipt)),
            },
        }
        if kept.len() > 7 {
            let at = usize::try_from(dice.roll(8)).unwrap();
            let (n, receipt) = kept.swap_remove(at);
            note(&log, n, &receipt.await);
        }
    }
    for (n, receipt) in kept {
        note(&log, n, &receipt.await);
    }
}

async fn build(hostile: &Hostile, log: &Arc<Log>) -> Messaging {
    Messaging::builder()
        .transport("main", hostile.clone())
        .profiles(ProfileSpecs::from_toml(PROFILES).unwrap())
        .observer(log.clone())
        .build()
        .await
        .unwrap()
}

/// Counts the slots that are free, by taking them all.
async fn free_slots(messaging: &Messaging, first: usize) -> usize {
    let publisher: Publisher<Value> = messaging.publisher("plain").unwrap();
    let mut taken = Vec::new();
    loop {
        match publisher.submit(message(first + taken.len(), 0)).await {
            Ok(receipt) => taken.push(receipt),
            Err(rejection) => {
                assert_eq!(rejection.failure().code(), "SLOTS_EXHAUSTED");
                return taken.len();
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_publish_has_one_true_outcome_and_everything_returns_whatever_the_transport_does() {
    const ALL: usize = TASKS * EACH;
    let log = Arc::new(Log((0..ALL + 10_000).map(|_| Facts::default()).collect()));
    let (hostile, threads) = Hostile::start(&log);
    let messaging = build(&hostile, &log).await;
    let publishers: Vec<Publisher<Value>> =
        ["plain", "once", "keyed", "long"].map(|name| messaging.publisher(name).unwrap()).into();
    let tasks: Vec<_> =
        (0..TASKS).map(|task| tokio::spawn(publish(task, log.clone(), publishers.clone()))).collect();
    for task in tasks {
        tokio::time::timeout(Duration::from_secs(60), task).await.expect("no verdict").unwrap();
    }

    // Answers that come after everything; what was never handed over cannot be any more.
    let settled = async {
        loop {
            let buried = std::mem::take(&mut *hostile.grave.lock().unwrap());
            for (done, handed_over) in buried {
                match handed_over {
                    Some(id) => {
                        log.of(Some(&id)).accepted.store(true, Ordering::SeqCst);
                        done.resolve(accepted());
                    }
                    None if done.hand_over() => done.resolve(unknown()),
                    None => drop(done),
                }
            }
            hostile.queue.lock().unwrap().clear();
            let health = messaging.health().await;
            if (health.publishes_in_flight, health.bytes_in_flight) == (0, 0) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), settled).await.expect("permits or bytes are lost");

    let mut seen: HashMap<u8, usize> = HashMap::new();
    for (n, facts) in log.0[..ALL].iter().enumerate() {
        let get = |flag: &AtomicBool| flag.load(Ordering::SeqCst);
        let told = facts.told.load(Ordering::SeqCst);
        let (outcome, returned) =
            (facts.outcome.load(Ordering::SeqCst), facts.returned.load(Ordering::SeqCst));
        assert!(told <= 1, "message {n} has {told} outcomes");
        assert!(told == 1 || !get(&facts.given), "message {n} was given to the adapter and has no outcome");
        assert!(returned == 0 || returned == outcome, "message {n}: one was told, another returned");
        assert!(outcome != b'C' || get(&facts.accepted), "message {n} is CONFIRMED and was never accepted");
        assert!(outcome != b'R' || !get(&facts.stored), "message {n} is REJECTED and may be stored");
        *seen.entry(outcome).or_default() += 1;
    }
    assert!(b"CRA".iter().all(|kind| seen.get(kind).is_some_and(|n| *n > 100)), "it proved little: {seen:?}");

    hostile.tame.store(true, Ordering::SeqCst);
    let fresh = build(&hostile, &log).await;
    assert_eq!(free_slots(&messaging, ALL).await, free_slots(&fresh, ALL).await, "slots are lost");
    drop((publishers, messaging, fresh, hostile));
    for thread in threads {
        thread.join().unwrap();
    }
}
