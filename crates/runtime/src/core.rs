//! What publishers and consumers of one `Messaging` share.

use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use consign_core_api::spi::{
    Completion, CompletionSink, Connection, Destination, PublishReply, PublishRequest,
};
use consign_core_api::time::Clock;
use consign_core_api::{
    Capabilities, DestinationName, EncodedMessage, Error, ErrorKind, Failure, FailureCategory,
    PublishOutcome, Rejection, TransportName,
};
use consign_policy::admission::{Admission, Class, Gate};
use consign_policy::plan::Plan;
use consign_policy::profile::DestinationProfile;
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

use crate::clock::TokioClock;
use crate::codes;
use crate::observer::{Observed, Observers};
use crate::publisher::turns::Turns;
use crate::registry::Consumers;
use crate::slab::{Entry, Pending, PublishSlab, Reason};

/// Finds a message's key; registered on the builder under the name that a profile uses.
pub type KeyResolver = Arc<dyn Fn(&EncodedMessage) -> Option<Bytes> + Send + Sync>;

/// Everything that publishers and consumers share. It outlives the `Messaging` handle, closed.
pub(crate) struct Core {
    pub(crate) plan: Plan,
    pub(crate) destinations: BTreeMap<DestinationName, Arc<OpenDestination>>,
    pub(crate) connections: BTreeMap<TransportName, Arc<dyn Connection>>,
    pub(crate) admission: Admission,
    pub(crate) slab: Arc<PublishSlab>,
    pub(crate) sink: Arc<dyn CompletionSink<PublishReply>>,
    pub(crate) observers: Observers,
    pub(crate) clock: Arc<TokioClock>,
    /// The consumers that run. A consumer adds itself when it starts.
    pub(crate) consumers: Consumers,
    /// Cancelled when every task of the library has to end.
    pub(crate) stop: CancellationToken,
}

/// A destination that was validated, negotiated, verified and opened.
pub(crate) struct OpenDestination {
    pub(crate) profile: DestinationProfile,
    pub(crate) capabilities: Capabilities,
    pub(crate) gate: Gate,
    pub(crate) handle: Arc<dyn Destination>,
    pub(crate) key_resolver: Option<KeyResolver>,
    /// Present where the adapter cannot pipeline an ordering unit.
    pub(crate) turns: Option<Turns>,
}

impl OpenDestination {
    pub(crate) fn name(&self) -> &DestinationName {
        self.profile.name()
    }

    pub(crate) const fn profile(&self) -> &DestinationProfile {
        &self.profile
    }

    pub(crate) fn handle(&self) -> &dyn Destination {
        self.handle.as_ref()
    }
}

impl Core {
    /// Finds a destination by the name that the caller wrote.
    pub(crate) fn destination(&self, name: &str) -> Result<&Arc<OpenDestination>, Error> {
        DestinationName::new(name).ok().and_then(|name| self.destinations.get(&name)).ok_or_else(|| {
            let shown: String = name.chars().take(64).collect();
            let failure = Failure::new(
                FailureCategory::Configuration,
                codes::DESTINATION_UNKNOWN,
                format!("no profile registers the destination {shown:?}"),
            );
            Error::new(ErrorKind::Usage, failure)
        })
    }

    /// Admits a message and gives it to its adapter. The message is complete: key, id and headers are final.
    ///
    /// The deadline runs from the call and includes the wait for admission.
    pub(crate) async fn submit(
        &self,
        destination: &Arc<OpenDestination>,
        message: EncodedMessage,
        class: Class,
    ) -> Result<Pending, Rejection> {
        let started = self.clock.now();
        let within = destination.profile.setup().publish.deadline;
        let deadline = started.after(within);
        let size = message.size();
        let turn = match self.take_turn(destination, &message, within).await {
            Ok(turn) => turn,
            Err(failure) => return Err(Rejection::not_transmitted(failure, Some(message))),
        };
        // Reading the clock is dear; without a turn to wait for, no time has passed.
        let rest = if turn.is_some() { deadline.since(self.clock.now()) } else { within };
        let mut waited = turn.is_some();
        let mut admission = pin!(destination.gate.admit(class, size, rest));
        let admitted = poll_fn(|cx| {
            let poll = admission.as_mut().poll(cx);
            waited |= poll.is_pending();
            poll
        });
        let permit = match admitted.await {
            Ok(permit) => permit,
            Err(refused) => return Err(Rejection::not_transmitted(refused.into_failure(), Some(message))),
        };
        if waited && deadline <= self.clock.now() {
            // What it waited for came in the last moment. Sent now, it would be AMBIGUOUS for nothing.
            let failure = Failure::new(
                FailureCategory::TransientInfrastructure,
                codes::DEADLINE_BEFORE_TRANSMISSION,
                "the deadline passed while the message waited for its turn or for room",
            );
            return Err(Rejection::not_transmitted(failure, Some(message)));
        }
        self.observers.tell(&Observed::Admitted { destination: destination.name(), size });
        let entry = Entry {
            destination: Arc::clone(destination),
            message: message.clone(),
            permit,
            turn,
            attempts: consign_core_api::outcome::AttemptLog::new(),
            started,
            deadline,
        };
        let pending = match self.slab.insert(entry) {
            Ok(pending) => pending,
            Err(_) => {
                let failure = Failure::new(
                    FailureCategory::Capacity,
                    codes::SLOTS_EXHAUSTED,
                    "too many publishes are held by clients after their verdict, or have an outcome nobody took",
                );
                return Err(Rejection::not_transmitted(failure, Some(message)));
            }
        };
        let completion = Completion::new(Arc::clone(&self.sink), pending.key());
        self.observers.tell(&Observed::Sent { destination: destination.name(), id: message.id() });
        destination.handle.publish(PublishRequest::new(message, deadline), completion);
        if self.stop.is_cancelled() {
            // The deadline task is gone, so nobody else would give this publish its verdict.
            drop(self.slab.give_up_all(Reason::ShutDown));
        }
        Ok(pending)
    }

    /// Publishes and waits for the outcome.
    pub(crate) async fn publish(
        &self,
        destination: &Arc<OpenDestination>,
        message: EncodedMessage,
        class: Class,
    ) -> PublishOutcome {
        match self.submit(destination, message, class).await {
            Ok(pending) => pending.await,
            Err(rejection) => self.rejected(destination, rejection),
        }
    }

    /// Tells a refusal that never became a slot, and returns it as an outcome.
    pub(crate) fn rejected(&self, destination: &OpenDestination, rejection: Rejection) -> PublishOutcome {
        let id = rejection.message().and_then(|message| message.id().cloned());
        let outcome = PublishOutcome::Rejected(rejection);
        self.observers.tell(&Observed::Outcome {
            destination: destination.name(),
            id: id.as_ref(),
            outcome: &outcome,
        });
        outcome
    }

    async fn take_turn(
        &self,
        destination: &OpenDestination,
        message: &EncodedMessage,
        within: Duration,
    ) -> Result<Option<OwnedMutexGuard<()>>, Failure> {
        let Some(turns) = &destination.turns else { return Ok(None) };
        match tokio::time::timeout(within, turns.take(message)).await {
            Ok(turn) => Ok(Some(turn)),
            Err(_) => Err(Failure::new(
                FailureCategory::TransientInfrastructure,
                codes::DEADLINE_BEFORE_TRANSMISSION,
                "the deadline passed while an earlier message of the same ordering unit had no answer",
            )),
        }
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("destinations", &self.destinations.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for OpenDestination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenDestination").field("name", self.name()).finish_non_exhaustive()
    }
}
