//! Many publishers and consumers while the broker suffers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use consign_core_api::PublishOutcome;
use consign_runtime::Publisher;
use consign_testkit::audit::Event;
use consign_testkit::lab::Number;
use fastrand::Rng;

use super::scene::{Numbers, Scene, Setting};
use super::target::Target;
use crate::{Error, Result};

const DESTINATION: &str = "audit";
const PUBLISHERS: u64 = 4;
/// Of each publisher.
const KEYS: usize = 3;
const WINDOW: usize = 64;
/// How many messages a publisher sends between two breaths, at most.
const BURST: usize = 24;
const BREATH: Duration = Duration::from_millis(25);

pub(super) async fn run(scene: &mut Scene) -> Result<()> {
    let setting = Setting { ordered: true, in_flight: 512, through: None };
    let publishing = scene.library(DESTINATION, setting, None).await?;
    for _ in 0..2 {
        let consuming = scene.library(DESTINATION, setting, None).await?;
        scene.consume(&consuming, DESTINATION, |_| std::future::ready(())).await?;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let mut tasks = Vec::new();
    for lane in 0..PUBLISHERS {
        let publisher =
            publishing.publisher::<Number>(DESTINATION).map_err(|e| Error::Command(e.to_string()))?;
        let numbers = (0..KEYS)
            .map(|key| Numbers::new(&scene.recorder, DESTINATION, format!("p{lane}-k{key}")))
            .collect();
        tasks.push(tokio::spawn(publish(publisher, numbers, scene.rng(lane), Arc::clone(&stop))));
    }
    let suffered = suffer(scene).await;
    stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.map_err(|error| Error::Command(format!("a publisher: {error}")))?;
    }
    suffered
}

/// Keeps a window full, breathing now and then, until it is stopped; then waits for every outcome.
async fn publish(publisher: Publisher<Number>, keys: Vec<Numbers>, mut rng: Rng, stop: Arc<AtomicBool>) {
    let Ok(mut window) = publisher.pipeline(WINDOW) else { return };
    let told = |id: Option<consign_core_api::MessageId>, outcome: &PublishOutcome| {
        if let (Some(id), Some(any)) = (id, keys.first()) {
            any.told(&id.to_string(), outcome);
        }
    };
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..rng.usize(1..=BURST) {
            let Some(numbers) = keys.get(rng.usize(..keys.len())) else { return };
            // A full window would first wait for its oldest, and the deadline of the new one counts from after that.
            if window.in_flight() >= WINDOW
                && let Some((id, outcome)) = window.next().await
            {
                told(id, &outcome);
            }
            let (id, message) = numbers.call(false);
            match window.submit(message).await {
                Ok(Some((id, outcome))) => told(id, &outcome),
                Ok(None) => {}
                Err(rejection) => numbers.told(&id, &PublishOutcome::Rejected(rejection)),
            }
        }
        tokio::time::sleep(BREATH).await;
    }
    while let Some((id, outcome)) = window.next().await {
        told(id, &outcome);
    }
}

async fn suffer(scene: &Scene) -> Result<()> {
    let mut rng = scene.rng(u64::MAX);
    let mut pause = |from: u64, to: u64| Duration::from_millis(rng.u64(from..to));
    tokio::time::sleep(pause(300, 800)).await;
    while !scene.over() {
        let note = |what: String| scene.recorder.note(Event::Fault { what });
        match (&*scene.target, scene.fault) {
            #[cfg(feature = "nats")]
            (Target::Nats(server), super::Fault::Kill) => {
                note("kill -9".into());
                server.inflict(crate::brokers::nats::Nats::kill9).await?;
                tokio::time::sleep(pause(0, 1_500)).await;
                server.inflict(crate::brokers::nats::Nats::restart).await?;
                note("started again".into());
            }
            #[cfg(feature = "nats")]
            (Target::Nats(server), super::Fault::Freeze) => {
                server.inflict(crate::brokers::nats::Nats::freeze).await?;
                note("frozen".into());
                let longest = u64::try_from(scene.deadline.as_millis()).unwrap_or(u64::MAX).saturating_mul(2);
                tokio::time::sleep(pause(longest / 10, longest)).await;
                server.inflict(crate::brokers::nats::Nats::thaw).await?;
                note("thawed".into());
            }
            // The embedded broker brings its own.
            _ => {}
        }
        tokio::time::sleep(pause(300, 1_500)).await;
    }
    Ok(())
}
