//! Answers that the broker owes: confirmations held back, late ones, and those that never come.

use std::collections::{HashMap, VecDeque};

use consign_core_api::spi::{Completion, PublishReply, SettlementReply};

use super::ConnectionId;
use crate::outcome::Cut;

/// A completion and what it is to be told, outside any lock.
pub(crate) type Answer = (Completion<PublishReply>, PublishReply);

#[derive(Debug)]
struct Owed {
    connection: ConnectionId,
    done: Completion<PublishReply>,
    reply: PublishReply,
}

/// What a destination owes. Each of the four is bounded by `most`.
#[derive(Debug)]
pub(crate) struct Withheld {
    most: usize,
    held: Vec<Owed>,
    late: HashMap<u64, Owed>,
    next_late: u64,
    silent: VecDeque<(ConnectionId, Completion<PublishReply>)>,
    silent_settlements: VecDeque<(ConnectionId, Completion<SettlementReply>)>,
}

impl Withheld {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            held: Vec::new(),
            late: HashMap::new(),
            next_late: 0,
            silent: VecDeque::new(),
            silent_settlements: VecDeque::new(),
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.held.len() >= self.most || self.late.len() >= self.most
    }

    /// Keeps an answer until it is released.
    pub(crate) fn hold(
        &mut self,
        connection: ConnectionId,
        done: Completion<PublishReply>,
        reply: PublishReply,
    ) {
        done.sink().released(done.key());
        self.held.push(Owed { connection, done, reply });
    }

    /// Takes every held answer out, in order.
    pub(crate) fn release(&mut self) -> Vec<Answer> {
        self.held.drain(..).map(|owed| (owed.done, owed.reply)).collect()
    }

    /// Keeps an answer until its time, and returns the number to ask for it.
    pub(crate) fn delay(
        &mut self,
        connection: ConnectionId,
        done: Completion<PublishReply>,
        reply: PublishReply,
    ) -> u64 {
        done.sink().released(done.key());
        self.next_late += 1;
        self.late.insert(self.next_late, Owed { connection, done, reply });
        self.next_late
    }

    /// Takes a late answer out; `None` if it was cut off meanwhile.
    pub(crate) fn take_late(&mut self, number: u64) -> Option<Answer> {
        self.late.remove(&number).map(|owed| (owed.done, owed.reply))
    }

    /// Keeps a publish that gets no answer while its connection lives. Returns the oldest if there are too many.
    #[must_use]
    pub(crate) fn silence(
        &mut self,
        connection: ConnectionId,
        done: Completion<PublishReply>,
    ) -> Option<Completion<PublishReply>> {
        done.sink().released(done.key());
        self.silent.push_back((connection, done));
        if self.silent.len() > self.most { self.silent.pop_front().map(|(_, done)| done) } else { None }
    }

    /// The same for a settlement.
    #[must_use]
    pub(crate) fn silence_settlement(
        &mut self,
        connection: ConnectionId,
        done: Completion<SettlementReply>,
    ) -> Option<Completion<SettlementReply>> {
        self.silent_settlements.push_back((connection, done));
        let too_many = self.silent_settlements.len() > self.most;
        if too_many { self.silent_settlements.pop_front().map(|(_, done)| done) } else { None }
    }

    /// How many publishes of a connection have an answer to come.
    pub(crate) fn owed_to(&self, connection: ConnectionId) -> usize {
        self.held.iter().chain(self.late.values()).filter(|owed| owed.connection == connection).count()
    }

    /// Cuts off what is owed to a connection, or to all, as unknown.
    pub(crate) fn cut(&mut self, connection: Option<ConnectionId>, cut: Cut) -> CutOff {
        let of = |c: ConnectionId| connection.is_none_or(|wanted| wanted == c);
        let held = self.held.extract_if(.., |owed| of(owed.connection));
        let late = self.late.extract_if(|_, owed| of(owed.connection)).map(|(_, owed)| owed);
        let mut publishes: Vec<Answer> = held.chain(late).map(|owed| (owed.done, cut.unknown())).collect();
        let mut settlements = Vec::new();
        for (c, done) in std::mem::take(&mut self.silent) {
            if of(c) {
                publishes.push((done, cut.unknown()));
            } else {
                self.silent.push_back((c, done));
            }
        }
        for (c, done) in std::mem::take(&mut self.silent_settlements) {
            if of(c) {
                settlements.push((done, cut.settlement()));
            } else {
                self.silent_settlements.push_back((c, done));
            }
        }
        CutOff { publishes, settlements }
    }
}

/// Answers that were cut off, to be told outside any lock.
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct CutOff {
    pub(crate) publishes: Vec<Answer>,
    settlements: Vec<(Completion<SettlementReply>, SettlementReply)>,
}

impl CutOff {
    pub(crate) fn tell(self) {
        self.publishes.into_iter().for_each(|(done, reply)| done.resolve(reply));
        self.settlements.into_iter().for_each(|(done, reply)| done.resolve(reply));
    }
}
