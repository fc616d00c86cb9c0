//! Reads a dead letter and sends its messages back, one after the other.

use std::sync::Arc;
use std::time::Duration;

use consign_core_api::message::reserved;
use consign_core_api::outcome::Duplicate;
use consign_core_api::settlement::state::Received;
use consign_core_api::spi::{
    DeliveryToken, Event, Inbound, SettlementReply, Settler, Subscription, SubscriptionSpec,
};
use consign_core_api::{
    Code, Confirmation, DestinationName, Error, ErrorKind, Failure, FailureCategory, GroupName, NotConfirmed,
};
use consign_policy::admission::Class;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::{RedriveOptions, RedriveReport, RedriveResult, Redriven};
use crate::codes;
use crate::consumer::{Question, is_before, redriven, subscribe, weigh};
use crate::core::{Core, OpenDestination};

/// No more messages than this are looked at in one redrive.
const MOST: usize = 1 << 16;
/// How long the end may take: giving back, and closing.
const END_WITHIN: Duration = Duration::from_secs(5);
/// So many messages in a row without a confirmation end a redrive: whatever is wrong is not theirs.
const IN_A_ROW: u32 = 5;

/// Sends the messages of a dead letter back to where they came from.
///
/// Dropping the future ends it: what is CONFIRMED stays, the message under way may stand in both places, the rest stays
/// in the dead letter.
pub(crate) async fn redrive(
    core: &Arc<Core>,
    dead_letter: &str,
    options: RedriveOptions,
) -> Result<RedriveReport, Error> {
    let here = Arc::clone(core.destination(dead_letter)?);
    check(core, &here, &options)?;
    let reader = match &options.reader {
        Some(reader) => reader.clone(),
        None => GroupName::new(RedriveOptions::READER)
            .map_err(|error| refuse(codes::SUBSCRIPTION_FAILED, error.to_string()))?,
    };
    let limit = options.limit.min(std::num::NonZeroUsize::MIN.saturating_add(MOST - 1));
    // What stays is held until the end, and must not hide what is behind it.
    let spec = SubscriptionSpec::new(reader, limit).in_any_order();
    let mut subscription = subscribe(&here, spec).await?;
    let run = Run {
        core: Arc::clone(core),
        settler: subscription.settler(),
        report: RedriveReport { dry_run: options.dry_run, ..RedriveReport::default() },
        here,
        options,
        held: Vec::new(),
        in_a_row: 0,
    };
    let report = run.run(subscription.as_mut(), limit.get()).await;
    drop(timeout(END_WITHIN, subscription.close()).await);
    Ok(report)
}

fn check(core: &Core, here: &OpenDestination, options: &RedriveOptions) -> Result<(), Error> {
    let origins = core.plan.dead_letter_origins(here.name());
    if origins.is_empty() {
        return Err(refuse(codes::NOT_A_DEAD_LETTER, format!("{} is nobody's dead letter", here.name())));
    }
    let ordered = |origin: &&DestinationName| {
        core.plan.profile(origin).is_some_and(|profile| profile.setup().ordering.is_ordered())
    };
    if !options.dry_run
        && !options.allow_reorder
        && let Some(origin) = origins.iter().find(ordered)
    {
        let text =
            format!("{origin} is ordered, and what goes back to it comes after what was published since");
        return Err(refuse(codes::REDRIVE_REORDERS, text));
    }
    Ok(())
}

fn refuse(code: Code, text: String) -> Error {
    Error::new(ErrorKind::Usage, Failure::new(FailureCategory::Configuration, code, text))
}

struct Run {
    core: Arc<Core>,
    here: Arc<OpenDestination>,
    settler: Arc<dyn Settler>,
    options: RedriveOptions,
    report: RedriveReport,
    /// What stays in the dead letter, and is given back at the end: earlier, it would only come again.
    held: Vec<DeliveryToken>,
    in_a_row: u32,
}

