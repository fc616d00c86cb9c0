//! The ids that a destination recognises.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::time::Duration;

use consign_core_api::MessageId;
use tokio::time::Instant;

use super::{Full, Place};

/// Ids within the window, oldest first. As many as the destination's capacity: an id is never forgotten early, for
/// then the window would be a lie; the destination is full instead.
#[derive(Debug)]
pub(crate) struct KnownIds {
    window: Duration,
    most: NonZeroUsize,
    places: HashMap<MessageId, Place>,
    ages: VecDeque<(Instant, MessageId)>,
}

impl KnownIds {
    pub(crate) fn new(window: Duration, most: NonZeroUsize) -> Self {
        Self { window, most, places: HashMap::new(), ages: VecDeque::new() }
    }

    /// Where the message with this id stands, if it was stored within the window; else whether there is room for it.
    /// Amortized O(1).
    pub(crate) fn find(&mut self, id: &MessageId, now: Instant) -> Result<Option<Place>, Full> {
        while self.ages.front().is_some_and(|(stored, _)| now.duration_since(*stored) >= self.window) {
            if let Some((_, id)) = self.ages.pop_front() {
                self.places.remove(&id);
            }
        }
        match self.places.get(id) {
            Some(place) => Ok(Some(*place)),
            None if self.ages.len() >= self.most.get() => Err(Full),
            None => Ok(None),
        }
    }

    pub(crate) fn insert(&mut self, id: MessageId, place: Place, now: Instant) {
        self.places.insert(id.clone(), place);
        self.ages.push_back((now, id));
    }
}
