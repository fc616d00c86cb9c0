//! Waits end at their bound, in the order of arrival.

use tokio::time::Instant;

use super::*;

/// How long a refused admission took, and its code.
async fn refused_after(wait: Duration, rest: Duration) -> (Duration, &'static str) {
    let (admission, gate) = open(limits(1, 100, wait, 0.0));
    let held = gate.try_admit(Class::External, 1).unwrap();
    let start = Instant::now();
    let answer = code(gate.admit(Class::External, 1, rest).await);
    let took = start.elapsed();
    drop(held);
    assert_all_back(&admission, &gate);
    (took, answer)
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_at_the_smaller_of_its_bound_and_the_rest_of_the_deadline() {
    let ms = Duration::from_millis;
    for (wait, rest, expected) in [
        (Duration::ZERO, ms(5000), Duration::ZERO),
        (ms(1), ms(5000), ms(1)),
        (SECOND, ms(5000), SECOND),
        (SECOND, ms(1), ms(1)),
        (SECOND, Duration::ZERO, Duration::ZERO),
        (SECOND, Duration::MAX, SECOND),
    ] {
        assert_eq!(
            refused_after(wait, rest).await,
            (expected, "IN_FLIGHT_LIMIT_EXCEEDED"),
            "{wait:?}, {rest:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn room_that_comes_in_time_is_taken_at_once() {
    let (admission, gate) = open(limits(1, 100, SECOND, 0.0));
    let held = gate.try_admit(Class::External, 1).unwrap();
    let start = Instant::now();
    let waiter = tokio::spawn({
        let gate = gate.clone();
        async move { gate.admit(Class::External, 1, SECOND).await }
    });
    tokio::time::sleep(SECOND / 2).await;
    drop(held);
    assert!(waiter.await.unwrap().is_ok());
    assert_eq!(start.elapsed(), SECOND / 2);
    assert_all_back(&admission, &gate);
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_are_served_in_the_order_of_arrival() {
    let (_, gate) = open(limits(1, 100, SECOND, 0.0));
    let mut held = Some(gate.try_admit(Class::External, 1).unwrap());
    let mut waiters: Vec<_> = (0..5)
        .map(|i| Poller::new(&gate, if i % 2 == 0 { Class::External } else { Class::Handler }, 1))
        .collect();
    assert!(waiters.iter_mut().all(|waiter| waiter.poll().is_none()));
    for i in 0..5 {
        drop(held.take());
        let woken: Vec<_> = waiters.iter().map(Poller::was_woken).collect();
        assert!(woken.iter().enumerate().all(|(j, woken)| *woken == (i == j)), "{i}: {woken:?}");
        held = Some(waiters[i].poll().unwrap().unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn a_newcomer_does_not_overtake_those_who_wait() {
    let (_, gate) = open(limits(10, 100, SECOND, 0.0));
    let held = gate.try_admit(Class::External, 100).unwrap();
    let mut waiter = Poller::new(&gate, Class::External, 60);
    assert!(waiter.poll().is_none());
    drop(held);
    assert!(
        gate.try_admit(Class::External, 40).is_ok(),
        "the queue is empty once its last waiter was answered"
    );
    assert!(gate.try_admit(Class::External, 41).is_err(), "its room is taken though it has not looked yet");
    assert!(waiter.poll().unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_large_message_at_the_front_is_not_starved_by_small_ones() {
    let (_, gate) = open(limits(10, 100, SECOND, 0.0));
    let mut held: Vec<_> = (0..9).map(|_| gate.try_admit(Class::External, 10).unwrap()).collect();
    let mut large = Poller::new(&gate, Class::External, 90);
    assert!(large.poll().is_none());
    let mut small: Vec<_> = (0..3).map(|_| Poller::new(&gate, Class::External, 1)).collect();
    assert!(small.iter_mut().all(|small| small.poll().is_none()), "they would fit, but wait behind it");
    assert_eq!(code(gate.try_admit(Class::External, 1)), "IN_FLIGHT_LIMIT_EXCEEDED");
    held.truncate(1);
    assert!(large.was_woken(), "9 x 10 less 8 x 10 leaves room for 90");
    let large = large.poll().unwrap().unwrap();
    assert!(small.iter().all(|small| !small.was_woken()), "100 bytes are taken");
    drop(large);
    assert!(small.iter_mut().all(|small| small.was_woken() && small.poll().unwrap().is_ok()));
}

#[tokio::test(start_paused = true)]
async fn a_front_that_gives_up_lets_those_behind_it_through() {
    let (admission, gate) = open(limits(10, 100, SECOND, 0.0));
    let held = gate.try_admit(Class::External, 50).unwrap();
    let front = tokio::spawn({
        let gate = gate.clone();
        async move { code(gate.admit(Class::External, 60, SECOND / 2).await) }
    });
    tokio::task::yield_now().await;
    let start = Instant::now();
    let behind = gate.admit(Class::External, 10, SECOND).await.expect("room once the front gave up");
    assert_eq!(start.elapsed(), SECOND / 2);
    assert_eq!(front.await.unwrap(), "IN_FLIGHT_LIMIT_EXCEEDED");
    drop((held, behind));
    assert_all_back(&admission, &gate);
}
