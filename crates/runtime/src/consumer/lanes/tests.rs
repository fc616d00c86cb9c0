//! Lanes against an obvious model: one list in delivery order.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone, Copy)]
enum Op {
    Push { lane: u32, unit: u32 },
    Start,
    Done(usize),
    Hold(usize),
    Retry(usize),
    Forget(usize),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        4 => (0..4_u32, 0..2_u32).prop_map(|(lane, unit)| Op::Push { lane, unit }),
        4 => Just(Op::Start),
        3 => any::<usize>().prop_map(Op::Done),
        2 => any::<usize>().prop_map(Op::Hold),
        2 => any::<usize>().prop_map(Op::Retry),
        1 => any::<usize>().prop_map(Op::Forget),
    ];
    proptest::collection::vec(op, 0..200)
}

#[derive(Debug, Clone, Copy)]
struct Item {
    id: u64,
    lane: u32,
    at: LaneId,
    state: State,
    /// `Some` while it has a lane of its own.
    alone: bool,
}

struct Model {
    limits: Limits,
    items: Vec<Item>,
    next: u64,
    paused: BTreeSet<u32>,
    first_starts: Vec<(u32, u64)>,
    handed: Vec<(u32, u64)>,
}

impl Model {
    fn same(a: &Item, b: &Item) -> bool {
        a.id == b.id || (!a.alone && !b.alone && a.lane == b.lane)
    }

    fn lane_of(&self, item: &Item) -> Vec<Item> {
        self.items.iter().filter(|other| Self::same(item, other)).copied().collect()
    }

    fn running(&self) -> usize {
        self.items.iter().filter(|item| item.state == State::Running).count()
    }

    fn startable(&self) -> Vec<u64> {
        let first_waiting = |item: &&Item| {
            let lane = self.lane_of(item);
            let mut may_run = lane.iter().take(self.limits.unit_in_flight);
            may_run.find(|item| item.state == State::Waiting).is_some_and(|first| first.id == item.id)
        };
        if self.running() >= self.limits.concurrency {
            return Vec::new();
        }
        self.items.iter().filter(first_waiting).map(|item| item.id).collect()
    }

    /// Takes off the front of the lane what is done, and returns it.
    fn advance(&mut self, of: Item) -> Vec<u64> {
        let lane = self.lane_of(&of);
        let out: Vec<u64> =
            lane.iter().take_while(|item| item.state == State::Done).map(|item| item.id).collect();
        self.items.retain(|item| !out.contains(&item.id));
        self.handed.extend(out.iter().map(|id| (of.lane, *id)));
        out
    }

    fn note_flow(&mut self, lanes: &mut Lanes<u64>) {
        while let Some(flow) = lanes.next_flow() {
            match flow {
                Flow::Pause(unit) => assert!(self.paused.insert(unit.get()), "paused twice"),
                Flow::Resume(unit) => assert!(self.paused.remove(&unit.get()), "resumed while it ran"),
            }
        }
    }

    fn pick(&self, index: usize, of: &[State]) -> Option<Item> {
        let fit: Vec<Item> = self.items.iter().filter(|item| of.contains(&item.state)).copied().collect();
        if fit.is_empty() { None } else { Some(fit[index % fit.len()]) }
    }

    fn set(&mut self, id: u64, state: State) {
        for item in &mut self.items {
            if item.id == id {
                item.state = state;
            }
        }
    }
}

fn run(limits: Limits, ops: Vec<Op>) {
    let mut lanes = Lanes::new(limits);
    let mut model = Model {
        limits,
        items: Vec::new(),
        next: 0,
        paused: BTreeSet::new(),
        first_starts: Vec::new(),
        handed: Vec::new(),
    };
    for op in ops {
        step(&mut lanes, &mut model, op);
        assert_eq!(lanes.running(), model.running());
        model.note_flow(&mut lanes);
    }
    drain(&mut lanes, &mut model);
    for lane in 0..3 {
        let of = |list: &[(u32, u64)]| -> Vec<u64> {
            list.iter().filter(|(l, _)| *l == lane).map(|(_, id)| *id).collect()
        };
        let (starts, handed) = (of(&model.first_starts), of(&model.handed));
        assert!(handed.is_sorted(), "handed over out of order: {handed:?}");
        let mut seen = BTreeSet::new();
        let firsts: Vec<u64> = starts.into_iter().filter(|id| seen.insert(*id)).collect();
        assert!(firsts.is_sorted(), "first starts out of order: {firsts:?}");
    }
}

