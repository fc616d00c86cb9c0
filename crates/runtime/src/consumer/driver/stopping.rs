//! Ends everything by a deadline.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use consign_core_api::spi::SettlementReply;
use consign_core_api::time::{Clock as _, Moment};
use consign_core_api::{Failure, FailureCategory};

use super::handover::no_answer;
use super::work::{Ending, Stage, Work};
use super::{Driver, Due};
use crate::codes;
use crate::consumer::shared::LeftBecause;
use crate::consumer::works::WorkKey;

/// A stop that was asked for.
#[derive(Debug)]
pub(super) struct Stopping {
    pub(super) deadline: Moment,
    cutoff: Moment,
}

/// The longest time that is kept at the end of a stop for giving back and for the broker's replies.
const LONGEST_RESERVE: Duration = Duration::from_secs(1);

impl Driver {
    /// Reads no more, gives back what has not started, and lets what runs finish. A tenth of the time, at most a second,
    /// is kept for giving back what does not.
    pub(super) fn begin_stop(&mut self, deadline: Moment) {
        let reserve = (deadline.since(self.now) / 10).min(LONGEST_RESERVE);
        let cutoff = Moment::from_start(deadline.since_start().saturating_sub(reserve));
        self.stopping = Some(Stopping { deadline, cutoff });
        self.timers.set(cutoff, Due::Cutoff);
        self.timers.set(deadline, Due::End);
        for key in self.in_order(Work::is_at_rest) {
            self.give_back(key);
        }
    }

    /// Tells whether the stop has nothing more to wait for.
    pub(super) fn is_drained(&self) -> bool {
        let over = self.stopping.as_ref().is_none_or(|stopping| stopping.deadline <= self.now);
        over || self.works.len() == 0
    }

    /// Returns how much time closing may take; `None` unless this is a stop.
    pub(super) fn rest_of_stop(&self) -> Option<Duration> {
        let deadline = self.stopping.as_ref()?.deadline;
        if self.source.core.stop.is_cancelled() {
            return None;
        }
        Some(deadline.since(self.source.core.clock.now()))
    }

    /// Cuts off what has not finished, and gives it back.
    pub(super) fn cut_off(&mut self) {
        if self.stopping.as_ref().is_none_or(|stopping| stopping.cutoff > self.now) {
            return;
        }
        self.cancel_handlers();
        self.pool.clear();
        for key in self.in_order(|_| true) {
            let Some(work) = self.works.get(key) else { continue };
            match &work.stage {
                Stage::Handling(..) if work.stale => self.lose(key),
                Stage::Handling(..) | Stage::Copying(_) => self.give_back(key),
                Stage::HandlingSettled(_) => {
                    let content = Arc::clone(&work.content);
                    self.tell_discarded(&content, &cut_short());
                    self.end_work(key, Ending::Nothing);
                }
                _ if work.is_at_rest() => self.give_back(key),
                _ => {}
            }
        }
    }

    /// Accounts for everything that is left. Told and counted once, whatever ended the driver.
    pub(super) fn end(&mut self) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        // Nobody asked for the end: what it read stands still until somebody looks.
        let died = self.stopping.is_none() && !self.source.core.stop.is_cancelled();
        self.cancel_handlers();
        self.pool.clear();
        self.stopping.get_or_insert(Stopping { deadline: Moment::START, cutoff: Moment::START });
        for key in self.in_order(|_| true) {
            let Some(work) = self.works.get_mut(key) else { continue };
            match work.take_stage() {
                Stage::Settling(sending) | Stage::SettlingFirst(sending) => {
                    self.conclude(key, sending, SettlementReply::Unknown(no_answer()));
                }
                // It was settled before it was handled: nobody may expect it again.
                Stage::Ready(Ending::Nothing) => drop(self.works.remove(key)),
                Stage::HandlingSettled(_) => {
                    let Some(work) = self.works.remove(key) else { continue };
                    self.tell_discarded(&work.content, &cut_short());
                }
                stage => {
                    let released = matches!(stage, Stage::GivingBack);
                    let Some(work) = self.works.remove(key) else { continue };
                    if !released {
                        self.tell_released(&work.content);
                    }
                    self.note_left(&work.content, LeftBecause::Abandoned);
                }
            }
        }
        self.shared.counters.late.add(self.mailbox.stale());
        let standing = usize::from(died);
        self.shared.tell(self.seat, crate::consumer::shared::Activity::IdleSince(self.now), standing);
        self.shared.end(self.seat, std::mem::take(&mut self.left));
    }

    fn cancel_handlers(&self) {
        for (_, work) in self.works.iter() {
            if let Stage::Handling(_, cancellation) | Stage::HandlingSettled(cancellation) = &work.stage {
                cancellation.cancel();
            }
        }
    }

    /// Returns deliveries, those that came first in front.
    fn in_order(&self, which: impl Fn(&Work) -> bool) -> Vec<WorkKey> {
        let fit = self.works.iter().filter(|(_, work)| which(work));
        let mut found: Vec<_> =
            fit.map(|(key, work)| (work.received, work.token.unit(), work.token.tag(), key)).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, _, _, key)| key).collect()
    }
}

fn cut_short() -> Failure {
    Failure::new(
        FailureCategory::TransientInfrastructure,
        codes::HANDLER_CUT_SHORT,
        "the consumer stopped before the handler had finished, and the message was settled before",
    )
}

/// However the task ends, by a panic or with its runtime, nobody waits for it for ever.
impl Drop for Driver {
    fn drop(&mut self) {
        // Whatever panicked may do so again; out of a drop, that would end the process.
        let told = catch_unwind(AssertUnwindSafe(|| self.end()));
        if told.is_err() {
            self.shared.end(self.seat, std::mem::take(&mut self.left));
        }
    }
}
