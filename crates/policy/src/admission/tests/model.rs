//! Any sequence of operations against a small obvious model: lists of what is held, and a queue.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Operation {
    TryAdmit {
        destination: usize,
        class: Class,
        size: usize,
    },
    /// Starts to wait unless there is room.
    Admit {
        destination: usize,
        class: Class,
        size: usize,
    },
    Verdict(usize),
    Drop(usize),
    /// Drops one who waits.
    Cancel(usize),
    Close(Class),
}

const SLOTS: [usize; 2] = [3, 8];
const LARGEST: usize = 70;
const COMMON: (usize, usize) = (4, 80);
const RESERVE: (usize, usize) = (1, 20);

fn operation() -> impl Strategy<Value = Operation> {
    let class = || prop_oneof![Just(Class::External), Just(Class::Handler), Just(Class::Internal)];
    prop_oneof![
        3 => (0..2usize, class(), 0..80usize)
            .prop_map(|(destination, class, size)| Operation::TryAdmit { destination, class, size }),
        3 => (0..2usize, class(), 0..80usize)
            .prop_map(|(destination, class, size)| Operation::Admit { destination, class, size }),
        2 => (0..9usize).prop_map(Operation::Verdict),
        4 => (0..9usize).prop_map(Operation::Drop),
        1 => (0..9usize).prop_map(Operation::Cancel),
        1 => class().prop_filter("the rest goes on", |class| *class != Class::External).prop_map(Operation::Close),
    ]
}

