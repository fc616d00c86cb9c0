//! The model against a smaller one: per partition a list of states, and nothing else.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use consign_core_api::spi::{DeliveryToken, Event, SubscriptionSpec};
use consign_core_api::time::{Clock, Moment};
use consign_core_api::{EncodedMessage, GroupName};
use proptest::prelude::*;
use tokio::time::Instant;

use super::*;
use crate::config::Settings;
use crate::outcome::Cut;

struct Still;

impl Clock for Still {
    fn now(&self) -> Moment {
        Moment::START
    }
    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

#[derive(Debug, Clone)]
enum Step {
    Publish(u32),
    Take { member: usize, max: usize },
    Settle(usize),
    GiveBack { which: usize, millis: u64 },
    Advance(u64),
    Revoke { millis: u64 },
    Interrupt,
    Join,
    Leave(usize),
}

const PARTITIONS: u32 = 3;
const LIMIT: usize = 4;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..PARTITIONS).prop_map(Step::Publish),
        6 => (0usize..4, 1usize..6).prop_map(|(member, max)| Step::Take { member, max }),
        6 => (0usize..16).prop_map(Step::Settle),
        3 => (0usize..16, 0u64..50).prop_map(|(which, millis)| Step::GiveBack { which, millis }),
        2 => (0u64..60).prop_map(Step::Advance),
        1 => (0u64..50).prop_map(|millis| Step::Revoke { millis }),
        1 => Just(Step::Interrupt),
        1 => Just(Step::Join),
        1 => (0usize..4).prop_map(Step::Leave),
    ];
    proptest::collection::vec(step, 1..120)
}

/// What the smaller model knows of one message.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Plain {
    Ready(Option<Instant>),
    Out,
    Settled,
}

fn index(offset: u64) -> usize {
    usize::try_from(offset).unwrap()
}

struct Run {
    model: Model,
    group: usize,
    members: Vec<MemberId>,
    now: Instant,
    plain: Vec<Vec<(Plain, u32)>>,
    /// Every delivery not answered yet, stale ones too.
    open: Vec<(MemberId, DeliveryToken, Place)>,
    ordered: bool,
    told: Vec<(MemberId, Event)>,
}

impl Run {
    fn new(ordered: bool) -> Self {
        let settings = Settings {
            partitions: NonZeroU32::new(PARTITIONS).unwrap(),
            capacity: NonZeroUsize::new(10_000).unwrap(),
            deduplication_window: None,
        };
        let mut model = Model::new(&settings);
        let group = model.group(&GroupName::new("g").unwrap(), ordered, true).unwrap();
        let plain = vec![Vec::new(); PARTITIONS as usize];
        let (members, open) = (Vec::new(), Vec::new());
        Self { model, group, members, now: Instant::now(), plain, open, ordered, told: Vec::new() }
    }

    fn group(&mut self) -> &mut super::group::Group {
        &mut self.model.groups[self.group].1
    }

    fn join(&mut self) {
        let spec = SubscriptionSpec::new(GroupName::new("g").unwrap(), NonZeroUsize::new(LIMIT).unwrap());
        let now = self.now;
        let make = |id| Member::new(id, ConnectionId(1), &spec, Arc::new(Still));
        let member = self.group().join(make, now, &mut WakeList::default());
        self.members.push(member);
    }

    fn take(&mut self, member: MemberId, max: usize) -> Result<usize, TestCaseError> {
        let (mut events, mut wakes) = (Vec::new(), WakeList::default());
        let now = self.now;
        let room = self.group().start(member, now, &mut events, &mut wakes).unwrap();
        self.told.extend(events.into_iter().map(|event| (member, event)));
        self.sync();
        let mut taken = 0;
        for _ in 0..room.min(max) {
            let Model { logs, groups, .. } = &mut self.model;
            let Some(handed) = groups[self.group].1.hand_out(member, logs, now) else { break };
            let Place { partition, offset } = handed.place;
            let states = &mut self.plain[partition as usize];
            if self.ordered {
                let first = states.iter().position(|(s, _)| matches!(s, Plain::Ready(_)));
                prop_assert_eq!(first, Some(index(offset)), "the oldest that is not out comes first");
            }
            let state = &mut states[index(offset)];
            let Plain::Ready(due) = state.0 else { panic!("handed out twice: {handed:?} {state:?}") };
            prop_assert!(due.is_none_or(|due| due <= now), "before its delay was over");
            state.0 = Plain::Out;
            state.1 += 1;
            prop_assert_eq!(handed.count, state.1);
            let tag =
                |(_, token, _): &(MemberId, DeliveryToken, Place)| (token.unit(), token.epoch(), token.tag());
            let new = (member, handed.token, handed.place);
            prop_assert!(self.open.iter().all(|old| tag(old) != tag(&new)), "a token was used twice");
            self.open.push(new);
            taken += 1;
        }
        let out = self.open.iter().filter(|(m, ..)| *m == member).count();
        prop_assert!(room <= LIMIT && (out <= LIMIT || taken == 0 || self.open.len() > LIMIT));
        Ok(taken)
    }

