//! One unit of a subscription: pulls from one durable, notices when that breaks, and builds it anew.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::Info;
use async_nats::{Message, Subject};
use consign_core_api::Code;
use consign_core_api::failure::{Failure, FailureCategory};
use consign_core_api::position::MessagePosition;
use consign_core_api::spi::{Batch, Event, Inbound, TransportError, UnitId};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::time::Instant;

use super::back::{Seen, still_out};
use super::ledger::Ledger;
use super::pull::{self, Came};
use super::up::Up;
use crate::codes;
use crate::connection::Shared;
use crate::settlement::NatsSettler;
use crate::topology::{Group, Recreate};
use crate::wire;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How many messages a pull of an ordered unit asks for. The server gives out one at a time all the same; a pull that
/// stays open only spares a round trip per message.
const ORDERED_PULL: usize = 64;

pub(super) struct Unit {
    id: UnitId,
    shared: Arc<Shared>,
    group: Arc<Group>,
    ledger: Arc<Ledger>,
    settler: Arc<NatsSettler>,
    /// How many deliveries may be out.
    share: usize,
    stream: Arc<str>,
    pull_subject: Subject,
    /// Events that no caller was given yet.
    events: VecDeque<Event>,
    phase: Phase,
    seen: Option<Seen>,
    /// The durable when it was looked at last; nothing where the topology is trusted.
    durable: Option<Box<Info>>,
}

enum Phase {
    /// Pulls are out or can be.
    Up(Up),
    /// To be built anew at this time.
    Down {
        at: Instant,
        failures: u32,
        give_back: Vec<Subject>,
        /// What pulled before. A server that only was slow may still send there.
        old: Option<Up>,
        /// Kept over waits that are dropped: another unit that is busy must not hold this one up.
        building: Option<BoxFuture<'static, (Option<Up>, Built)>>,
    },
    Closed,
}

impl Unit {
    pub(super) fn new(
        id: UnitId,
        shared: Arc<Shared>,
        group: Group,
        ledger: Arc<Ledger>,
        settler: Arc<NatsSettler>,
        share: usize,
    ) -> Self {
        let pull_subject =
            Subject::from(format!("$JS.API.CONSUMER.MSG.NEXT.{}.{}", group.stream, group.durable));
        let stream = Arc::from(group.stream.as_str());
        let (events, phase) = (VecDeque::new(), Phase::Closed);
        Self {
            id,
            shared,
            group: Arc::new(group),
            ledger,
            settler,
            share,
            stream,
            pull_subject,
            events,
            phase,
            seen: None,
            durable: None,
        }
    }

    /// Opens the unit for the first time.
    pub(super) async fn open(&mut self) -> Result<(), TransportError> {
        let (up, durable) = build(&self.shared, &self.group, None).await?;
        self.durable = durable;
        self.assigned(up);
        Ok(())
    }

    /// Waits until there is at least one event, then takes what is ready, up to `max` deliveries. Cancel safe: whatever
    /// was taken is in `events` or in the ledger.
    pub(super) async fn ready(&mut self, max: usize) {
        while self.events.is_empty() {
            if matches!(self.phase, Phase::Up(_)) {
                self.listen().await;
            } else {
                self.rebuild().await;
            }
        }
        while self.events.len() < max {
            let Phase::Up(up) = &mut self.phase else { break };
            let Some(Some(message)) = up.answers.next().now_or_never() else { break };
            self.came(message);
        }
    }

    /// Moves events into a batch with room for `room` deliveries; returns the room that is left.
    pub(super) fn drain_into(&mut self, batch: &mut Batch, mut room: usize) -> usize {
        while let Some(event) = self.events.pop_front() {
            if matches!(event, Event::Delivery(_)) {
                if room == 0 {
                    self.events.push_front(event);
                    break;
                }
                room -= 1;
            }
            batch.push(event);
        }
        room
    }

    /// Gives back what was pulled and not given to anybody, and what was not settled. Dropped before it ends, some of
    /// that comes again only after its settlement deadline.
    pub(super) async fn close(&mut self) {
        self.events.clear();
        self.settler.give_back(self.ledger.turn(self.id));
        let most = self.most();
        let unread = match &mut self.phase {
            Phase::Up(up) => {
                up.end(&self.shared.link, most).await;
                up.take_unread()
            }
            Phase::Down { give_back, old, .. } => {
                let mut unread = std::mem::take(give_back);
                unread.extend(old.iter_mut().flat_map(Up::take_unread));
                unread
            }
            Phase::Closed => Vec::new(),
        };
        self.phase = Phase::Closed;
        self.settler.give_back(unread);
    }

