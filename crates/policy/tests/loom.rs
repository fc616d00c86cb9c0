//! Explores the limits of admission over interleavings of three threads:
//! `RUSTFLAGS="--cfg loom" cargo test -p consign-policy --test loom --release`.
//!
//! Each model runs in all interleavings with at most two preemptions (the largest four models: one; a switch at a
//! lock or a wait is none). `LOOM_MAX_PREEMPTIONS=3` goes deeper, for minutes to hours. A lost wake-up shows as a
//! deadlock, which loom reports.
#![cfg(loom)]

use std::future::Future;
use std::num::NonZeroUsize;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use consign_core_api::MaxPayload;
use consign_policy::admission::{Admission, AdmissionLimits, Class, Gate, Permit, Refused, Usage};
use loom::future::block_on;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;

/// The stand-in for the timer ends this wait when the first poll finds nothing, and every other wait never.
const FIRST_POLL: Duration = Duration::from_nanos(1);
const NEVER: Duration = Duration::from_secs(3600);

fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.max_branches = 10_000;
    builder.check(model);
}

fn n(value: usize) -> NonZeroUsize {
    NonZeroUsize::new(value).unwrap()
}

fn admission(in_flight: usize, bytes: usize, share: f64) -> Admission {
    Admission::new(AdmissionLimits::new(n(in_flight), n(bytes), NEVER, share).unwrap())
}

fn gate(admission: &Admission, slots: usize) -> Gate {
    admission.destination(n(slots), MaxPayload::default())
}

fn code(answer: &Result<Permit, Refused>) -> &'static str {
    answer.as_ref().err().map_or("admitted", |refused| refused.code().as_str())
}

fn assert_all_back(admission: &Admission, gate: &Gate) {
    assert_eq!(admission.usage(), Usage::default());
    assert_eq!(gate.in_flight(), 0);
}

/// Holds a permit while it counts itself among those inside, of whom there may be `most`.
fn hold(permit: Permit, inside: &AtomicUsize, most: usize) {
    assert!(inside.fetch_add(1, Ordering::SeqCst) < most, "above the limit");
    inside.fetch_sub(1, Ordering::SeqCst);
    drop(permit);
}

#[test]
fn the_process_wide_count_is_never_passed_and_everything_comes_back() {
    explore(2, || {
        let admission = admission(2, 100, 0.0);
        let gate = gate(&admission, 3);
        let inside = Arc::new(AtomicUsize::new(0));
        let publish = |class| {
            let (gate, inside) = (gate.clone(), Arc::clone(&inside));
            move || match gate.try_admit(class, 10) {
                Ok(permit) => hold(permit, &inside, 2),
                refused => assert_eq!(code(&refused), "IN_FLIGHT_LIMIT_EXCEEDED"),
            }
        };
        let others = [thread::spawn(publish(Class::External)), thread::spawn(publish(Class::Handler))];
        publish(Class::Internal)();
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_all_back(&admission, &gate);
    });
}

#[test]
fn bytes_and_slots_are_never_passed_and_everything_comes_back() {
    explore(1, || {
        let admission = admission(10, 100, 0.0);
        let gate = gate(&admission, 2);
        let inside = Arc::new(AtomicUsize::new(0));
        let publish = |size| {
            let (gate, inside) = (gate.clone(), Arc::clone(&inside));
            move || {
                if let Ok(mut permit) = gate.try_admit(Class::External, size) {
                    assert!(inside.fetch_add(size, Ordering::SeqCst) + size <= 100);
                    permit.verdict();
                    inside.fetch_sub(size, Ordering::SeqCst);
                }
            }
        };
        let others = [thread::spawn(publish(60)), thread::spawn(publish(50))];
        publish(40)();
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_all_back(&admission, &gate);
    });
}

#[test]
fn no_wake_up_is_lost_between_three_who_share_one_place() {
    explore(1, || {
        let admission = admission(1, 100, 0.0);
        let gate = gate(&admission, 3);
        let inside = Arc::new(AtomicUsize::new(0));
        let publish = || {
            let (gate, inside) = (gate.clone(), Arc::clone(&inside));
            move || hold(block_on(gate.admit(Class::External, 1, NEVER)).unwrap(), &inside, 1)
        };
        let others = [thread::spawn(publish()), thread::spawn(publish())];
        publish()();
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_all_back(&admission, &gate);
    });
}

#[test]
fn no_wake_up_is_lost_when_the_reserve_serves_one_and_the_common_room_another() {
    explore(2, || {
        let admission = admission(2, 100, 0.5);
        let gate = gate(&admission, 4);
        let (common, reserve) =
            (gate.try_admit(Class::External, 1).unwrap(), gate.try_admit(Class::Internal, 1).unwrap());
        let publish = |class| {
            let gate = gate.clone();
            move || drop(block_on(gate.admit(class, 1, NEVER)).unwrap())
        };
        let others = [thread::spawn(publish(Class::External)), thread::spawn(publish(Class::Internal))];
        drop(reserve);
        drop(common);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_all_back(&admission, &gate);
    });
}

