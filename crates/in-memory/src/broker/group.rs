//! A consumer group of one destination: its members, and how far they are.
//!
//! Time is given, never read; wakers are collected, never called: the caller holds a lock.

use std::task::Waker;
use std::time::Duration;

use consign_core_api::Failure;
use consign_core_api::spi::{Epoch, Event, UnitId};
use consign_core_api::time::LONGEST;
use tokio::time::Instant;

use super::busy::Busy;
use super::deliveries::Deliveries;
use super::member::{ConnectionId, Member, MemberId};
use super::progress::Progress;
use super::returns::ReturnQueue;
use super::unit::{Revoking, Unit};
use super::{PartitionLog, Place, WakeList, assignment};

/// How long a unit that moves to another member may be drained.
pub(crate) const DRAIN: Duration = Duration::from_secs(5);

/// How the members share the messages.
#[derive(Debug)]
pub(super) enum Sharing {
    /// Each partition is owned by one member and its order is kept. Unit `i` is partition `i`.
    Owned,
    /// The members compete for each message. Each member has one unit.
    Competing(ReturnQueue),
}

/// The group.
#[derive(Debug)]
pub(crate) struct Group {
    pub(super) progress: Vec<Progress>,
    pub(super) members: Vec<Member>,
    pub(super) units: Vec<Unit>,
    /// The partitions whose head is something, due or not; where members compete, those with a new message.
    pub(super) busy: Busy,
    pub(super) deliveries: Deliveries,
    pub(super) sharing: Sharing,
    last_epoch: Epoch,
    last_member: u64,
    /// No drain ends before this.
    pub(super) next_drain: Option<Instant>,
}

impl Group {
    /// Makes a group that starts at the oldest message of each log, or after the newest.
    pub(crate) fn new(ordered: bool, logs: &[PartitionLog], from_the_start: bool) -> Self {
        let mut busy = Busy::none_of(logs.len());
        let start = |log: &PartitionLog| if from_the_start { log.base() } else { log.end() };
        let progress: Vec<_> = logs.iter().map(|log| Progress::starting_at(start(log))).collect();
        (0..).zip(logs).for_each(|(index, log)| busy.set(index, start(log) < log.end()));
        let (sharing, units) = if ordered {
            let partitions = (0u32..).take(progress.len());
            (Sharing::Owned, partitions.map(|p| Unit::unowned(UnitId::new(p))).collect())
        } else {
            (Sharing::Competing(ReturnQueue::default()), Vec::new())
        };
        Self {
            progress,
            members: Vec::new(),
            units,
            busy,
            deliveries: Deliveries::default(),
            sharing,
            last_epoch: Epoch::new(0),
            last_member: 0,
            next_drain: None,
        }
    }

    pub(crate) const fn is_ordered(&self) -> bool {
        matches!(self.sharing, Sharing::Owned)
    }

    /// The oldest offset of a partition that the group may still need.
    pub(crate) fn floor(&self, partition: usize) -> u64 {
        self.progress.get(partition).map_or(0, Progress::floor)
    }

    /// Takes a member in, made from its id, and gives it its share.
    pub(crate) fn join(
        &mut self,
        make: impl FnOnce(MemberId) -> Member,
        now: Instant,
        wakes: &mut WakeList,
    ) -> MemberId {
        self.last_member += 1;
        let id = MemberId::new(self.last_member);
        self.members.push(make(id));
        if self.is_ordered() {
            self.rebalance(now, wakes);
        } else {
            self.units.push(Unit::unowned(UnitId::new(0)));
            self.assign(self.units.len() - 1, id, wakes);
        }
        id
    }

    /// Lets a member go: what it holds comes again, to the others. Unknown members are no concern.
    pub(crate) fn leave(&mut self, member: MemberId, now: Instant, wakes: &mut WakeList) {
        for index in 0..self.units.len() {
            if self.units[index].owner == Some(member) {
                self.take_back(index, wakes);
            }
        }
        if !self.is_ordered() {
            self.units.retain(|unit| unit.owner.is_some());
        }
        if let Some(index) = self.members.iter().position(|m| m.id == member) {
            wakes.push(self.members.remove(index).waker.take());
        }
        self.rebalance(now, wakes);
    }

    /// Lets every member of a connection go.
    pub(crate) fn leave_connection(&mut self, connection: ConnectionId, now: Instant, wakes: &mut WakeList) {
        let leaving: Vec<_> =
            self.members.iter().filter(|m| m.connection == connection).map(|m| m.id).collect();
        leaving.into_iter().for_each(|member| self.leave(member, now, wakes));
    }

    /// Takes every unit away from its owner, within `drain`, and gives it to the next member, which is the same where
    /// there is one or where members compete.
    pub(crate) fn revoke_all(&mut self, drain: Duration, now: Instant, wakes: &mut WakeList) {
        self.expire(now, wakes);
        for index in 0..self.units.len() {
            let Some(owner) = self.units[index].owner else { continue };
            if self.units[index].revoking.is_some() {
                continue;
            }
            let next = match self.members.iter().position(|m| m.id == owner) {
                Some(at) if self.is_ordered() => self.members[(at + 1) % self.members.len()].id,
                _ => owner,
            };
            self.revoke(index, next, drain, now, wakes);
        }
    }

