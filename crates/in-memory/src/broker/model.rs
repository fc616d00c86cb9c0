//! One destination: its partitions, its groups, and the ids that it recognises. No lock, no I/O, no fault.

use std::num::NonZeroU32;

use consign_core_api::{EncodedMessage, GroupName, MessageId};
use tokio::time::Instant;

use super::deduplication::KnownIds;
use super::group::Group;
use super::{PartitionLog, Place, WakeList};
use crate::config::Settings;
use consign_core_api::spi::partition_of;

/// What became of a message that was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Appended {
    /// It stands here.
    Stored(Place),
    /// It stood there already, under the same id.
    Known(Place),
}

/// There is no room, and nothing that every group has settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

/// The destination.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) logs: Vec<PartitionLog>,
    pub(crate) groups: Vec<(GroupName, Group)>,
    partitions: NonZeroU32,
    capacity: usize,
    kept: usize,
    ids: Option<KnownIds>,
    round_robin: u32,
}

impl Model {
    pub(crate) fn new(settings: &Settings) -> Self {
        let Settings { partitions, capacity, deduplication_window } = *settings;
        Self {
            logs: (0..partitions.get()).map(|_| PartitionLog::default()).collect(),
            groups: Vec::new(),
            partitions,
            capacity: capacity.get(),
            kept: 0,
            ids: deduplication_window.map(|window| KnownIds::new(window, capacity)),
            round_robin: 0,
        }
    }

    /// Appends a message whose explicit partition, if any, exists. O(groups); where the destination is full,
    /// O(partitions x groups + forgotten).
    pub(crate) fn append(
        &mut self,
        message: EncodedMessage,
        now: impl FnOnce() -> Instant,
        wakes: &mut WakeList,
    ) -> Result<Appended, Full> {
        let known = match (&mut self.ids, message.id()) {
            (Some(ids), Some(id)) => {
                let now = now();
                if let Some(place) = ids.find(id, now)? {
                    return Ok(Appended::Known(place));
                }
                Some((id.clone(), now))
            }
            _ => None,
        };
        if self.kept >= self.capacity {
            self.forget_settled();
            if self.kept >= self.capacity {
                return Err(Full);
            }
        }
        let partition = self.partition_of(&message);
        let log = self.logs.get_mut(partition as usize).ok_or(Full)?;
        let place = Place { partition, offset: log.append(message) };
        self.kept += 1;
        if let (Some(ids), Some((id, now))) = (&mut self.ids, known) {
            ids.insert(id, place, now);
        }
        for (_, group) in &mut self.groups {
            group.appended(partition, wakes);
        }
        Ok(Appended::Stored(place))
    }

    /// The explicit partition, else the key's, else the next in turn.
    fn partition_of(&mut self, message: &EncodedMessage) -> u32 {
        match (message.partition(), message.key()) {
            (Some(partition), _) => partition,
            (None, Some(key)) => partition_of(key, self.partitions),
            (None, None) => {
                let partition = self.round_robin % self.partitions;
                self.round_robin = partition + 1;
                partition
            }
        }
    }

    /// Forgets what every group has settled; without a group nobody has settled anything.
    fn forget_settled(&mut self) {
        for (index, log) in self.logs.iter_mut().enumerate() {
            if let Some(floor) = self.groups.iter().map(|(_, group)| group.floor(index)).min() {
                self.kept -= log.forget_below(floor);
            }
        }
    }

    /// Returns the group's index, creating the group where it does not exist. `None` where it exists and shares its
    /// messages in the other way.
    pub(crate) fn group(&mut self, name: &GroupName, ordered: bool, from_the_start: bool) -> Option<usize> {
        if let Some(index) = self.groups.iter().position(|(known, _)| known == name) {
            return (self.groups[index].1.is_ordered() == ordered).then_some(index);
        }
        self.groups.push((name.clone(), Group::new(ordered, &self.logs, from_the_start)));
        Some(self.groups.len() - 1)
    }

    /// Looks for a message by its id. O(messages).
    pub(crate) fn find(&self, id: &MessageId) -> Option<Place> {
        (0u32..).zip(&self.logs).find_map(|(partition, log)| {
            let (offset, _) = log.iter().find(|(_, message)| message.id() == Some(id))?;
            Some(Place { partition, offset })
        })
    }

    /// Tells whether a message was forgotten, so that not finding one proves nothing.
    pub(crate) fn has_forgotten(&self) -> bool {
        self.logs.iter().any(|log| log.base() > 0)
    }
}
