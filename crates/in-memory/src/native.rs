//! The escape hatch: the handle of the broker, through which tests look inside and make things go wrong.

use std::sync::Arc;
use std::time::Duration;

use consign_core_api::{EncodedMessage, MessagePosition};
use tokio::time::Instant;

use crate::broker::{Behaviour, DRAIN, HeldAt, Place, Shared, WakeList};
use crate::chaos::Chaos;
use crate::outcome::Cut;
use crate::script::Script;

/// An embedded broker: partitions, consumer groups, redelivery, revocation, in the memory of this process.
///
/// Making one does no I/O and starts nothing. Clones are handles of the same broker; each may be bound as a transport,
/// and all of them see the same messages. What is there dies with the last handle, connection and subscription.
///
/// Every destination is bounded: `native.capacity` messages, 100,000 by default. At the bound it first forgets what
/// every group has settled, and then refuses, `IN_MEMORY_FULL`. Nothing is forgotten before, so that tests can look.
///
/// ```
/// let broker = consign_in_memory::Broker::new();
/// assert!(broker.stored("orders").is_empty());
/// ```
#[derive(Debug, Clone)]
pub struct Broker {
    pub(crate) shared: Arc<Shared>,
}

impl Broker {
    /// Makes a broker that does what it says.
    #[must_use]
    pub fn new() -> Self {
        Self::behaving(Behaviour::Faithful)
    }

    /// Makes a broker that fails where the script says.
    #[must_use]
    pub fn scripted(script: Script) -> Self {
        Self::behaving(Behaviour::Scripted(script))
    }

    /// Makes a broker that fails at random, the same way for the same seed.
    #[must_use]
    pub fn chaotic(chaos: Chaos) -> Self {
        Self::behaving(Behaviour::Chaotic(chaos))
    }

    fn behaving(behaviour: Behaviour) -> Self {
        Self { shared: Arc::new(Shared::new(behaviour)) }
    }

    /// Returns every message that a destination keeps, by partition and offset; none where nothing was opened under
    /// that name. O(messages).
    #[must_use]
    pub fn stored(&self, destination: &str) -> Vec<StoredMessage> {
        let Some(state) = self.shared.find(destination) else { return Vec::new() };
        let inner = state.lock();
        let partitions = (0u32..).zip(&inner.model.logs);
        let all = partitions.flat_map(|(partition, log)| {
            log.iter().map(move |(offset, message)| StoredMessage {
                place: Place { partition, offset },
                message: message.clone(),
            })
        });
        all.collect()
    }

    /// Returns where the messages stand that a group has settled, by partition and offset, as far as they are kept.
    /// O(messages).
    #[must_use]
    pub fn settled(&self, destination: &str, group: &str) -> Vec<MessagePosition> {
        let Some(state) = self.shared.find(destination) else { return Vec::new() };
        let inner = state.lock();
        let Some((_, group)) = inner.model.groups.iter().find(|(name, _)| name.as_str() == group) else {
            return Vec::new();
        };
        let all =
            (0u32..).zip(group.progress()).zip(&inner.model.logs).flat_map(|((partition, progress), log)| {
                progress.settled(log.base()).map(move |offset| Place { partition, offset }.into())
            });
        all.collect()
    }

    /// Returns where the messages stand that are delivered to a group and not answered, by partition and offset.
    #[must_use]
    pub fn outstanding(&self, destination: &str, group: &str) -> Vec<MessagePosition> {
        let Some(state) = self.shared.find(destination) else { return Vec::new() };
        let inner = state.lock();
        let Some((_, group)) = inner.model.groups.iter().find(|(name, _)| name.as_str() == group) else {
            return Vec::new();
        };
        let mut places: Vec<_> = group.outstanding().collect();
        places.sort_unstable();
        places.into_iter().map(MessagePosition::from).collect()
    }

    /// Takes every unit of a group from its owner, who has five seconds to drain it: `Revoking`, then `Lost` when
    /// nothing of it is outstanding or the time is over. The next member, or the same where there is one or where the
    /// members compete, then owns it under a new epoch.
    pub fn revoke(&self, destination: &str, group: &str) {
        self.revoke_within(destination, group, DRAIN);
    }