#[test]
fn a_verdict_wakes_who_waits_for_the_count_and_the_drop_who_waits_for_bytes() {
    explore(1, || {
        let admission = admission(1, 100, 0.0);
        let gate = gate(&admission, 3);
        let mut held = gate.try_admit(Class::External, 60).unwrap();
        let publish = |size| {
            let gate = gate.clone();
            move || drop(block_on(gate.admit(Class::External, size, NEVER)).unwrap())
        };
        let others = [thread::spawn(publish(40)), thread::spawn(publish(70))];
        held.verdict();
        drop(held);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_all_back(&admission, &gate);
    });
}

#[test]
fn the_slot_is_free_before_a_global_refusal_is_seen() {
    for wait in [Duration::ZERO, FIRST_POLL] {
        explore(2, move || {
            let admission = admission(1, 100, 0.0);
            let (other, gate) = (gate(&admission, 1), gate(&admission, 1));
            let held = other.try_admit(Class::External, 1).unwrap();
            let refused = Arc::new(AtomicBool::new(false));
            let refuse = thread::spawn({
                let (gate, refused) = (gate.clone(), Arc::clone(&refused));
                move || {
                    if let Err(refusal) = block_on(gate.admit(Class::External, 1, wait)) {
                        assert_eq!(refusal.code(), "IN_FLIGHT_LIMIT_EXCEEDED");
                        refused.store(true, Ordering::Release);
                    }
                }
            });
            let release = thread::spawn(move || drop(held));
            if refused.load(Ordering::Acquire) {
                let answer = gate.try_admit(Class::External, 1);
                assert_ne!(code(&answer), "DESTINATION_IN_FLIGHT_LIMIT_EXCEEDED");
            }
            refuse.join().unwrap();
            release.join().unwrap();
            assert_all_back(&admission, &gate);
        });
    }
}

#[test]
fn one_who_gives_up_or_is_dropped_passes_its_room_on() {
    for dropped in [false, true] {
        explore(1, move || {
            let admission = admission(1, 100, 0.0);
            let gate = gate(&admission, 3);
            let held = gate.try_admit(Class::External, 1).unwrap();
            let waits = thread::spawn({
                let gate = gate.clone();
                move || drop(block_on(gate.admit(Class::External, 1, NEVER)).unwrap())
            });
            let releases = thread::spawn(move || drop(held));
            // Here, not in a thread of its own: one preemption is then enough to be answered before giving up.
            if dropped {
                poll_once_and_drop(gate.admit(Class::External, 1, NEVER));
            } else {
                drop(block_on(gate.admit(Class::External, 1, FIRST_POLL)));
            }
            releases.join().unwrap();
            waits.join().unwrap();
            assert_all_back(&admission, &gate);
        });
    }
}

fn poll_once_and_drop(future: impl Future<Output = Result<Permit, Refused>>) {
    if let Poll::Ready(answer) = pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        drop(answer);
    }
}

#[test]
fn closing_answers_everybody_who_waits() {
    explore(2, || {
        let admission = admission(1, 100, 0.0);
        let gate = gate(&admission, 3);
        let held = gate.try_admit(Class::Handler, 1).unwrap();
        let waits = thread::spawn({
            let gate = gate.clone();
            move || {
                let answer = block_on(gate.admit(Class::External, 1, NEVER));
                assert!(matches!(code(&answer), "admitted" | "SHUTTING_DOWN"));
            }
        });
        let closes = thread::spawn({
            let admission = admission.clone();
            move || admission.close(Class::External)
        });
        closes.join().unwrap();
        // Held until the waiter has its answer: only closing can have given it.
        waits.join().unwrap();
        drop(held);
        assert_all_back(&admission, &gate);
    });
}

#[test]
fn closing_meets_room_that_is_handed_over_and_nothing_leaks() {
    explore(2, || {
        let admission = admission(1, 100, 0.0);
        let gate = gate(&admission, 3);
        let held = gate.try_admit(Class::External, 1).unwrap();
        let waits = thread::spawn({
            let gate = gate.clone();
            move || drop(block_on(gate.admit(Class::External, 1, NEVER)))
        });
        let releases = thread::spawn(move || drop(held));
        admission.close(Class::External);
        assert_eq!(code(&gate.try_admit(Class::External, 1)), "SHUTTING_DOWN");
        waits.join().unwrap();
        releases.join().unwrap();
        assert_all_back(&admission, &gate);
    });
}

#[test]
fn a_closed_class_that_was_seen_drained_stays_empty() {
    explore(2, || {
        let admission = admission(2, 100, 0.0);
        let gate = gate(&admission, 2);
        let drained = Arc::new(AtomicBool::new(false));
        let publish = || {
            let (gate, drained) = (gate.clone(), Arc::clone(&drained));
            move || {
                if let Ok(permit) = gate.try_admit(Class::External, 1) {
                    assert!(!drained.load(Ordering::SeqCst), "in flight after the drain");
                    drop(permit);
                }
            }
        };
        let others = [thread::spawn(publish()), thread::spawn(publish())];
        admission.close(Class::External);
        block_on(admission.drained(Class::External));
        drained.store(true, Ordering::SeqCst);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_all_back(&admission, &gate);
    });
}