fn step(lanes: &mut Lanes<u64>, model: &mut Model, op: Op) {
    let mut out = Vec::new();
    match op {
        Op::Push { lane, unit } => push(lanes, model, lane, unit),
        Op::Start => {
            let startable = model.startable();
            match lanes.start() {
                None => assert!(startable.is_empty(), "{startable:?} may start and did not"),
                Some((_, id)) => {
                    assert!(startable.contains(&id), "{id} started, but only {startable:?} may");
                    let lane = model.items.iter().find(|item| item.id == id).unwrap().lane;
                    model.first_starts.push((lane, id));
                    model.set(id, State::Running);
                }
            }
        }
        Op::Done(index) => {
            let any = [State::Waiting, State::Running, State::Held];
            let Some(item) = model.pick(index, &any) else { return };
            lanes.done(item.at, item.id, &mut out);
            model.set(item.id, State::Done);
            assert_eq!(out, model.advance(item));
        }
        Op::Hold(index) => {
            // Who keeps a delivery from starting lets a second one in flight start before it.
            let before_start = model.limits.unit_in_flight == 1;
            let states: &[State] =
                if before_start { &[State::Running, State::Waiting] } else { &[State::Running] };
            let Some(item) = model.pick(index, states) else { return };
            lanes.hold(item.at, item.id);
            model.set(item.id, State::Held);
        }
        Op::Retry(index) => {
            let Some(item) = model.pick(index, &[State::Held]) else { return };
            lanes.retry(item.at, item.id);
            model.set(item.id, State::Waiting);
        }
        Op::Forget(index) => {
            let any = [State::Waiting, State::Running, State::Held, State::Done];
            let Some(item) = model.pick(index, &any) else { return };
            lanes.forget(item.at, item.id, &mut out);
            model.items.retain(|other| other.id != item.id);
            assert_eq!(out, model.advance(item));
        }
    }
}

fn push(lanes: &mut Lanes<u64>, model: &mut Model, lane: u32, unit: u32) {
    let (id, alone) = (model.next, lane == 3);
    model.next += 1;
    let name = if alone { LaneName::Alone } else { LaneName::Key(vec![u8::try_from(lane).unwrap()].into()) };
    let at = lanes.push(name, UnitId::new(unit), id);
    let item = Item { id, lane, at, state: State::Waiting, alone };
    model.items.push(item);
    model.note_flow(lanes);
    let entries = model.lane_of(&item);
    let waiting = entries.iter().filter(|item| item.state == State::Waiting).count();
    let stands_still = entries.iter().any(|item| item.state == State::Held);
    if stands_still && waiting > model.limits.buffer {
        assert!(model.paused.contains(&unit), "a full lane that stands still takes more");
    }
}

/// Everything ends, in the end, and nothing stays paused.
fn drain(lanes: &mut Lanes<u64>, model: &mut Model) {
    while let Some(item) = model.pick(0, &[State::Held]) {
        step(lanes, model, Op::Retry(0));
        assert!(model.items.iter().any(|other| other.id == item.id));
    }
    let mut rounds = 10_000;
    while !model.items.is_empty() {
        step(lanes, model, Op::Start);
        if let Some(item) = model.pick(0, &[State::Running]) {
            let mut out = Vec::new();
            lanes.done(item.at, item.id, &mut out);
            model.set(item.id, State::Done);
            assert_eq!(out, model.advance(item));
        }
        rounds -= 1;
        assert!(rounds > 0, "nothing moves: {:?}", model.items);
    }
    model.note_flow(lanes);
    assert!(model.paused.is_empty(), "paused for ever: {:?}", model.paused);
    assert!(lanes.named.is_empty() && lanes.paused.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]
    #[test]
    fn lanes_do_what_an_obvious_list_does(
        concurrency in 1..4_usize,
        unit_in_flight in 1..3_usize,
        buffer in 1..4_usize,
        ops in ops(),
    ) {
        run(Limits { concurrency, unit_in_flight, buffer }, ops);
    }
}

