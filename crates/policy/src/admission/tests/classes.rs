//! Three classes: the reserved share, closing, draining.

use super::*;

#[test]
fn copies_get_through_when_the_application_fills_the_rest() {
    for class in [Class::External, Class::Handler] {
        let (_, gate) = open(limits(10, 1000, SECOND, 0.2));
        let held: Vec<_> = std::iter::from_fn(|| gate.try_admit(class, 10).ok()).collect();
        assert_eq!(held.len(), 8);
        assert_eq!(code(gate.try_admit(Class::External, 0)), "IN_FLIGHT_LIMIT_EXCEEDED");
        assert_eq!(code(gate.try_admit(Class::Handler, 0)), "IN_FLIGHT_LIMIT_EXCEEDED");
        let copies: Vec<_> = std::iter::from_fn(|| gate.try_admit(Class::Internal, 100).ok()).collect();
        assert_eq!(copies.len(), 2, "{class}");
    }
}

#[test]
fn copies_get_bytes_when_the_application_fills_the_rest() {
    let (_, gate) = open(limits(10, 1000, SECOND, 0.2));
    let _held = gate.try_admit(Class::External, 800).unwrap();
    assert_eq!(code(gate.try_admit(Class::External, 1)), "IN_FLIGHT_LIMIT_EXCEEDED");
    assert!(gate.try_admit(Class::Internal, 200).is_ok());
}

#[test]
fn copies_take_from_the_common_room_when_the_reserve_is_full() {
    let (admission, gate) = open(limits(10, 1000, SECOND, 0.2));
    let copies: Vec<_> = std::iter::from_fn(|| gate.try_admit(Class::Internal, 1).ok()).collect();
    assert_eq!(copies.len(), 10);
    drop(copies);
    assert_all_back(&admission, &gate);
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_waits_is_served_by_the_reserve_past_others() {
    let (_, gate) = open(limits(4, 1000, SECOND, 0.25));
    let mut common: Vec<_> = (0..3).map(|_| gate.try_admit(Class::External, 1).unwrap()).collect();
    let reserve = gate.try_admit(Class::Internal, 1).unwrap();
    let (mut external, mut copy) =
        (Poller::new(&gate, Class::External, 1), Poller::new(&gate, Class::Internal, 1));
    assert!(external.poll().is_none() && copy.poll().is_none());
    drop(reserve);
    assert!(copy.was_woken() && !external.was_woken());
    let copy = copy.poll().unwrap().unwrap();
    common.pop();
    assert!(external.was_woken());
    assert!(external.poll().unwrap().is_ok());
    drop(copy);
}

#[tokio::test(start_paused = true)]
async fn a_copy_larger_than_the_reserve_waits_for_the_common_room_in_its_turn() {
    let (admission, gate) = open(limits(10, 1000, SECOND, 0.1));
    let held = gate.try_admit(Class::External, 900).unwrap();
    let mut large = Poller::new(&gate, Class::Internal, 500);
    let mut behind = Poller::new(&gate, Class::External, 500);
    assert!(large.poll().is_none() && behind.poll().is_none());
    let small = gate
        .try_admit(Class::Internal, 100)
        .expect("the large copy does not close the reserve to small ones");
    drop(held);
    assert!(large.was_woken() && !behind.was_woken());
    drop(large.poll().unwrap().unwrap());
    assert!(behind.was_woken());
    drop((behind, small));
    assert_all_back(&admission, &gate);
}

#[tokio::test(start_paused = true)]
async fn closing_a_class_answers_those_of_it_who_wait_and_nobody_else() {
    let (admission, gate) = open(limits(1, 100, SECOND, 0.0));
    let held = gate.try_admit(Class::External, 1).unwrap();
    let mut external = Poller::new(&gate, Class::External, 1);
    let mut handler = Poller::new(&gate, Class::Handler, 1);
    assert!(external.poll().is_none() && handler.poll().is_none());
    admission.close(Class::External);
    assert!(external.was_woken() && !handler.was_woken());
    assert_eq!(code(external.poll().unwrap()), "SHUTTING_DOWN");
    assert!(handler.poll().is_none());
    assert_eq!(gate.in_flight(), 2, "the slots of who is in flight and who waits");
    drop(held);
    assert!(handler.was_woken());
    assert!(handler.poll().unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn closing_the_class_at_the_front_lets_those_behind_it_through() {
    let (admission, gate) = open(limits(10, 100, SECOND, 0.0));
    let _held = gate.try_admit(Class::External, 50).unwrap();
    let mut front = Poller::new(&gate, Class::External, 60);
    let mut behind = Poller::new(&gate, Class::Handler, 10);
    assert!(front.poll().is_none() && behind.poll().is_none());
    admission.close(Class::External);
    assert!(behind.was_woken());
    assert!(behind.poll().unwrap().is_ok());
}

#[test]
fn classes_close_one_by_one_and_stay_closed() {
    let (admission, gate) = open(AdmissionLimits::default());
    for (i, class) in Class::ALL.into_iter().enumerate() {
        assert!(!admission.is_closed(class));
        admission.close(class);
        admission.close(class);
        assert!(admission.is_closed(class));
        for (j, other) in Class::ALL.into_iter().enumerate() {
            let expected = if j <= i { "SHUTTING_DOWN" } else { "admitted" };
            assert_eq!(code(gate.try_admit(other, 1)), expected);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_meets_a_closed_class_gives_everything_back() {
    let (admission, gate) = open(limits(1, 100, SECOND, 0.0));
    let held = gate.try_admit(Class::External, 1).unwrap();
    let mut waiter = Poller::new(&gate, Class::External, 1);
    assert!(waiter.poll().is_none());
    drop(held);
    admission.close(Class::External);
    assert_eq!(code(waiter.poll().unwrap()), "SHUTTING_DOWN");
    assert_eq!((gate.in_flight(), admission.usage().in_flight()), (0, 0));
    assert!(gate.try_admit(Class::Handler, 100).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_class_is_drained_by_its_last_verdict_and_not_before() {
    let (admission, gate) = open(AdmissionLimits::default());
    admission.drained(Class::External).await;
    let (mut first, second) =
        (gate.try_admit(Class::External, 1).unwrap(), gate.try_admit(Class::External, 1).unwrap());
    let _other = gate.try_admit(Class::Handler, 1).unwrap();
    admission.close(Class::External);
    let waits = tokio::spawn({
        let admission = admission.clone();
        async move { admission.drained(Class::External).await }
    });
    drop(second);
    assert!(tokio::time::timeout(SECOND, admission.drained(Class::External)).await.is_err());
    assert!(!waits.is_finished());
    first.verdict();
    tokio::time::timeout(SECOND, waits).await.expect("woken by the last verdict").unwrap();
    assert_eq!(admission.usage().of(Class::External).bytes, 1);
    drop(first);
}
