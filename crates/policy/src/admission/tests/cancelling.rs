//! Futures that are dropped leak nothing, wherever they stand.

use super::*;

#[tokio::test(start_paused = true)]
async fn an_admission_that_is_never_polled_takes_nothing() {
    let (admission, gate) = open(limits(2, 100, SECOND, 0.0));
    drop(gate.admit(Class::External, 1, SECOND));
    assert_all_back(&admission, &gate);
}

#[tokio::test(start_paused = true)]
async fn an_admission_dropped_while_it_waits_leaks_nothing() {
    for class in Class::ALL {
        let (admission, gate) = open(limits(2, 100, SECOND, 0.5));
        let held =
            [gate.try_admit(Class::Internal, 50).unwrap(), gate.try_admit(Class::External, 50).unwrap()];
        let mut waiter = Poller::new(&gate, class, 1);
        assert!(waiter.poll().is_none());
        assert!(waiter.poll().is_none());
        drop(waiter);
        assert_eq!(gate.in_flight(), 2);
        drop(held);
        assert_all_back(&admission, &gate);
    }
}

#[tokio::test(start_paused = true)]
async fn an_admission_dropped_after_it_was_answered_passes_its_room_on() {
    let (admission, gate) = open(limits(1, 100, SECOND, 0.0));
    let held = gate.try_admit(Class::External, 1).unwrap();
    let (mut first, mut second) =
        (Poller::new(&gate, Class::External, 1), Poller::new(&gate, Class::External, 1));
    assert!(first.poll().is_none() && second.poll().is_none());
    drop(held);
    assert!(first.was_woken() && !second.was_woken());
    drop(first);
    assert!(second.was_woken());
    drop(second.poll().unwrap().unwrap());
    assert_all_back(&admission, &gate);
}

#[tokio::test(start_paused = true)]
async fn an_admission_dropped_at_the_front_lets_those_behind_it_through() {
    let (admission, gate) = open(limits(10, 100, SECOND, 0.0));
    let held = gate.try_admit(Class::External, 50).unwrap();
    let (mut front, mut behind) =
        (Poller::new(&gate, Class::External, 60), Poller::new(&gate, Class::External, 10));
    assert!(front.poll().is_none() && behind.poll().is_none());
    drop(front);
    assert!(behind.was_woken());
    drop(behind.poll().unwrap().unwrap());
    drop(held);
    assert_all_back(&admission, &gate);
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_draining_that_is_dropped_is_not_woken() {
    let (admission, gate) = open(AdmissionLimits::default());
    let held = gate.try_admit(Class::External, 1).unwrap();
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    {
        let mut drained = std::pin::pin!(admission.drained(Class::External));
        assert!(drained.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    drop(held);
    assert_eq!(woken.0.load(Ordering::SeqCst), 0);
    drop(waker);
    assert_eq!(Arc::strong_count(&woken), 1, "no waker is left behind");
}

#[tokio::test(start_paused = true)]
async fn a_waker_that_gives_a_permit_back_when_it_is_dropped_does_not_deadlock() {
    struct Owner(#[expect(dead_code, reason = "held to be dropped")] Permit);
    impl Wake for Owner {
        fn wake(self: Arc<Self>) {}
    }
    let (admission, gate) = open(limits(3, 100, SECOND, 0.0));
    let own = || Waker::from(Arc::new(Owner(gate.try_admit(Class::External, 1).unwrap())));
    let (first, second, third) = (own(), own(), own());
    let mut waiter = Box::pin(gate.admit(Class::External, 1, Duration::MAX));
    assert!(waiter.as_mut().poll(&mut Context::from_waker(&first)).is_pending());
    drop(first);
    // The first waker is replaced, then dropped by the queue: its permit makes room.
    let _ = waiter.as_mut().poll(&mut Context::from_waker(&second));
    drop((second, third));
    assert!(waiter.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    drop(waiter);
    assert_all_back(&admission, &gate);
}
