//! Lanes: which delivery may start next. A pure state machine: no I/O, no time, no async.
//!
//! A lane is one ordering unit, made when its first delivery comes and gone with its last. Its entries stand in
//! delivery order and go `Waiting -> Running -> Done`; `Held` is a pause in which an entry keeps its place in the lane
//! and gives up its concurrency slot (back-off, a copy on its way, a halt). An entry leaves when it is done *and* all
//! before it have left, so that whatever ends a delivery is handed over in order.
//!
//! Only the first `unit_in_flight` entries of a lane may run, which bounds what is in flight and keeps the order of
//! first starts. All operations are O(in flight per unit), which is small, except where said.

mod name;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};

use consign_core_api::spi::UnitId;

pub(super) use name::LaneName;

/// The bounds that lanes keep.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// How many entries run at once.
    pub(super) concurrency: usize,
    /// How many entries of one lane are in flight.
    pub(super) unit_in_flight: usize,
    /// How many entries wait in a lane that stands still before the units they come from are paused.
    pub(super) buffer: usize,
}

/// Names a lane while it has entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LaneId(u32);

/// What the subscription has to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Pause(UnitId),
    Resume(UnitId),
}

/// All lanes of one subscription. `I` names a delivery.
#[derive(Debug)]
pub(super) struct Lanes<I> {
    limits: Limits,
    lanes: Vec<Lane<I>>,
    free: Vec<u32>,
    named: HashMap<LaneName, LaneId>,
    /// Lanes that may be startable, each at most once, the one that waits longest first.
    ready: VecDeque<LaneId>,
    running: usize,
    /// How many lanes want a unit to be paused.
    paused: HashMap<UnitId, usize>,
    flow: Vec<Flow>,
}

#[derive(Debug)]
struct Lane<I> {
    name: LaneName,
    entries: VecDeque<Entry<I>>,
    /// How many entries are not waiting.
    started: usize,
    held: usize,
    /// Stands in `ready`. It outlives the lane itself, so that a slot that is used again is not listed twice.
    listed: bool,
    /// The units that are paused because of this lane.
    over: Vec<UnitId>,
}

#[derive(Debug)]
struct Entry<I> {
    id: I,
    unit: UnitId,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    Held,
    Done,
}