#[test]
fn a_held_delivery_gives_up_its_slot_and_keeps_its_place() {
    let mut lanes = Lanes::new(Limits { concurrency: 1, unit_in_flight: 1, buffer: 8 });
    let (a, b) = (LaneName::Key("a".into()), LaneName::Key("b".into()));
    let unit = UnitId::new(0);
    let at = lanes.push(a.clone(), unit, 1);
    lanes.push(a, unit, 2);
    lanes.push(b, unit, 3);
    assert_eq!(lanes.start().map(|(_, id)| id), Some(1));
    assert_eq!(lanes.start(), None);
    lanes.hold(at, 1);
    assert_eq!(lanes.start().map(|(_, id)| id), Some(3), "the slot is free for another lane, not for 2");
    lanes.retry(at, 1);
    assert_eq!(lanes.start(), None);
}

#[test]
fn a_unit_that_is_taken_away_can_be_paused_again() {
    let mut lanes = Lanes::new(Limits { concurrency: 1, unit_in_flight: 1, buffer: 1 });
    let unit = UnitId::new(0);
    let at = lanes.push(LaneName::Whole, unit, 1);
    lanes.start();
    lanes.hold(at, 1);
    lanes.push(LaneName::Whole, unit, 2);
    lanes.push(LaneName::Whole, unit, 3);
    assert_eq!(lanes.next_flow(), Some(Flow::Pause(unit)));
    lanes.forget_unit(unit);
    assert_eq!(lanes.next_flow(), Some(Flow::Resume(unit)), "a pause may outlast the assignment");
    lanes.push(LaneName::Whole, unit, 4);
    assert_eq!(lanes.next_flow(), Some(Flow::Pause(unit)));
}

#[test]
fn a_pause_that_was_not_told_yet_does_not_reach_the_next_owner_of_its_unit() {
    let mut lanes = Lanes::new(Limits { concurrency: 1, unit_in_flight: 1, buffer: 1 });
    let (unit, other) = (UnitId::new(0), UnitId::new(1));
    for (unit, name) in [(unit, "a"), (other, "b")] {
        let name = LaneName::Key(name.into());
        let at = lanes.push(name.clone(), unit, 1);
        lanes.hold(at, 1);
        for id in 2..=3 {
            lanes.push(name.clone(), unit, id);
        }
    }
    lanes.forget_unit(unit);
    let told: Vec<_> = std::iter::from_fn(|| lanes.next_flow()).collect();
    assert_eq!(told, [Flow::Pause(other), Flow::Resume(unit)]);
}

#[test]
fn a_resumption_that_was_not_told_yet_is_told_though_its_unit_is_taken_away() {
    let mut lanes = Lanes::new(Limits { concurrency: 1, unit_in_flight: 1, buffer: 1 });
    let unit = UnitId::new(0);
    let at = lanes.push(LaneName::Whole, unit, 1);
    lanes.hold(at, 1);
    lanes.push(LaneName::Whole, unit, 2);
    lanes.push(LaneName::Whole, unit, 3);
    assert_eq!(lanes.next_flow(), Some(Flow::Pause(unit)));
    (1..=3).for_each(|id| lanes.forget(at, id, &mut Vec::new()));
    lanes.forget_unit(unit);
    assert_eq!((lanes.next_flow(), lanes.next_flow()), (Some(Flow::Resume(unit)), None));
}