    /// What the group took back by itself (a drain that ended, an interruption, a leave) is ready again.
    fn sync(&mut self) {
        let outstanding: Vec<Place> = self.model.groups[self.group].1.outstanding().collect();
        for (partition, states) in (0u32..).zip(&mut self.plain) {
            for (offset, (state, _)) in (0u64..).zip(states) {
                if *state == Plain::Out && !outstanding.contains(&Place { partition, offset }) {
                    *state = Plain::Ready(None);
                }
            }
        }
    }

    fn answer(&mut self, which: usize, due: Option<Option<Duration>>) -> Result<(), TestCaseError> {
        if self.open.is_empty() {
            return Ok(());
        }
        let (member, token, place) = self.open.remove(which % self.open.len());
        let (now, mut wakes) = (self.now, WakeList::default());
        let fresh = self.group().check(member, token, now, &mut wakes).is_ok();
        self.sync();
        let result = match due {
            None => self.group().settle(member, token, now, &mut wakes),
            Some(after) => {
                let due = after.map(|after| now + after);
                self.group().give_back(member, token, due, now, &mut wakes)
            }
        };
        prop_assert_eq!(result.is_ok(), fresh);
        let state = &mut self.plain[place.partition as usize][index(place.offset)].0;
        if fresh {
            prop_assert_eq!(*state, Plain::Out);
            *state = due.map_or(Plain::Settled, |after| Plain::Ready(after.map(|after| now + after)));
        }
        self.sync();
        Ok(())
    }

    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        let (now, mut wakes) = (self.now, WakeList::default());
        match step {
            Step::Publish(partition) => {
                let mut message = EncodedMessage::new("x", Default::default());
                message.set_partition(Some(partition));
                prop_assert!(self.model.append(message, || now, &mut wakes).is_ok());
                self.plain[partition as usize].push((Plain::Ready(None), 0));
            }
            Step::Take { member, max } => {
                if let Some(member) = self.members.get(member).copied() {
                    self.take(member, max)?;
                }
            }
            Step::Settle(which) => self.answer(which, None)?,
            Step::GiveBack { which, millis } => {
                let after = (millis > 0).then(|| Duration::from_millis(millis));
                self.answer(which, Some(after))?;
            }
            Step::Advance(millis) => self.now += Duration::from_millis(millis),
            Step::Revoke { millis } => {
                self.group().revoke_all(Duration::from_millis(millis), now, &mut wakes);
            }
            Step::Interrupt => self.group().interrupt(&Cut::Interrupted.failure(), &mut wakes),
            Step::Join if self.members.len() < 4 => self.join(),
            Step::Join => {}
            Step::Leave(which) if which < self.members.len() => {
                let member = self.members.remove(which);
                self.group().leave(member, now, &mut wakes);
            }
            Step::Leave(_) => {}
        }
        self.sync();
        Ok(())
    }

    /// Consumes until nothing is left: everything ends settled, exactly once.
    fn finish(&mut self) -> Result<(), TestCaseError> {
        if self.members.is_empty() {
            self.join();
        }
        for _ in 0..1000 {
            self.now += Duration::from_secs(10);
            for member in self.members.clone() {
                self.take(member, LIMIT)?;
            }
            while !self.open.is_empty() {
                self.answer(0, None)?;
            }
            if self.plain.iter().flatten().all(|(state, _)| *state == Plain::Settled) {
                let settled: Vec<_> = self.group().progress().iter().map(|p| p.settled(0).count()).collect();
                prop_assert_eq!(settled, self.plain.iter().map(Vec::len).collect::<Vec<_>>());
                return Ok(());
            }
        }
        prop_assert!(false, "something is stuck: {:?}", self.plain);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_nothing_is_out_twice_and_order_is_kept_whatever_happens(
        steps in steps(),
        ordered in any::<bool>(),
    ) {
        let mut run = Run::new(ordered);
        run.join();
        for step in steps {
            run.step(step)?;
        }
        run.finish()?;
    }

    #[test]
    fn what_a_member_is_told_is_consistent(steps in steps(), ordered in any::<bool>()) {
        let mut run = Run::new(ordered);
        run.join();
        let watched = run.members[0];
        let mut held = std::collections::BTreeMap::new();
        for step in steps {
            if matches!(step, Step::Leave(0)) {
                continue;
            }
            run.step(step)?;
            run.take(watched, 0)?;
            for (_, event) in run.told.drain(..).filter(|(member, _)| *member == watched) {
                match event {
                    Event::Assigned(unit, epoch) => prop_assert_eq!(held.insert(unit, epoch), None),
                    Event::Revoking { unit, epoch, .. } => prop_assert_eq!(held.get(&unit), Some(&epoch)),
                    Event::Lost(unit, epoch) => prop_assert_eq!(held.remove(&unit), Some(epoch)),
                    _ => {}
                }
            }
        }
    }
}