impl Run {
    async fn run(mut self, subscription: &mut dyn Subscription, limit: usize) -> RedriveReport {
        let stop = self.core.stop.clone();
        let settlement_deadline = self.here.profile().setup().consumer.settlement_deadline;
        let mut extension = interval((settlement_deadline / 3).max(Duration::from_millis(1)));
        extension.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while self.report.messages.len() < limit && self.report.interrupted.is_none() {
            let room = std::num::NonZeroUsize::new(limit - self.report.messages.len());
            let quiet = tokio::time::sleep(self.options.quiet.min(consign_core_api::time::LONGEST));
            tokio::pin!(quiet);
            let mut next = subscription.next(room.unwrap_or(std::num::NonZeroUsize::MIN));
            let events = loop {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return self.report,
                    events = &mut next => break Some(events),
                    _ = extension.tick() => self.settler.extend(&self.held),
                    () = &mut quiet => break None,
                }
            };
            drop(next);
            let Some(events) = events else { break };
            self.take(events, limit, &mut extension).await;
        }
        self.report.limited = self.report.messages.len() >= limit;
        drop(timeout(END_WITHIN, self.give_back(|_| true)).await);
        self.report
    }

    async fn take(&mut self, events: Vec<Event>, limit: usize, extension: &mut tokio::time::Interval) {
        for event in events {
            match event {
                Event::Delivery(inbound) => {
                    let over = self.report.messages.len() >= limit || self.report.interrupted.is_some();
                    if over {
                        self.held.push(inbound.token);
                        continue;
                    }
                    let (token, settler) = (inbound.token, Arc::clone(&self.settler));
                    let mut waiting = std::mem::take(&mut self.held);
                    waiting.push(token);
                    {
                        let working = self.one(*inbound);
                        tokio::pin!(working);
                        loop {
                            tokio::select! {
                                () = &mut working => break,
                                _ = extension.tick() => settler.extend(&waiting),
                            }
                        }
                    }
                    // It is among the held again if it stays.
                    waiting.pop();
                    waiting.append(&mut self.held);
                    self.held = waiting;
                }
                Event::Revoking { unit, .. } => {
                    drop(timeout(END_WITHIN, self.give_back(|token| token.unit() == unit)).await);
                }
                Event::Lost(unit, epoch) => {
                    self.held.retain(|token| token.unit() != unit || token.epoch() > epoch);
                }
                Event::Interrupted(failure) => {
                    self.held.clear();
                    self.report.interrupted = Some(failure);
                }
                _ => {}
            }
        }
    }

    async fn one(&mut self, inbound: Inbound) {
        let token = inbound.token;
        let headers = inbound.message.headers();
        let text = |name: &str| headers.first(name).and_then(|header| header.text());
        let origin = text(reserved::ORIGIN).and_then(|text| DestinationName::new(text).ok());
        let group = text(reserved::GROUP).and_then(|text| GroupName::new(text).ok());
        let result = match self.route(origin.as_ref(), group.as_ref()) {
            Err(why) => RedriveResult::Skipped(why),
            Ok(_) if self.options.dry_run => RedriveResult::WouldReturn,
            Ok(to) => self.send(&to, &inbound).await,
        };
        match &result {
            RedriveResult::Returned | RedriveResult::ReturnedUnsettled(_) => self.in_a_row = 0,
            RedriveResult::Skipped(_) | RedriveResult::WouldReturn => self.held.push(token),
            RedriveResult::NotConfirmed(failure) => {
                self.held.push(token);
                self.in_a_row += 1;
                if self.in_a_row >= IN_A_ROW {
                    self.report.interrupted = Some(failure.clone());
                }
            }
        }
        let (id, position) = (inbound.message.id().cloned(), inbound.position);
        self.report.messages.push(Redriven { id, position, origin, group, result });
    }

    fn route(
        &self,
        origin: Option<&DestinationName>,
        group: Option<&GroupName>,
    ) -> Result<Arc<OpenDestination>, &'static str> {
        let origin = origin.ok_or("it does not say where it came from")?;
        if self.options.only_group.is_some() && self.options.only_group.as_ref() != group {
            return Err("it failed in another group");
        }
        if !self.core.plan.dead_letter_origins(self.here.name()).contains(origin) {
            return Err("it came from a destination whose dead letter this is not");
        }
        self.core.destination(origin.as_str()).map(Arc::clone).map_err(|_| "its origin is not registered")
    }

    /// Sends one message back; its dead letter is settled only if that is CONFIRMED.
    async fn send(&self, to: &Arc<OpenDestination>, inbound: &Inbound) -> RedriveResult {
        let outcome = self.core.publish(to, redriven(&inbound.message), Class::External).await;
        let confirmation = match outcome.into_result() {
            Ok(confirmation) => confirmation,
            Err(not_confirmed) => return RedriveResult::NotConfirmed(failure_of(&not_confirmed)),
        };
        if is_old(&confirmation, inbound) {
            return RedriveResult::NotConfirmed(Failure::new(
                FailureCategory::TransientInfrastructure,
                codes::COPY_NOT_CONFIRMED,
                "the broker still remembers the id and takes the message for the one that failed; try again later",
            ));
        }
        let failure = Failure::new(FailureCategory::PermanentBusiness, codes::HANDLER_FAILED, "sent back");
        let (sending, permit) = Received::new(inbound.token).fail(failure).copied(&confirmation);
        let question = Question::new();
        self.settler.terminate(permit, question.completion());
        match sending.resolve(self.answer(question).await) {
            consign_core_api::SettlementOutcome::Settled(_) => RedriveResult::Returned,
            consign_core_api::SettlementOutcome::Unknown(unknown) => {
                RedriveResult::ReturnedUnsettled(unknown.failure().clone())
            }
        }
    }

    async fn answer(&self, question: Question) -> SettlementReply {
        let consumer = &self.here.profile().setup().consumer;
        match timeout(consumer.settlement_deadline, question.answer()).await {
            Ok(reply) => weigh(reply, consumer.settlement),
            Err(_) => SettlementReply::Unknown(Failure::new(
                FailureCategory::TransientInfrastructure,
                codes::SETTLEMENT_TIMED_OUT,
                "the broker did not answer in time",
            )),
        }
    }

    /// Gives held messages back to the dead letter.
    async fn give_back(&mut self, which: impl Fn(DeliveryToken) -> bool) {
        let (back, held) = std::mem::take(&mut self.held).into_iter().partition(|token| which(*token));
        self.held = held;
        let back: Vec<DeliveryToken> = back;
        let mut questions = Vec::with_capacity(back.len());
        for token in back {
            let question = Question::new();
            self.settler.release(token, question.completion());
            questions.push(question);
        }
        for question in questions {
            drop(question.answer().await);
        }
    }
}

/// An acceptance by deduplication, without an attempt of ours that can be what the broker remembers, is the message
/// that failed: nothing came back. So it is where what the broker remembers does not stand behind the dead letter.
fn is_old(confirmation: &Confirmation, dead: &Inbound) -> bool {
    confirmation.duplicate() == Duplicate::Deduplicated
        && (confirmation.attempts().get() == 1 || is_before(confirmation.position(), dead.position.as_ref()))
}

fn failure_of(not_confirmed: &NotConfirmed) -> Failure {
    not_confirmed.failure().clone()
}