    /// Returns how many deliveries can be under way at most.
    fn most(&self) -> usize {
        if self.group.is_ordered() { 1 } else { usize::MAX }
    }

    /// Waits for one thing to happen while the unit is up.
    async fn listen(&mut self) {
        self.ask_for_more().await;
        let Phase::Up(up) = &mut self.phase else { return };
        let silence = up.heard + pull::SILENCE;
        tokio::select! {
            biased;
            message = up.answers.next() => match message {
                Some(message) => self.came(message),
                None => self.interrupt(codes::TRANSPORT_CLOSED, "the client has ended".into()),
            },
            () = self.shared.link.gone(up.generation) => {
                self.interrupt(codes::NATS_DISCONNECTED, "the connection was lost".into());
            }
            () = tokio::time::sleep_until(silence), if up.asked > 0 => {
                self.interrupt(codes::NATS_HEARTBEAT_MISSED, "no heartbeat came".into());
            }
            () = self.ledger.changed(self.id) => {}
        }
    }

    /// Sends a pull where enough may be asked for.
    async fn ask_for_more(&mut self) {
        let Phase::Up(up) = &mut self.phase else { return };
        let Some(out) = self.ledger.out(self.id) else { return };
        let batch = if self.group.is_ordered() {
            // The server's limit of one delivery at a time is the bound.
            if up.asked == 0 { ORDERED_PULL } else { 0 }
        } else {
            let free = self.share.saturating_sub(out + up.asked);
            // Not for every single message: a pull costs as much as a message.
            if up.asked == 0 || free >= self.share.div_ceil(2) { free } else { 0 }
        };
        if batch == 0 {
            return;
        }
        let client = self.shared.link.client();
        let sent =
            client.publish_with_reply(self.pull_subject.clone(), up.inbox.clone(), pull::request(batch));
        // Dropped before it ends, nothing was sent; nothing is awaited between its end and the count.
        match tokio::time::timeout(self.shared.request_timeout, sent).await {
            Ok(Ok(())) => {
                if up.asked == 0 {
                    up.heard = Instant::now();
                }
                up.asked += batch;
            }
            _ => self.interrupt(codes::NATS_DISCONNECTED, "a pull could not be sent".into()),
        }
    }

    fn came(&mut self, message: Message) {
        let Phase::Up(up) = &mut self.phase else { return };
        up.heard = Instant::now();
        up.came += 1;
        match pull::read(&message) {
            Came::Delivery(origin) => {
                up.asked = up.asked.saturating_sub(1);
                let Some(reply) = message.reply.clone() else { return };
                let Some(token) = self.ledger.add(self.id, reply.clone()) else { return };
                let sequence = origin.sequence;
                self.seen = Some(Seen::and(self.seen.take(), sequence, reply));
                let position =
                    MessagePosition::Sequence { stream: Arc::clone(&self.stream), sequence: origin.sequence };
                let inbound = Inbound::new(token, wire::decode(message.headers.as_ref(), message.payload))
                    .at(position)
                    .counted(origin.delivered);
                self.events.push_back(Event::Delivery(Box::new(inbound)));
            }
            Came::Heartbeat | Came::Stray => {}
            Came::Expired { left } => up.asked = up.asked.saturating_sub(left),
            Came::Ended { status } => {
                let why = message.description.unwrap_or_default();
                self.interrupt(codes::NATS_PULL_ENDED, format!("the server ended a pull: {status} {why}"));
            }
        }
    }

    /// Ends the epoch. What was out is given back once the unit is up again, so that it comes again without waiting
    /// for the end of its settlement deadline.
    fn interrupt(&mut self, code: Code, text: String) {
        let epoch = self.ledger.epoch(self.id);
        let give_back = self.ledger.turn(self.id);
        let old = match std::mem::replace(&mut self.phase, Phase::Closed) {
            Phase::Up(up) => Some(up),
            _ => None,
        };
        self.phase =
            Phase::Down { at: Instant::now() + FIRST_PAUSE, failures: 0, give_back, old, building: None };
        self.events.push_back(Event::Lost(self.id, epoch));
        self.events.push_back(interrupted(code, text));
    }

