//! Something happens to the connection after every byte of a settlement, in both directions.
//!
//! A handler waits until the rule is armed, so that what is counted begins with its settlement. A pull or the
//! settlement of a redelivery may come between; the sweep goes on beyond the measured bytes for that.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use consign_runtime::{Observed, Observer, Publisher};
use consign_testkit::audit::Event;
use consign_testkit::lab::{Gate, Number};
use tokio::sync::mpsc;

use super::scene::{Numbers, Scene, Setting};
use super::sweep::{Place, act, places, proxy};
use super::{Fault, Recording};
use crate::proxy::{Act, Proxy, Rule};
use crate::{Error, Result};

const LANES: u64 = 6;
/// How long a consumer may take to get the next message after a fault.
const RECOVERY: Duration = Duration::from_secs(30);
/// How long a settlement is waited for: an unknown end may take longer, and is recorded when it comes.
const PATIENCE: Duration = Duration::from_millis(300);

/// The message under test, what its handler waits for, and who is told of its start and of its end.
#[derive(Debug, Default, Clone)]
struct Test(Arc<Mutex<Option<Watched>>>);

/// The message under test, the gate that its handler waits at, and where its steps are told.
type Watched = (String, Gate, mpsc::UnboundedSender<Step>);

#[derive(Debug, PartialEq)]
enum Step {
    Handling,
    Ended,
}

impl Test {
    fn with<R>(&self, id: &str, take: impl FnOnce(&Gate, &mpsc::UnboundedSender<Step>) -> R) -> Option<R> {
        let test = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        test.as_ref().filter(|(tested, ..)| tested == id).map(|(_, gate, tell)| take(gate, tell))
    }

    /// Whoever is no longer waited for is not told, which is no loss.
    fn tell(&self, id: &str, step: Step) {
        let _ = self.with(id, |_, tell| tell.send(step));
    }
}

impl Observer for Test {
    fn observe(&self, event: &Observed<'_>) {
        if let Observed::Settled { delivery, .. } = event
            && let Some(id) = delivery.id
        {
            self.tell(&id.to_string(), Step::Ended);
        }
    }
}

struct Lane {
    proxy: Arc<Proxy>,
    /// Publishes past the proxy.
    publisher: Publisher<Number>,
    numbers: Numbers,
    recorder: Recording,
    test: Test,
    act: Act,
    until: Instant,
}

pub(super) async fn run(scene: &mut Scene) -> Result<()> {
    let mut lanes = Vec::new();
    for lane in 0..LANES {
        let (proxy, test, name) = (proxy(scene).await?, Test::default(), format!("audit-settle-{lane}"));
        let setting = Setting { ordered: false, in_flight: 64, through: None };
        let publishing = scene.library(&name, setting, None).await?;
        let through = Setting { through: Some(proxy.address()), ..setting };
        let consuming = scene.library(&name, through, Some(Arc::new(test.clone()))).await?;
        let waiting = test.clone();
        let before = move |id: String| {
            waiting.tell(&id, Step::Handling);
            let gate = waiting.with(&id, |gate, _| gate.clone());
            async move {
                if let Some(gate) = gate {
                    gate.pass().await;
                }
            }
        };
        scene.consume(&consuming, &name, before).await?;
        lanes.push(Lane {
            publisher: publishing.publisher(&name).map_err(|error| Error::Command(error.to_string()))?,
            numbers: Numbers::new(&scene.recorder, &name, name.as_str()),
            recorder: scene.recorder.clone(),
            test,
            act: act(scene.fault),
            until: scene.until,
            proxy,
        });
    }
    let Some(first) = lanes.first() else { return Ok(()) };
    first.once(None).await?;
    let before = first.proxy.total();
    first.once(None).await?;
    let after = first.proxy.total();
    let (to_broker, to_client) = (after.to_broker - before.to_broker, after.to_client - before.to_client);
    let downs: &[bool] = if scene.fault == Fault::BlackHole { &[false] } else { &[false, true] };
    let mut places = places(to_broker, to_client, downs);
    scene.rng(1).shuffle(&mut places);
    let (total, places, next) = (places.len(), Arc::new(places), Arc::new(AtomicU64::new(0)));
    let tasks: Vec<_> = lanes
        .into_iter()
        .map(|lane| tokio::spawn(lane.sweep(Arc::clone(&places), Arc::clone(&next))))
        .collect();
    let (mut swept, mut unfired) = (0, 0);
    for task in tasks {
        let (did, missed) = task.await.map_err(|error| Error::Command(format!("a lane: {error}")))??;
        (swept, unfired) = (swept + did, unfired + missed);
    }
    // The delivery is among the bytes back, though the rule is armed after it.
    let places = format!("{swept} of {total} places swept, {unfired} beyond the last byte");
    scene.notes.push(format!(
        "settlement: at most {to_broker} bytes there, {to_client} back with the delivery; {places}"
    ));
    Ok(())
}

impl Lane {
    /// Publishes one past the proxy, lets its handler start, arms the rule, and lets the handler end.
    async fn once(&self, place: Option<Place>) -> Result<bool> {
        let (tell, mut steps) = mpsc::unbounded_channel();
        let gate = Gate::default();
        let (id, message) = self.numbers.call(true);
        *self.test.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((id.clone(), gate.clone(), tell));
        let outcome = self.publisher.publish(message).await;
        self.numbers.told(&id, &outcome);
        let handling = tokio::time::timeout(RECOVERY, steps.recv()).await;
        if !matches!(handling, Ok(Some(Step::Handling))) {
            return Err(Error::Broker(format!(
                "{id}, published {outcome}, is not handled after {RECOVERY:?}"
            )));
        }
        if let Some(place) = place {
            self.recorder.note(Event::Fault { what: format!("settlement: {:?}, {place:?}", self.act) });
            self.proxy.shut(place.down);
            self.proxy.arm(Rule { direction: place.direction, after: place.after, act: self.act });
        }
        gate.open();
        // Passed over: a redelivery that starts while the first settlement is under way.
        let ended = async { while steps.recv().await.is_some_and(|step| step != Step::Ended) {} };
        let _ = tokio::time::timeout(PATIENCE, ended).await;
        let unfired = self.proxy.disarm();
        self.proxy.shut(false);
        if place.is_some() && self.act == Act::BlackHole {
            self.proxy.end_all(false);
        }
        Ok(unfired)
    }

    async fn sweep(self, places: Arc<Vec<Place>>, next: Arc<AtomicU64>) -> Result<(u64, u64)> {
        let (mut swept, mut unfired) = (0, 0);
        while Instant::now() < self.until {
            let place = usize::try_from(next.fetch_add(1, Ordering::Relaxed)).ok();
            let Some(place) = place.and_then(|place| places.get(place)) else { break };
            unfired += u64::from(self.once(Some(*place)).await?);
            swept += 1;
        }
        Ok((swept, unfired))
    }
}
