//! The four checks come in their order, and a refusal gives everything back first.

use super::*;

#[test]
fn a_message_that_is_too_large_is_told_so_even_while_shutting_down() {
    let (admission, _) = open(AdmissionLimits::default());
    let gate = admission.destination(n(1), MaxPayload::new(10).unwrap());
    admission.close(Class::External);
    assert_eq!(code(gate.try_admit(Class::External, 11)), "MESSAGE_TOO_LARGE");
    assert_eq!(code(gate.try_admit(Class::External, 10)), "SHUTTING_DOWN");
}

#[test]
fn shutting_down_is_told_before_a_full_destination() {
    let (admission, _) = open(AdmissionLimits::default());
    let gate = admission.destination(n(1), MaxPayload::default());
    let _held = gate.try_admit(Class::External, 1).unwrap();
    assert_eq!(code(gate.try_admit(Class::External, 1)), "DESTINATION_IN_FLIGHT_LIMIT_EXCEEDED");
    admission.close(Class::External);
    assert_eq!(code(gate.try_admit(Class::External, 1)), "SHUTTING_DOWN");
}

#[test]
fn a_full_destination_is_told_before_a_full_process() {
    let (admission, other) = open(limits(2, 100, SECOND, 0.0));
    let gate = admission.destination(n(1), MaxPayload::default());
    let _held = gate.try_admit(Class::External, 1).unwrap();
    let _other = other.try_admit(Class::External, 1).unwrap();
    assert_eq!(code(gate.try_admit(Class::External, 1)), "DESTINATION_IN_FLIGHT_LIMIT_EXCEEDED");
    assert_eq!(code(other.try_admit(Class::External, 1)), "IN_FLIGHT_LIMIT_EXCEEDED");
}

#[test]
fn the_slot_of_a_global_refusal_is_free_when_the_refusal_is_seen() {
    let (admission, other) = open(limits(1, 100, SECOND, 0.0));
    let gate = admission.destination(n(1), MaxPayload::default());
    let held = other.try_admit(Class::External, 1).unwrap();
    assert_eq!(code(gate.try_admit(Class::External, 1)), "IN_FLIGHT_LIMIT_EXCEEDED");
    assert_eq!(gate.in_flight(), 0);
    drop(held);
    assert!(gate.try_admit(Class::External, 1).is_ok());
}

#[test]
fn a_message_that_its_class_could_never_get_room_for_is_too_large() {
    let (admission, gate) = open(limits(10, 1000, SECOND, 0.1));
    assert_eq!(code(gate.try_admit(Class::External, 901)), "MESSAGE_TOO_LARGE");
    assert_eq!(admission.limits().largest_message(Class::External), 900);
    assert!(gate.try_admit(Class::External, 900).is_ok());
    assert!(gate.try_admit(Class::Internal, 900).is_ok());
}

#[test]
fn a_refusal_says_whether_count_or_bytes_were_full() {
    let (_, gate) = open(limits(2, 100, SECOND, 0.0));
    let held = gate.try_admit(Class::External, 60).unwrap();
    let bytes = gate.try_admit(Class::External, 41).unwrap_err();
    assert_eq!(bytes.refusal(), crate::admission::Refusal::Bytes { size: 41 });
    let _second = gate.try_admit(Class::External, 40).unwrap();
    let count = gate.try_admit(Class::External, 0).unwrap_err();
    assert_eq!(count.refusal(), crate::admission::Refusal::Count);
    assert_eq!(bytes.code(), count.code());
    drop(held);
}

#[test]
fn a_verdict_returns_the_counts_and_keeps_the_bytes() {
    let (admission, _) = open(limits(1, 100, SECOND, 0.0));
    let gate = admission.destination(n(1), MaxPayload::default());
    let mut first = gate.try_admit(Class::External, 60).unwrap();
    first.verdict();
    first.verdict();
    assert_eq!(gate.in_flight(), 0);
    let usage = admission.usage().of(Class::External);
    assert_eq!((usage.in_flight, usage.bytes), (0, 60));
    assert_eq!(code(gate.try_admit(Class::External, 41)), "IN_FLIGHT_LIMIT_EXCEEDED");
    drop(gate.try_admit(Class::External, 40).unwrap());
    drop(first);
    assert_all_back(&admission, &gate);
}
