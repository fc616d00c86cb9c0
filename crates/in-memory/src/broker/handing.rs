//! How a group hands messages out and takes the answers.

use consign_core_api::spi::{DeliveryToken, Event, UnitId};
use tokio::time::Instant;

use super::deliveries::Outstanding;
use super::group::{Group, Sharing};
use super::member::MemberId;
use super::progress::Head;
use super::unit::Unit;
use super::{PartitionLog, Place, WakeList};

/// A token that settles nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stale {
    /// The unit was lost, or is another member's.
    Epoch,
    /// The unit is held, and the delivery was answered already or came again.
    NotOutstanding,
}

/// A message on its way to a member.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HandedOut {
    pub(crate) token: DeliveryToken,
    pub(crate) place: Place,
    pub(crate) count: u32,
}

impl Group {
    /// A message was appended: wakes who may take it. Where members compete all that wait are woken, so that one
    /// whose wait is dropped at that moment does not keep the message from the others.
    pub(crate) fn appended(&mut self, partition: u32, wakes: &mut WakeList) {
        self.busy.set(partition as usize, true);
        match self.sharing {
            Sharing::Owned => {
                let owner = self.units.get(partition as usize).and_then(|unit| unit.owner);
                // One that is at its limit is woken when it is below it again.
                if let Some(member) = self.members.iter_mut().find(|m| owner == Some(m.id))
                    && member.outstanding < member.limit
                {
                    wakes.push(member.waker.take());
                }
            }
            Sharing::Competing(_) => self.wake_all(wakes),
        }
    }

    /// Starts a call of `next`: what is over is handed on, unread events are taken out. Returns how many deliveries the
    /// member may have, or `None` where it is no member any more.
    pub(crate) fn start(
        &mut self,
        member: MemberId,
        now: Instant,
        events: &mut Vec<Event>,
        wakes: &mut WakeList,
    ) -> Option<usize> {
        self.expire(now, wakes);
        if let Sharing::Competing(returns) = &mut self.sharing {
            returns.advance(now);
        }
        let member = self.members.iter_mut().find(|m| m.id == member)?;
        member.read(events);
        Some(member.limit.saturating_sub(member.outstanding))
    }

    /// Hands the next message to a member. A round over the partitions starts after the one served last, so that none
    /// starves another. O(busy partitions) in the worst case, O(1) with one.
    pub(crate) fn hand_out(
        &mut self,
        member: MemberId,
        logs: &[PartitionLog],
        now: Instant,
    ) -> Option<HandedOut> {
        let at = self.members.iter().position(|m| m.id == member)?;
        let turn = self.members[at].turn;
        let (unit, place, count) = if self.is_ordered() {
            self.pick_owned(member, turn, logs, now)?
        } else {
            self.pick_competing(member, turn, logs)?
        };
        let unit = &mut self.units[unit];
        let epoch = unit.epoch;
        let tag = self.deliveries.insert(Outstanding { member, epoch, place })?;
        unit.outstanding += 1;
        self.members[at].outstanding += 1;
        self.members[at].turn = place.partition as usize + 1;
        Some(HandedOut { token: DeliveryToken::new(unit.id, epoch, tag), place, count })
    }

    /// The head of the next partition of the member's own that has a due one: its unit, place and delivery count.
    fn pick_owned(
        &mut self,
        member: MemberId,
        turn: usize,
        logs: &[PartitionLog],
        now: Instant,
    ) -> Option<(usize, Place, u32)> {
        let (units, progress) = (&self.units, &self.progress);
        let head = |index: usize| progress[index].head(logs.get(index).map_or(0, PartitionLog::end), now);
        let mut mine = self.busy.round(turn).filter(|index| units[*index].serves(member));
        let (index, head) = mine.find_map(|index| match head(index) {
            head @ (Head::New | Head::Again(_)) => Some((index, head)),
            Head::Wait(_) | Head::Nothing => None,
        })?;
        drop(mine);
        let progress = &mut self.progress[index];
        let (offset, count) = match head {
            Head::Again(offset) => (offset, progress.hand_out_again(offset)),
            _ => (progress.hand_out_fresh(), 1),
        };
        let left = progress.head(logs.get(index)?.end(), now);
        self.busy.set(index, left != Head::Nothing);
        Some((index, Place { partition: u32::try_from(index).ok()?, offset }, count))
    }