#[derive(Debug, Clone, Copy)]
struct Held {
    destination: usize,
    class: Class,
    size: usize,
    reserve: bool,
    counted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Expected {
    Admitted,
    Waits,
    Refused(&'static str),
}

/// The model holds in parallel lists what the real thing holds in words.
#[derive(Default)]
struct Model {
    held: Vec<Held>,
    /// Who waits, with a number of its own.
    waiting: VecDeque<(usize, Held)>,
    closed: Vec<Class>,
}

impl Model {
    fn fits(&self, one: Held, reserve: bool) -> bool {
        let (count, bytes) = if reserve { RESERVE } else { COMMON };
        let there = || self.held.iter().filter(|held| held.reserve == reserve);
        there().filter(|held| held.counted).count() < count
            && there().map(|held| held.size).sum::<usize>() + one.size <= bytes
    }

    fn reserve_serves(one: &Held) -> bool {
        one.class == Class::Internal && one.size <= RESERVE.1
    }

    fn slots(&self, destination: usize) -> usize {
        self.held.iter().filter(|held| held.destination == destination && held.counted).count()
            + self.waiting.iter().filter(|(_, held)| held.destination == destination).count()
    }

    fn admit(&mut self, mut one: Held, number: usize, may_wait: bool) -> Expected {
        if one.size > LARGEST {
            return Expected::Refused("MESSAGE_TOO_LARGE");
        }
        if self.closed.contains(&one.class) {
            return Expected::Refused("SHUTTING_DOWN");
        }
        if self.slots(one.destination) == SLOTS[one.destination] {
            return Expected::Refused("DESTINATION_IN_FLIGHT_LIMIT_EXCEEDED");
        }
        let before = self.waiting.iter().any(|(_, waiter)| Self::reserve_serves(waiter));
        one.reserve = Self::reserve_serves(&one) && !before && self.fits(one, true);
        if one.reserve || (self.waiting.is_empty() && self.fits(one, false)) {
            self.held.push(one);
            return Expected::Admitted;
        }
        if !may_wait {
            return Expected::Refused("IN_FLIGHT_LIMIT_EXCEEDED");
        }
        self.waiting.push_back((number, one));
        Expected::Waits
    }

    /// Serves who can be served, in order; returns their numbers.
    fn serve(&mut self) -> Vec<usize> {
        let mut served = Vec::new();
        loop {
            let by_reserve = self
                .waiting
                .iter()
                .position(|(_, waiter)| Self::reserve_serves(waiter))
                .filter(|i| self.fits(self.waiting[*i].1, true));
            let by_common = self.waiting.front().filter(|(_, waiter)| self.fits(*waiter, false)).map(|_| 0);
            let Some(i) = by_reserve.or(by_common) else { return served };
            let (number, mut one) = self.waiting.remove(i).unwrap();
            one.reserve = by_reserve.is_some();
            self.held.push(one);
            served.push(number);
        }
    }
}

/// The real thing beside the model; `held` and `waiting` stand in the same order in both.
struct Real {
    admission: Admission,
    gates: Vec<Gate>,
    held: Vec<Permit>,
    waiting: Vec<(usize, Poller)>,
}

impl Real {
    fn new() -> Self {
        let admission = Admission::new(limits(5, 100, SECOND, 0.2));
        let largest = MaxPayload::new(LARGEST).unwrap();
        let gates = SLOTS.iter().map(|slots| admission.destination(n(*slots), largest)).collect();
        Self { admission, gates, held: Vec::new(), waiting: Vec::new() }
    }

    /// Polls who was woken, in the order that the model served them.
    fn collect(&mut self, served: &[usize]) {
        for number in served {
            let i = self.waiting.iter().position(|(waiter, _)| waiter == number).unwrap();
            let (_, mut poller) = self.waiting.remove(i);
            assert!(poller.was_woken(), "{number} was served and not woken");
            self.held.push(poller.poll().expect("served").expect("not closed"));
        }
        for (number, poller) in &mut self.waiting {
            assert!(!poller.was_woken(), "{number} was woken for nothing");
            assert!(poller.poll().is_none(), "{number} was served before its turn");
        }
    }

    fn assert_same(&self, model: &Model) {
        for class in Class::ALL {
            let of = || model.held.iter().filter(|held| held.class == class);
            let usage = self.admission.usage().of(class);
            assert_eq!(usage.in_flight, of().filter(|held| held.counted).count() as u64);
            assert_eq!(usage.bytes, of().map(|held| held.size as u64).sum::<u64>());
        }
        for (i, gate) in self.gates.iter().enumerate() {
            assert_eq!(gate.in_flight(), model.slots(i));
        }
    }
}

fn run(operations: Vec<Operation>) {
    let (mut model, mut real) = (Model::default(), Real::new());
    for (number, operation) in operations.into_iter().enumerate() {
        match operation {
            Operation::TryAdmit { destination, class, size } => {
                let one = Held { destination, class, size, reserve: false, counted: true };
                let expected = model.admit(one, number, false);
                match real.gates[destination].try_admit(class, size) {
                    Ok(permit) => {
                        assert_eq!(expected, Expected::Admitted);
                        real.held.push(permit);
                    }
                    Err(refused) => assert_eq!(expected, Expected::Refused(refused.code().as_str())),
                }
            }
            Operation::Admit { destination, class, size } => {
                let one = Held { destination, class, size, reserve: false, counted: true };
                let expected = model.admit(one, number, true);
                let mut poller = Poller::new(&real.gates[destination], class, size);
                match poller.poll() {
                    Some(Ok(permit)) => {
                        assert_eq!(expected, Expected::Admitted);
                        real.held.push(permit);
                    }
                    Some(Err(refused)) => {
                        assert_eq!(expected, Expected::Refused(refused.code().as_str()));
                    }
                    None => {
                        assert_eq!(expected, Expected::Waits);
                        real.waiting.push((number, poller));
                    }
                }
            }
            Operation::Verdict(i) if i < model.held.len() => {
                model.held[i].counted = false;
                real.held[i].verdict();
            }
            Operation::Drop(i) if i < model.held.len() => {
                model.held.remove(i);
                drop(real.held.remove(i));
            }
            Operation::Cancel(i) if i < model.waiting.len() => {
                let (number, _) = model.waiting.remove(i).unwrap();
                real.waiting.retain(|(waiter, _)| *waiter != number);
            }
            Operation::Close(class) => {
                model.closed.push(class);
                model.waiting.retain(|(_, waiter)| waiter.class != class);
                real.admission.close(class);
                let kept: Vec<_> = model.waiting.iter().map(|(number, _)| *number).collect();
                real.waiting.retain_mut(|(number, poller)| {
                    kept.contains(number) || {
                        assert!(poller.was_woken());
                        assert_eq!(code(poller.poll().unwrap()), "SHUTTING_DOWN");
                        false
                    }
                });
            }
            Operation::Verdict(_) | Operation::Drop(_) | Operation::Cancel(_) => {}
        }
        let served = model.serve();
        real.collect(&served);
        real.assert_same(&model);
    }
    real.waiting.clear();
    real.held.clear();
    assert_eq!(real.admission.usage(), crate::admission::Usage::default());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_operations_does_what_the_model_does(
        operations in prop::collection::vec(operation(), 1..60)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let _inside = runtime.enter();
        run(operations);
    }
}
