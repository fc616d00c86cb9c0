//! How everything ends.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use consign_core_api::time::Clock;
use consign_core_api::{DestinationName, GroupName, MessageId, MessagePosition};
use consign_policy::admission::Class;
use tokio::sync::watch;

use crate::core::Core;
use crate::slab::Reason;

/// What a shutdown left behind.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Publishes that had no answer by the deadline: AMBIGUOUS.
    pub ambiguous: Vec<LeftPublish>,
    /// Publishes that were never sent: REJECTED.
    pub unsent: Vec<LeftPublish>,
    /// Deliveries that were neither settled nor given back with proof: expect them again.
    pub unsettled: Vec<LeftDelivery>,
    /// How many deliveries were settled over the consumers' life.
    pub settled: u64,
    /// Whether the deadline cut something short.
    pub timed_out: bool,
}

/// A publish that a shutdown left without an answer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LeftPublish {
    /// The destination.
    pub destination: DestinationName,
    /// The message.
    pub id: Option<MessageId>,
}

/// A delivery that a shutdown left unsettled.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LeftDelivery {
    /// The destination.
    pub destination: DestinationName,
    /// The group.
    pub group: GroupName,
    /// The message.
    pub id: Option<MessageId>,
    /// Where it stands.
    pub position: Option<MessagePosition>,
}

impl LeftDelivery {
    pub(crate) const fn new(
        destination: DestinationName,
        group: GroupName,
        id: Option<MessageId>,
        position: Option<MessagePosition>,
    ) -> Self {
        Self { destination, group, id, position }
    }
}

impl ShutdownReport {
    /// Tells whether every publish had its answer and every delivery its settlement.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.ambiguous.is_empty() && self.unsent.is_empty() && self.unsettled.is_empty() && !self.timed_out
    }
}

impl fmt::Display for ShutdownReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "settled: {}, ambiguous: {}, unsent: {}, unsettled: {}",
            self.settled,
            self.ambiguous.len(),
            self.unsent.len(),
            self.unsettled.len()
        )?;
        let name = |id: &Option<MessageId>| {
            id.as_ref().map_or_else(|| "without id".to_owned(), MessageId::to_string)
        };
        for left in &self.ambiguous {
            write!(f, "\n  ambiguous: {} in {}", name(&left.id), left.destination)?;
        }
        for left in &self.unsent {
            write!(f, "\n  unsent: {} to {}", name(&left.id), left.destination)?;
        }
        for left in &self.unsettled {
            write!(f, "\n  unsettled: {} of {} in {}", name(&left.id), left.group, left.destination)?;
        }
        Ok(())
    }
}

/// The one shutdown of a library, however often it is asked for.
#[derive(Default)]
pub(crate) struct Shutdown(Mutex<Option<watch::Receiver<Option<ShutdownReport>>>>);

impl Shutdown {
    /// Starts it, or waits for the one that was started. It runs in a task of its own, so that a dropped caller does
    /// not stop it.
    pub(crate) async fn run(&self, core: &Arc<Core>, within: Duration) -> ShutdownReport {
        let mut result = {
            let mut started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            started
                .get_or_insert_with(|| {
                    let (tell, result) = watch::channel(None);
                    let core = Arc::clone(core);
                    tokio::spawn(async move {
                        let report = shut_down(&core, within).await;
                        tell.send_replace(Some(report));
                    });
                    result
                })
                .clone()
        };
        match result.wait_for(Option::is_some).await {
            Ok(report) => report.clone().unwrap_or_default(),
            // The task is gone with its runtime: nothing more can be said than that it was cut short.
            Err(_) => ShutdownReport { timed_out: true, ..ShutdownReport::default() },
        }
    }
}

async fn shut_down(core: &Arc<Core>, within: Duration) -> ShutdownReport {
    let deadline = core.clock.now().after(within.min(consign_core_api::time::LONGEST));
    let rest = || deadline.since(core.clock.now());
    let mut report = ShutdownReport::default();

    core.admission.close(Class::External);
    // A part of the time is kept for what must follow the handlers: their publishes, and the connections.
    let stopped = core.consumers.stop_all(rest().mul_f64(0.8)).await;
    report.settled = stopped.settled;
    report.unsettled = stopped.unsettled;
    report.timed_out |= stopped.timed_out;
    core.admission.close(Class::Handler);

    for class in [Class::External, Class::Handler, Class::Internal] {
        if class == Class::Internal {
            core.admission.close(Class::Internal);
        }
        report.timed_out |=
            tokio::time::timeout(rest().mul_f64(0.8), core.admission.drained(class)).await.is_err();
    }
    for left in core.slab.give_up_all(Reason::ShutDown) {
        let publish = LeftPublish { destination: left.destination, id: left.id };
        if left.ambiguous { report.ambiguous.push(publish) } else { report.unsent.push(publish) }
    }
    let closing = rest();
    let closed =
        core.connections.values().map(|connection| tokio::time::timeout(closing, connection.close(closing)));
    report.timed_out |= futures_util::future::join_all(closed).await.iter().any(Result::is_err);
    core.stop.cancel();
    report
}

/// What dropping the last handle does: no settlement is sent; what had no verdict is told to the observers.
pub(crate) fn abandon(core: &Core) {
    if core.stop.is_cancelled() {
        return;
    }
    for class in [Class::External, Class::Handler, Class::Internal] {
        core.admission.close(class);
    }
    core.stop.cancel();
    drop(core.slab.give_up_all(Reason::ShutDown));
}