    /// What came back, or the next new message of some partition, by turns: the member's unit, place and count.
    fn pick_competing(
        &mut self,
        member: MemberId,
        turn: usize,
        logs: &[PartitionLog],
    ) -> Option<(usize, Place, u32)> {
        let Sharing::Competing(returns) = &mut self.sharing else { return None };
        let unit = self.units.iter().position(|unit| unit.serves(member))?;
        let fresh = self.busy.round(turn).next();
        if let Some(place) = returns.pop(fresh.is_some()) {
            let count = self.progress.get_mut(place.partition as usize)?.hand_out_again(place.offset);
            return Some((unit, place, count));
        }
        let index = fresh?;
        let progress = self.progress.get_mut(index)?;
        let offset = progress.hand_out_fresh();
        let left = progress.fresh() < logs.get(index)?.end();
        self.busy.set(index, left);
        Some((unit, Place { partition: u32::try_from(index).ok()?, offset }, 1))
    }

    /// When something may change by time alone: a delayed redelivery, or the end of a drain.
    pub(crate) fn next_change(&self, member: MemberId, now: Instant) -> Option<Instant> {
        let due = match &self.sharing {
            Sharing::Competing(returns) => returns.next_due(),
            Sharing::Owned => {
                let mine = self.busy.round(0).filter(|index| self.units[*index].serves(member));
                mine.filter_map(|index| self.progress[index].head(0, now).due()).min()
            }
        };
        self.next_drain.into_iter().chain(due).min()
    }

    /// Settles a delivery for good.
    pub(crate) fn settle(
        &mut self,
        member: MemberId,
        token: DeliveryToken,
        now: Instant,
        wakes: &mut WakeList,
    ) -> Result<(), Stale> {
        let (unit, place) = self.claim(member, token, now, wakes)?;
        if let Some(progress) = self.progress.get_mut(place.partition as usize) {
            progress.settle(place.offset);
        }
        self.drained(unit, wakes);
        Ok(())
    }

    /// Puts a delivery back, not to come again before `due`.
    pub(crate) fn give_back(
        &mut self,
        member: MemberId,
        token: DeliveryToken,
        due: Option<Instant>,
        now: Instant,
        wakes: &mut WakeList,
    ) -> Result<(), Stale> {
        let (unit, place) = self.claim(member, token, now, wakes)?;
        self.put_back(place, due, wakes);
        self.drained(unit, wakes);
        Ok(())
    }

    /// Stops or lets go on the deliveries of a unit, if it is the member's.
    pub(crate) fn set_paused(&mut self, member: MemberId, unit: UnitId, paused: bool, wakes: &mut WakeList) {
        if let Some(unit) = self.units.iter_mut().find(|u| u.id == unit && u.owner == Some(member)) {
            unit.paused = paused;
            self.wake_member(member, wakes);
        }
    }

    /// Tells whether a token still stands for an outstanding delivery of the member, and for a delivery of which unit.
    pub(crate) fn check(
        &mut self,
        member: MemberId,
        token: DeliveryToken,
        now: Instant,
        wakes: &mut WakeList,
    ) -> Result<usize, Stale> {
        self.expire(now, wakes);
        let index = if self.is_ordered() {
            Some(token.unit().get() as usize)
        } else {
            self.units.iter().position(|unit| unit.epoch == token.epoch())
        };
        let held = |unit: &Unit| {
            unit.id == token.unit() && unit.epoch == token.epoch() && unit.owner == Some(member)
        };
        let index = index.filter(|index| self.units.get(*index).is_some_and(held)).ok_or(Stale::Epoch)?;
        let outstanding = self.deliveries.get(token.tag()).is_some_and(|d| d.epoch == token.epoch());
        if outstanding { Ok(index) } else { Err(Stale::NotOutstanding) }
    }

    /// Takes a delivery out of what is outstanding; the member has room for another.
    fn claim(
        &mut self,
        member: MemberId,
        token: DeliveryToken,
        now: Instant,
        wakes: &mut WakeList,
    ) -> Result<(usize, Place), Stale> {
        let index = self.check(member, token, now, wakes)?;
        let held = self.deliveries.remove(token.tag()).ok_or(Stale::NotOutstanding)?;
        self.units[index].outstanding -= 1;
        if let Some(member) = self.members.iter_mut().find(|m| m.id == member) {
            if member.outstanding >= member.limit {
                wakes.push(member.waker.take());
            }
            member.outstanding -= 1;
        }
        Ok((index, held.place))
    }

    pub(super) fn put_back(&mut self, place: Place, due: Option<Instant>, wakes: &mut WakeList) {
        match &mut self.sharing {
            Sharing::Owned => {
                if let Some(progress) = self.progress.get_mut(place.partition as usize) {
                    progress.put_back(place.offset, due);
                }
                self.appended(place.partition, wakes);
            }
            Sharing::Competing(returns) => {
                returns.push(place, due);
                self.wake_all(wakes);
            }
        }
    }

    /// A unit that is being revoked goes as soon as nothing of it is outstanding.
    fn drained(&mut self, index: usize, wakes: &mut WakeList) {
        let unit = &self.units[index];
        if unit.revoking.is_some() && unit.outstanding == 0 {
            self.hand_on(index, wakes);
        }
    }
}