    /// As [`revoke`](Self::revoke), with another time to drain; zero takes the units at once, above 30 days is 30 days.
    pub fn revoke_within(&self, destination: &str, group: &str, drain: Duration) {
        let Some(state) = self.shared.find(destination) else { return };
        let mut wakes = WakeList::default();
        if let Some((_, group)) =
            state.lock().model.groups.iter_mut().find(|(name, _)| name.as_str() == group)
        {
            group.revoke_all(drain, Instant::now(), &mut wakes);
        }
        wakes.wake();
    }

    /// Breaks the streams of deliveries of a destination: every subscription sees `Interrupted`, loses its units, and
    /// gets them again under new epochs; what was outstanding comes again.
    pub fn interrupt(&self, destination: &str) {
        let Some(state) = self.shared.find(destination) else { return };
        let mut wakes = WakeList::default();
        state.lock().interrupt(Cut::Interrupted, &mut wakes);
        wakes.wake();
    }

    /// Acts as if the broker had crashed and come up again with its log, its groups and what they settled: every
    /// subscription is interrupted, what was unsettled comes again, and publishes without an answer become unknown.
    pub fn restart(&self) {
        self.shared.switch(|_| {}, |inner, wakes| (inner.break_off(Cut::Restarted, wakes), Vec::new()));
    }

    /// Makes the broker unreachable, or reachable again.
    ///
    /// While it is down, publishes are refused as not transmitted, settlements are unknown, subscriptions get no
    /// delivery, and connecting fails. What waited for an answer when it went down is unknown, and what was
    /// outstanding comes again.
    pub fn set_down(&self, down: bool) {
        self.shared.switch(
            |switches| switches.down = down,
            |inner, wakes| {
                if down {
                    return (inner.break_off(Cut::Down, wakes), Vec::new());
                }
                inner.model.groups.iter_mut().for_each(|(_, group)| group.wake_all(wakes));
                Default::default()
            },
        );
    }

    /// Holds back confirmations of messages that are stored, or lets them go and holds back no more. At most as many as
    /// the destination's capacity; publishes above that are refused before transmission. Refusals are not held.
    pub fn hold_confirms(&self, hold: bool) {
        let release = !hold;
        self.shared.switch(
            |switches| switches.hold_confirms = hold,
            |inner, _| {
                if release {
                    (Default::default(), released(inner.withheld.release()))
                } else {
                    Default::default()
                }
            },
        );
    }

    /// Lets the confirmations go that are held back, in the order of their publishes; later ones are still held.
    pub fn release_confirms(&self) {
        self.shared.switch(|_| {}, |inner, _| (Default::default(), released(inner.withheld.release())));
    }

    /// Holds publishes back before they reach the broker, or, with `None`, transmits them in order and holds no more. At
    /// most as many as the destination's capacity; publishes above that are refused.
    pub fn hold_publishes(&self, at: Option<HeldAt>) {
        self.shared.switch(
            |switches| switches.hold_publishes = at,
            |inner, wakes| {
                let accepted = if at.is_none() { inner.release_publishes(wakes) } else { Vec::new() };
                (Default::default(), accepted)
            },
        );
    }
}

fn released(answers: Vec<crate::broker::Answer>) -> Vec<crate::broker::Accepted> {
    answers.into_iter().map(crate::broker::Accepted::Answer).collect()
}

impl Default for Broker {
    fn default() -> Self {
        Self::new()
    }
}

/// A message in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMessage {
    place: Place,
    message: EncodedMessage,
}

impl StoredMessage {
    /// Returns the partition.
    #[must_use]
    pub const fn partition(&self) -> u32 {
        self.place.partition
    }

    /// Returns the offset in the partition.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.place.offset
    }

    /// Returns where it stands.
    #[must_use]
    pub fn position(&self) -> MessagePosition {
        self.place.into()
    }

    /// Returns the message as it was published: payload, key, headers, id.
    #[must_use]
    pub const fn message(&self) -> &EncodedMessage {
        &self.message
    }
}