    async fn rebuild(&mut self) {
        let most = self.most();
        let Phase::Down { at, old, building, .. } = &mut self.phase else {
            // Closed: nothing will ever come, and the one who closed it knows.
            return std::future::pending().await;
        };
        if building.is_none() {
            tokio::time::sleep_until(*at).await;
            if !self.shared.is_closed() {
                // Bounded so that a failure is told from time to time.
                let _ = tokio::time::timeout(LONGEST_PAUSE, self.shared.link.up()).await;
            }
            if self.shared.is_closed() || !self.shared.link.is_up() {
                return self.not_rebuilt(codes::NATS_DISCONNECTED, "the connection is down".to_owned());
            }
        }
        let future = building.get_or_insert_with(|| {
            let again = Recreate { seen_from: self.seen.as_ref().map(Seen::from) };
            let (shared, group) = (Arc::clone(&self.shared), Arc::clone(&self.group));
            build_again(shared, group, again, old.take(), most).boxed()
        });
        let (ended, built) = future.await;
        (*building, *old) = (None, ended);
        match built {
            Ok((up, durable)) => {
                let give_back = self.take_give_back(durable.as_deref());
                self.durable = durable;
                self.assigned(up);
                self.settler.give_back(give_back);
            }
            Err(error) => self.not_rebuilt(reason(&error), error_text(&error)),
        }
    }

    fn not_rebuilt(&mut self, code: Code, text: String) {
        if let Phase::Down { at, failures, .. } = &mut self.phase {
            *failures = failures.saturating_add(1);
            let pause = FIRST_PAUSE.saturating_mul(1 << (*failures).min(10)).min(LONGEST_PAUSE);
            *at = Instant::now() + pause;
        }
        self.events.push_back(interrupted(code, text));
    }

    /// Returns what to give back to the durable as it is `now`.
    fn take_give_back(&mut self, now: Option<&Info>) -> Vec<Subject> {
        let Phase::Down { give_back, old, .. } = &mut self.phase else { return Vec::new() };
        let mut out = std::mem::take(give_back);
        let late = old.iter_mut().flat_map(Up::take_unread);
        let Some(now) = now else {
            out.extend(late);
            return out;
        };
        let before = self.durable.as_deref();
        let seen = self.seen.as_ref().filter(|_| self.group.is_ordered());
        still_out(out, late.collect(), before, now, seen)
    }

    fn assigned(&mut self, up: Up) {
        self.phase = Phase::Up(up);
        self.events.push_back(Event::Assigned(self.id, self.ledger.epoch(self.id)));
    }
}

type Built = Result<(Up, Option<Box<Info>>), TransportError>;

async fn build(shared: &Shared, group: &Group, again: Option<Recreate>) -> Built {
    let generation = shared.link.generation();
    let durable = group.ready(shared, again).await?;
    let client = shared.link.client();
    let inbox = Subject::from(client.new_inbox());
    let subscribed = client.subscribe(inbox.clone());
    match tokio::time::timeout(shared.request_timeout, subscribed).await {
        Ok(Ok(answers)) => Ok((Up::new(answers, inbox, generation), durable)),
        _ => Err(TransportError::Failed(Failure::new(
            FailureCategory::TransientInfrastructure,
            codes::NATS_SUBSCRIPTION_FAILED,
            "the client took no subscription",
        ))),
    }
}

/// Builds a unit anew and, if that succeeds, ends in order what pulled before, which is returned.
async fn build_again(
    shared: Arc<Shared>,
    group: Arc<Group>,
    again: Recreate,
    mut old: Option<Up>,
    most: usize,
) -> (Option<Up>, Built) {
    let built = build(&shared, &group, Some(again)).await;
    if let (Ok(_), Some(up)) = (&built, &mut old) {
        up.end(&shared.link, most).await;
    }
    (old, built)
}

fn interrupted(code: Code, text: String) -> Event {
    Event::Interrupted(Failure::new(FailureCategory::TransientInfrastructure, code, text))
}

fn reason(error: &TransportError) -> Code {
    match error {
        TransportError::Failed(failure) => failure.code(),
        TransportError::Refused(problems) => {
            problems.first().map_or(codes::NATS_SUBSCRIPTION_FAILED, consign_core_api::Problem::code)
        }
        _ => codes::NATS_SUBSCRIPTION_FAILED,
    }
}

fn error_text(error: &TransportError) -> String {
    match error {
        TransportError::Refused(problems) => {
            problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        }
        other => other.to_string(),
    }
}
