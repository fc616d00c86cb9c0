//! Many tasks at once: no limit is passed, nothing is left, nobody is forgotten.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn under_contention_no_limit_is_passed_and_everything_comes_back() {
    const TASKS: usize = 24;
    const ROUNDS: usize = 400;
    let admission = Admission::new(limits(6, 600, Duration::from_secs(60), 0.34));
    let gates: Vec<_> = (0..3).map(|_| admission.destination(n(8), MaxPayload::default())).collect();
    let (in_flight, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let gate = gates[task % 3].clone();
            let (in_flight, most) = (Arc::clone(&in_flight), Arc::clone(&most));
            tokio::spawn(async move {
                for round in 0..ROUNDS {
                    let class = Class::ALL[(task / 3 + round) % 3];
                    let size = (task * 37 + round * 13) % 390;
                    let mut permit = gate
                        .admit(class, size, Duration::from_secs(60))
                        .await
                        .expect("8 tasks share 8 slots, and everybody gives back");
                    let now = in_flight.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(now, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    in_flight.fetch_sub(1, Ordering::SeqCst);
                    if round % 2 == 0 {
                        permit.verdict();
                        tokio::task::yield_now().await;
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let most = most.load(Ordering::SeqCst);
    assert!((2..=6).contains(&most), "{most}");
    for gate in &gates {
        assert_eq!(gate.in_flight(), 0);
    }
    let gate = admission.destination(n(1000), MaxPayload::default());
    assert_all_back(&admission, &gate);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn after_closing_and_draining_nothing_is_in_flight_any_more() {
    for _ in 0..50 {
        let (admission, gate) = open(limits(3, 300, Duration::from_secs(60), 0.0));
        let after = Arc::new(AtomicUsize::new(0));
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let (gate, after) = (gate.clone(), Arc::clone(&after));
                tokio::spawn(async move {
                    loop {
                        match gate.admit(Class::External, 10, Duration::from_secs(60)).await {
                            Ok(permit) => {
                                if after.load(Ordering::SeqCst) == 1 {
                                    after.store(2, Ordering::SeqCst);
                                }
                                tokio::task::yield_now().await;
                                drop(permit);
                            }
                            Err(refused) => return refused.code().as_str(),
                        }
                    }
                })
            })
            .collect();
        tokio::task::yield_now().await;
        admission.close(Class::External);
        admission.drained(Class::External).await;
        after.store(1, Ordering::SeqCst);
        for task in tasks {
            assert_eq!(task.await.unwrap(), "SHUTTING_DOWN");
        }
        assert_eq!(after.load(Ordering::SeqCst), 1, "nothing was admitted after the drain");
        assert_eq!((gate.in_flight(), admission.usage()), (0, crate::admission::Usage::default()));
    }
}
