//! One destination behind its one lock: the model, its faults, and what is held back.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use consign_core_api::spi::{Completion, PublishReply, SlotKey};
use consign_core_api::{DestinationName, EncodedMessage, MessageId};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::faults::Faults;
use super::shared::{Behaviour, ConnectionState, HeldAt, Switches};
use super::withheld::{Answer, CutOff, Withheld};
use super::{ConnectionId, Model, WakeList};
use crate::config::Settings;
use crate::outcome::{self, Cut};
use crate::script::PublishFault;

/// A destination of a broker.
#[derive(Debug)]
pub(crate) struct DestinationState {
    pub(crate) settings: Settings,
    let_go: Arc<Notify>,
    inner: Mutex<Inner>,
}

/// What the lock protects. Nothing in it waits.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) model: Model,
    pub(crate) faults: Faults,
    pub(crate) withheld: Withheld,
    pub(crate) switches: Switches,
    held: VecDeque<HeldPublish>,
    most_held: usize,
}

/// A publish that has not reached the broker.
#[derive(Debug)]
struct HeldPublish {
    connection: ConnectionId,
    message: EncodedMessage,
    done: Completion<PublishReply>,
    handed_over: bool,
}

/// What is to be done about a publish once the lock is given back.
#[derive(Debug)]
pub(crate) enum Accepted {
    /// Nothing yet, or nothing ever.
    Silent,
    /// The completion is to be resolved.
    Answer(Answer),
    /// The late answer of this number is to be told after the delay.
    Later(u64, Duration),
}

impl DestinationState {
    pub(crate) fn new(
        name: &DestinationName,
        settings: Settings,
        behaviour: &Behaviour,
        switches: Switches,
        let_go: Arc<Notify>,
    ) -> Self {
        let inner = Inner {
            model: Model::new(&settings),
            faults: Faults::of(behaviour, name.as_str()),
            withheld: Withheld::new(settings.capacity.get()),
            switches,
            held: VecDeque::new(),
            most_held: settings.capacity.get(),
        };
        Self { settings, let_go, inner: Mutex::new(inner) }
    }

    /// Locks. A panic under the lock would be a fault of this crate; what is there is then used as it is.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn partitions(&self) -> u32 {
        self.settings.partitions.get()
    }

    /// Tells the late answer of this number, unless it was cut off.
    pub(crate) fn tell_late(&self, number: u64) {
        let answer = self.lock().withheld.take_late(number);
        if let Some((done, reply)) = answer {
            done.resolve(reply);
            self.let_go.notify_waiters();
        }
    }
}

impl Inner {
    /// Takes a publish whose partition exists: holds it, or transmits it.
    pub(crate) fn publish(
        &mut self,
        connection: &ConnectionState,
        message: EncodedMessage,
        done: Completion<PublishReply>,
        wakes: &mut WakeList,
    ) -> Accepted {
        if connection.is_closed() {
            return Accepted::Answer((done, Cut::Closed.not_transmitted()));
        }
        match self.switches.hold_publishes {
            None if self.switches.down => Accepted::Answer((done, Cut::Down.not_transmitted())),
            None if !done.hand_over() => Accepted::Silent,
            None => self.transmit(connection.id, message, done, wakes),
            Some(_) if self.held.len() >= self.most_held => Accepted::Answer((done, outcome::queue_full())),
            Some(at) => {
                let handed_over = at == HeldAt::BeforeTransmission;
                if !handed_over || done.hand_over() {
                    self.held.push_back(HeldPublish {
                        connection: connection.id,
                        message,
                        done,
                        handed_over,
                    });
                }
                Accepted::Silent
            }
        }
    }