impl<I: Copy + PartialEq> Lanes<I> {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            lanes: Vec::new(),
            free: Vec::new(),
            named: HashMap::new(),
            ready: VecDeque::new(),
            running: 0,
            paused: HashMap::new(),
            flow: Vec::new(),
        }
    }

    /// Puts a delivery at the end of its lane.
    pub(super) fn push(&mut self, name: LaneName, unit: UnitId, id: I) -> LaneId {
        let at = self.find_or_make(name);
        if let Some(lane) = self.lanes.get_mut(at.index()) {
            lane.entries.push_back(Entry { id, unit, state: State::Waiting });
        }
        self.list(at);
        self.watch(at, Some(unit));
        at
    }

    /// Starts the delivery that may start next, if one may.
    pub(super) fn start(&mut self) -> Option<(LaneId, I)> {
        while self.running < self.limits.concurrency {
            let at = self.ready.pop_front()?;
            let most = self.limits.unit_in_flight;
            let Some(lane) = self.lanes.get_mut(at.index()) else { continue };
            lane.listed = false;
            let Some(entry) = lane.startable(most) else { continue };
            entry.state = State::Running;
            let id = entry.id;
            lane.started += 1;
            self.running += 1;
            self.list(at);
            self.watch(at, None);
            return Some((at, id));
        }
        None
    }

    /// Takes a delivery out of the running (or keeps it from starting) while it keeps its place. Those behind it start
    /// only where more than one of the lane may be in flight.
    pub(super) fn hold(&mut self, at: LaneId, id: I) {
        if let Some(before) = self.change(at, id, State::Held)
            && before == State::Running
        {
            self.running -= 1;
        }
        self.watch(at, None);
    }

    /// Lets a held delivery start again. It starts before everything behind it.
    pub(super) fn retry(&mut self, at: LaneId, id: I) {
        self.change(at, id, State::Waiting);
        self.list(at);
    }

    /// Marks a delivery as ended. Appends to `out` every delivery whose turn it is to be handed over, in order.
    pub(super) fn done(&mut self, at: LaneId, id: I, out: &mut Vec<I>) {
        let Some(before) = self.change(at, id, State::Done) else { return };
        if before == State::Running {
            self.running -= 1;
        }
        self.advance(at, out);
    }

    /// Forgets a delivery, whatever it does. Appends to `out` what may be handed over now that it is gone.
    ///
    /// O(entries of the lane).
    pub(super) fn forget(&mut self, at: LaneId, id: I, out: &mut Vec<I>) {
        let Some(lane) = self.lanes.get_mut(at.index()) else { return };
        let Some(place) = lane.entries.iter().position(|entry| entry.id == id) else { return };
        let Some(entry) = lane.entries.remove(place) else { return };
        lane.leave(entry.state);
        if entry.state == State::Running {
            self.running -= 1;
        }
        self.advance(at, out);
    }

    /// Returns the deliveries that stand behind `id` in its lane and have not started, in order. O(entries of the lane).
    pub(super) fn waiting_behind(&self, at: LaneId, id: I) -> Vec<I> {
        let entries = self.lanes.get(at.index()).map(|lane| lane.entries.iter());
        let behind = entries.into_iter().flatten().skip_while(|entry| entry.id != id).skip(1);
        behind.filter(|entry| entry.state == State::Waiting).map(|entry| entry.id).collect()
    }

    /// Forgets that a unit was paused: it was taken away, or its stream broke. The pause is taken back, because it may
    /// outlast both, and nobody would end it. O(lanes).
    pub(super) fn forget_unit(&mut self, unit: UnitId) {
        self.flow.retain(|flow| *flow != Flow::Pause(unit));
        if self.paused.remove(&unit).is_some() {
            self.flow.push(Flow::Resume(unit));
        }
        for lane in &mut self.lanes {
            lane.over.retain(|over| *over != unit);
        }
    }

    /// Takes one thing that the subscription has to be told.
    pub(super) fn next_flow(&mut self) -> Option<Flow> {
        if self.flow.is_empty() { None } else { Some(self.flow.remove(0)) }
    }

    /// Returns how many deliveries run.
    pub(super) const fn running(&self) -> usize {
        self.running
    }

    fn find_or_make(&mut self, name: LaneName) -> LaneId {
        if let Some(at) = self.named.get(&name) {
            return *at;
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.lanes.push(Lane::empty());
            u32::try_from(self.lanes.len() - 1).unwrap_or(u32::MAX)
        });
        let at = LaneId(index);
        if name != LaneName::Alone {
            self.named.insert(name.clone(), at);
        }
        if let Some(lane) = self.lanes.get_mut(at.index()) {
            lane.name = name;
        }
        at
    }

    fn change(&mut self, at: LaneId, id: I, to: State) -> Option<State> {
        let lane = self.lanes.get_mut(at.index())?;
        let entry = lane.entries.iter_mut().find(|entry| entry.id == id)?;
        let before = std::mem::replace(&mut entry.state, to);
        lane.leave(before);
        lane.enter(to);
        Some(before)
    }

    /// Takes off what is done at the front.
    fn advance(&mut self, at: LaneId, out: &mut Vec<I>) {
        let Some(lane) = self.lanes.get_mut(at.index()) else { return };
        while lane.entries.front().is_some_and(|entry| entry.state == State::Done) {
            let Some(entry) = lane.entries.pop_front() else { break };
            lane.leave(State::Done);
            out.push(entry.id);
        }
        if lane.entries.is_empty() {
            let name = std::mem::replace(&mut lane.name, LaneName::Alone);
            self.named.remove(&name);
            self.free.push(at.0);
        }
        self.list(at);
        self.watch(at, None);
    }

    fn list(&mut self, at: LaneId) {
        let most = self.limits.unit_in_flight;
        if let Some(lane) = self.lanes.get_mut(at.index())
            && !lane.listed
            && lane.startable(most).is_some()
        {
            lane.listed = true;
            self.ready.push_back(at);
        }
    }

    /// Asks for a pause where a lane that stands still has too many waiting, and for the end of it at half of that.
    /// `newcomer` is the unit of the only entry that is new; without it, every waiting entry is looked at.
    fn watch(&mut self, at: LaneId, newcomer: Option<UnitId>) {
        let high = self.limits.buffer;
        let Some(lane) = self.lanes.get_mut(at.index()) else { return };
        let waiting = lane.entries.len() - lane.started;
        if lane.held > 0 && waiting > high {
            let whose = |entry: &&Entry<I>| entry.state == State::Waiting;
            let units: Vec<UnitId> = match newcomer {
                Some(unit) => vec![unit],
                None => lane.entries.iter().filter(whose).map(|entry| entry.unit).collect(),
            };
            for unit in units {
                if !lane.over.contains(&unit) {
                    lane.over.push(unit);
                    let lanes = self.paused.entry(unit).or_insert(0);
                    *lanes += 1;
                    if *lanes == 1 {
                        self.flow.push(Flow::Pause(unit));
                    }
                }
            }
        } else if waiting <= high / 2 {
            for unit in lane.over.drain(..) {
                let Some(lanes) = self.paused.get_mut(&unit) else { continue };
                *lanes -= 1;
                if *lanes == 0 {
                    self.paused.remove(&unit);
                    self.flow.push(Flow::Resume(unit));
                }
            }
        }
    }
}

impl LaneId {
    const fn index(self) -> usize {
        self.0 as usize
    }
}

impl<I> Lane<I> {
    const fn empty() -> Self {
        Self {
            name: LaneName::Alone,
            entries: VecDeque::new(),
            started: 0,
            held: 0,
            listed: false,
            over: Vec::new(),
        }
    }

    fn startable(&mut self, most: usize) -> Option<&mut Entry<I>> {
        self.entries.iter_mut().take(most).find(|entry| entry.state == State::Waiting)
    }

    const fn enter(&mut self, state: State) {
        if !matches!(state, State::Waiting) {
            self.started += 1;
        }
        if matches!(state, State::Held) {
            self.held += 1;
        }
    }

    const fn leave(&mut self, state: State) {
        if !matches!(state, State::Waiting) {
            self.started -= 1;
        }
        if matches!(state, State::Held) {
            self.held -= 1;
        }
    }
}
