//! Something happens to the connection after every byte of a publish, in both directions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use consign_runtime::{Messaging, Publisher};
use consign_testkit::audit::Event;
use consign_testkit::lab::Number;

use super::scene::{Numbers, Scene, Setting};
use super::target::Target;
use super::{Fault, Recording};
use crate::proxy::{Act, Direction, Proxy, Rule};
use crate::{Error, Result};

/// How many connections are swept at once.
const LANES: u64 = 6;
/// How far beyond a measured exchange the sweep goes, since numbers grow a digit.
const BEYOND: u64 = 4;
/// How long a lane may take to publish again after a fault.
const RECOVERY: Duration = Duration::from_secs(20);

/// One place of the sweep.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) direction: Direction,
    pub(super) after: u64,
    /// The connection cannot be made again before the verdict.
    pub(super) down: bool,
}

/// All places of an exchange of so many bytes, each direction from its first byte to beyond its last.
pub(super) fn places(to_broker: u64, to_client: u64, downs: &[bool]) -> Vec<Place> {
    let of =
        |direction, bytes: u64, down| (0..=bytes + BEYOND).map(move |after| Place { direction, after, down });
    downs
        .iter()
        .flat_map(|down| {
            of(Direction::ToBroker, to_broker, *down).chain(of(Direction::ToClient, to_client, *down))
        })
        .collect()
}

/// What a fault of a sweep does.
pub(super) const fn act(fault: Fault) -> Act {
    match fault {
        Fault::Reset => Act::Reset,
        Fault::BlackHole => Act::BlackHole,
        _ => Act::Close,
    }
}

/// Starts a proxy before the server of the run.
pub(super) async fn proxy(scene: &Scene) -> Result<Arc<Proxy>> {
    let address = match &*scene.target {
        Target::Nats(server) => server.address(),
        #[cfg(feature = "in-memory")]
        Target::InMemory(_) => return Err(Error::Adapter("the embedded broker has no connection".into())),
    };
    Proxy::start(address).await.map(Arc::new).map_err(Error::io("starting a proxy"))
}

struct Lane {
    proxy: Arc<Proxy>,
    publisher: Publisher<Number>,
    numbers: Numbers,
    recorder: Recording,
    act: Act,
    until: Instant,
    // Keeps the library.
    _messaging: Messaging,
}

pub(super) async fn run(scene: &mut Scene) -> Result<()> {
    let mut lanes = Vec::new();
    for lane in 0..LANES {
        let proxy = proxy(scene).await?;
        let name = format!("audit-publish-{lane}");
        let setting = Setting { ordered: false, in_flight: 64, through: Some(proxy.address()) };
        let messaging = scene.library(&name, setting, None).await?;
        lanes.push(Lane {
            publisher: messaging.publisher(&name).map_err(|error| Error::Command(error.to_string()))?,
            numbers: Numbers::new(&scene.recorder, &name, name.as_str()),
            recorder: scene.recorder.clone(),
            act: act(scene.fault),
            // The settlements get the other half.
            until: Instant::now() + scene.until.saturating_duration_since(Instant::now()) / 2,
            proxy,
            _messaging: messaging,
        });
    }
    let Some(first) = lanes.first() else { return Ok(()) };
    let (to_broker, to_client) = first.measure().await?;
    // What is swallowed is not made good by another connection anyway.
    let downs: &[bool] = if scene.fault == Fault::BlackHole { &[false] } else { &[false, true] };
    let mut places = places(to_broker, to_client, downs);
    scene.rng(0).shuffle(&mut places);
    let (total, places) = (places.len(), Arc::new(places));
    let next = Arc::new(AtomicU64::new(0));
    let tasks: Vec<_> = lanes
        .into_iter()
        .map(|lane| tokio::spawn(lane.sweep(Arc::clone(&places), Arc::clone(&next))))
        .collect();
    let (mut swept, mut unfired) = (0, 0);
    for task in tasks {
        let (did, missed) = task.await.map_err(|error| Error::Command(format!("a lane: {error}")))??;
        (swept, unfired) = (swept + did, unfired + missed);
    }
    let places = format!("{swept} of {total} places swept, {unfired} beyond the last byte");
    scene.notes.push(format!("publish: {to_broker} bytes there, {to_client} back; {places}"));
    Ok(())
}

impl Lane {
    /// Returns how many bytes a publish sends there and back.
    async fn measure(&self) -> Result<(u64, u64)> {
        self.recover().await?;
        let before = self.proxy.total();
        let _ = self.numbers.publish(&self.publisher).await;
        let after = self.proxy.total();
        Ok((after.to_broker - before.to_broker, after.to_client - before.to_client))
    }

    /// Publishes until one is confirmed.
    async fn recover(&self) -> Result<()> {
        let until = Instant::now() + RECOVERY;
        while !self.numbers.publish(&self.publisher).await.is_confirmed() {
            if Instant::now() >= until {
                return Err(Error::Broker(format!("nothing is confirmed {RECOVERY:?} after a fault")));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// Takes places until there are none or the time is over. Answers how many, and how many did not fire.
    async fn sweep(self, places: Arc<Vec<Place>>, next: Arc<AtomicU64>) -> Result<(u64, u64)> {
        let (mut swept, mut unfired) = (0, 0);
        while Instant::now() < self.until {
            let place = usize::try_from(next.fetch_add(1, Ordering::Relaxed)).ok();
            let Some(place) = place.and_then(|place| places.get(place)) else { break };
            self.recover().await?;
            self.recorder.note(Event::Fault { what: format!("{:?}, {place:?}", self.act) });
            self.proxy.shut(place.down);
            self.proxy.arm(Rule { direction: place.direction, after: place.after, act: self.act });
            // Recorded, and judged by the checker.
            let _ = self.numbers.publish(&self.publisher).await;
            unfired += u64::from(self.proxy.disarm());
            self.proxy.shut(false);
            if self.act == Act::BlackHole {
                // Nothing else would end a connection that only swallows.
                self.proxy.end_all(false);
            }
            swept += 1;
        }
        Ok((swept, unfired))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_both_directions_is_a_place() {
        let places = places(3, 2, &[false, true]);
        for down in [false, true] {
            for (direction, bytes) in [(Direction::ToBroker, 3), (Direction::ToClient, 2)] {
                for after in 0..=bytes + BEYOND {
                    let same = |place: &&Place| {
                        (place.direction, place.after, place.down) == (direction, after, down)
                    };
                    assert_eq!(places.iter().filter(same).count(), 1);
                }
            }
        }
    }
}