    /// Breaks every member's stream: everything outstanding comes again, under new epochs.
    pub(crate) fn interrupt(&mut self, failure: &Failure, wakes: &mut WakeList) {
        for member in &mut self.members {
            member.tell(Event::Interrupted(failure.clone()), wakes);
        }
        for index in 0..self.units.len() {
            if self.units[index].owner.is_some() {
                self.hand_on(index, wakes);
            }
        }
    }

    fn rebalance(&mut self, now: Instant, wakes: &mut WakeList) {
        if !self.is_ordered() {
            return;
        }
        let members: Vec<_> = self.members.iter().map(|m| m.id).collect();
        let heirs: Vec<_> = self.units.iter().map(Unit::heir).collect();
        for (index, target) in assignment::balance(&heirs, &members).into_iter().enumerate() {
            let (unit, Some(target)) = (&mut self.units[index], target) else { continue };
            match (unit.owner, &mut unit.revoking) {
                (None, _) => self.assign(index, target, wakes),
                (Some(_), Some(revoking)) => revoking.to = target,
                (Some(owner), None) if owner == target => {}
                (Some(_), None) => self.revoke(index, target, DRAIN, now, wakes),
            }
        }
    }

    fn assign(&mut self, index: usize, to: MemberId, wakes: &mut WakeList) {
        self.last_epoch = self.last_epoch.next();
        let unit = &mut self.units[index];
        *unit = Unit { owner: Some(to), epoch: self.last_epoch, ..Unit::unowned(unit.id) };
        let event = Event::Assigned(unit.id, unit.epoch);
        self.tell(to, event, wakes);
    }

    fn revoke(&mut self, index: usize, to: MemberId, drain: Duration, now: Instant, wakes: &mut WakeList) {
        let drain = drain.min(LONGEST);
        let unit = &mut self.units[index];
        let (id, epoch, Some(owner)) = (unit.id, unit.epoch, unit.owner) else { return };
        let until = now + drain;
        unit.revoking = Some(Revoking { until, to });
        self.next_drain = Some(self.next_drain.map_or(until, |next| next.min(until)));
        let done = unit.outstanding == 0 || drain.is_zero();
        if let Some(member) = self.members.iter_mut().find(|m| m.id == owner) {
            let drain_by = member.moment_in(drain);
            member.tell(Event::Revoking { unit: id, epoch, drain_by }, wakes);
        }
        // The heir learns of the time at which the unit is its own at the latest.
        self.wake_member(to, wakes);
        if done {
            self.hand_on(index, wakes);
        }
    }

    /// Ends an epoch and begins the heir's.
    pub(super) fn hand_on(&mut self, index: usize, wakes: &mut WakeList) {
        let unit = &self.units[index];
        let (id, epoch, owner, heir) = (unit.id, unit.epoch, unit.owner, unit.heir());
        self.take_back(index, wakes);
        if let Some(owner) = owner {
            self.tell(owner, Event::Lost(id, epoch), wakes);
        }
        if let Some(heir) = heir.filter(|heir| self.members.iter().any(|m| m.id == *heir)) {
            self.assign(index, heir, wakes);
        }
    }

    /// Ends an epoch: its outstanding deliveries are put back, and nobody owns the unit.
    fn take_back(&mut self, index: usize, wakes: &mut WakeList) {
        let unit = &mut self.units[index];
        (unit.owner, unit.outstanding, unit.revoking) = (None, 0, None);
        let mut back = self.deliveries.drain_epoch(unit.epoch);
        back.sort_by_key(|delivery| delivery.place);
        for delivery in back {
            if let Some(member) = self.members.iter_mut().find(|m| m.id == delivery.member) {
                member.outstanding -= 1;
            }
            self.put_back(delivery.place, None, wakes);
        }
    }

    /// Hands on every unit whose time to drain is over. O(1) while no drain can be over, else O(units).
    pub(super) fn expire(&mut self, now: Instant, wakes: &mut WakeList) {
        if self.next_drain.is_none_or(|next| next > now) {
            return;
        }
        for index in 0..self.units.len() {
            if self.units[index].revoking.is_some_and(|revoking| revoking.until <= now) {
                self.hand_on(index, wakes);
            }
        }
        self.next_drain = self.units.iter().filter_map(|unit| Some(unit.revoking?.until)).min();
    }

    fn tell(&mut self, member: MemberId, event: Event, wakes: &mut WakeList) {
        if let Some(member) = self.members.iter_mut().find(|m| m.id == member) {
            member.tell(event, wakes);
        }
    }

    pub(super) fn wake_member(&mut self, member: MemberId, wakes: &mut WakeList) {
        if let Some(member) = self.members.iter_mut().find(|m| m.id == member) {
            wakes.push(member.waker.take());
        }
    }

    pub(crate) fn wake_all(&mut self, wakes: &mut WakeList) {
        self.members.iter_mut().for_each(|member| wakes.push(member.waker.take()));
    }

    /// Keeps the waker of a member that found nothing.
    pub(crate) fn park(&mut self, member: MemberId, waker: &Waker) {
        if let Some(member) = self.members.iter_mut().find(|m| m.id == member)
            && !member.waker.as_ref().is_some_and(|known| known.will_wake(waker))
        {
            member.waker = Some(waker.clone());
        }
    }

    /// How far the group is, by partition.
    pub(crate) fn progress(&self) -> &[Progress] {
        &self.progress
    }

    /// Where the messages stand that are outstanding.
    pub(crate) fn outstanding(&self) -> impl Iterator<Item = Place> {
        self.deliveries.iter().map(|delivery| delivery.place)
    }
}