    /// The message reaches the broker, or a fault befalls it.
    fn transmit(
        &mut self,
        connection: ConnectionId,
        message: EncodedMessage,
        done: Completion<PublishReply>,
        wakes: &mut WakeList,
    ) -> Accepted {
        if self.withheld.is_full() {
            return Accepted::Answer((done, outcome::queue_full()));
        }
        let reply = match self.faults.next_publish() {
            None => outcome::appended(self.model.append(message, Instant::now, wakes)),
            Some(PublishFault::AmbiguousStored) => {
                let _ = self.model.append(message, Instant::now, wakes);
                Cut::ReplyLost.unknown()
            }
            Some(PublishFault::AmbiguousLost) => Cut::ReplyLost.unknown(),
            Some(PublishFault::Refused) => outcome::scripted_refusal(),
            Some(PublishFault::Unroutable) => outcome::scripted_unroutable(),
            Some(PublishFault::NoReplyStored) => {
                let _ = self.model.append(message, Instant::now, wakes);
                return self.silence(connection, done);
            }
            Some(PublishFault::NoReplyLost) => return self.silence(connection, done),
            Some(PublishFault::ConfirmedLate(delay)) => {
                let reply = outcome::appended(self.model.append(message, Instant::now, wakes));
                if matches!(reply, PublishReply::Accepted(_)) {
                    return Accepted::Later(self.withheld.delay(connection, done, reply), delay);
                }
                reply
            }
        };
        if self.switches.hold_confirms && matches!(reply, PublishReply::Accepted(_)) {
            self.withheld.hold(connection, done, reply);
            return Accepted::Silent;
        }
        Accepted::Answer((done, reply))
    }

    fn silence(&mut self, connection: ConnectionId, done: Completion<PublishReply>) -> Accepted {
        match self.withheld.silence(connection, done) {
            None => Accepted::Silent,
            Some(oldest) => Accepted::Answer((oldest, Cut::ReplyLost.unknown())),
        }
    }

    /// Transmits every held publish, in order.
    pub(crate) fn release_publishes(&mut self, wakes: &mut WakeList) -> Vec<Accepted> {
        let held = std::mem::take(&mut self.held);
        held.into_iter()
            .map(|publish| {
                let HeldPublish { connection, message, done, handed_over } = publish;
                if self.switches.down {
                    Accepted::Answer((done, Cut::Down.not_transmitted()))
                } else if handed_over || done.hand_over() {
                    self.transmit(connection, message, done, wakes)
                } else {
                    Accepted::Silent
                }
            })
            .collect()
    }

    /// Takes a held publish back. O(held).
    pub(crate) fn withdraw(&mut self, key: SlotKey) -> bool {
        let Some(at) = self.held.iter().position(|publish| publish.done.key() == key) else { return false };
        if let Some(publish) = self.held.remove(at) {
            // The runtime counts it as answered.
            let _ = publish.done.into_raw();
        }
        true
    }

    /// Tells whether a held publish has this id, so that not finding it in the log proves nothing.
    pub(crate) fn may_still_come(&self, id: &MessageId) -> bool {
        self.held.iter().any(|publish| publish.message.id() == Some(id))
    }

    /// How many publishes of a connection have an answer to come.
    pub(crate) fn owed_to(&self, connection: ConnectionId) -> usize {
        self.withheld.owed_to(connection) + self.held.iter().filter(|p| p.connection == connection).count()
    }

    /// Ends a connection: its members leave, what it holds back was never transmitted, what is owed to it is unknown.
    pub(crate) fn disconnect(&mut self, connection: ConnectionId, wakes: &mut WakeList) -> CutOff {
        for (_, group) in &mut self.model.groups {
            group.leave_connection(connection, Instant::now(), wakes);
        }
        let mut cut = self.withheld.cut(Some(connection), Cut::Closed);
        for publish in std::mem::take(&mut self.held) {
            if publish.connection == connection {
                cut.publishes.push((publish.done, Cut::Closed.not_transmitted()));
            } else {
                self.held.push_back(publish);
            }
        }
        cut
    }

    /// Breaks every connection to the destination: what is outstanding comes again, what is owed is unknown.
    pub(crate) fn break_off(&mut self, cut: Cut, wakes: &mut WakeList) -> CutOff {
        self.interrupt(cut, wakes);
        self.withheld.cut(None, cut)
    }

    /// Breaks the streams of deliveries.
    pub(crate) fn interrupt(&mut self, cut: Cut, wakes: &mut WakeList) {
        let failure = cut.failure();
        for (_, group) in &mut self.model.groups {
            group.interrupt(&failure, wakes);
        }
    }
}
