//! Every public future of the publish path, dropped after every number of polls.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use consign_core_api::PublishOutcome;
use consign_runtime::Publisher;
use consign_testkit::lab::Number;
use fastrand::Rng;

use super::scene::{Numbers, Scene, Setting};
use crate::{Error, Result};

const DESTINATION: &str = "audit-drop";
/// Small, so that some are refused for want of room.
const IN_FLIGHT: u64 = 4;
/// How many messages a batch has: more than fit, so that it is polled often.
const BATCH: usize = 12;
/// The most polls that are tried if a future never ends by itself.
const MOST: u64 = 200;

/// The calls of the publish path.
#[derive(Debug, Clone, Copy)]
enum Call {
    Publish,
    Submit,
    Receipt,
    Batch,
    WindowSubmit,
    WindowNext,
}

const CALLS: [Call; 6] =
    [Call::Publish, Call::Submit, Call::Receipt, Call::Batch, Call::WindowSubmit, Call::WindowNext];

pub(super) async fn run(scene: &mut Scene) -> Result<()> {
    let setting = Setting { ordered: false, in_flight: IN_FLIGHT, through: None };
    let messaging = scene.library(DESTINATION, setting, None).await?;
    let publisher = messaging.publisher::<Number>(DESTINATION).map_err(|e| Error::Command(e.to_string()))?;
    let numbers = Numbers::new(&scene.recorder, DESTINATION, "drop");
    let crowd = Numbers::new(&scene.recorder, DESTINATION, "crowd");
    let mut rng = scene.rng(0);
    let (mut rounds, mut longest) = (0_u64, [0; CALLS.len()]);
    while !scene.over() {
        for (call, longest) in CALLS.into_iter().zip(&mut longest) {
            let mut polls = 0;
            // Until the future ends before it is dropped.
            while polls < MOST && !scene.over() {
                let others = rng.u64(0..=IN_FLIGHT);
                let (ended, ()) = tokio::join!(
                    dropped(call, &publisher, &numbers, polls, &mut rng, scene.deadline),
                    crowded(&crowd, &publisher, others)
                );
                if ended {
                    break;
                }
                polls += 1;
            }
            *longest = polls.max(*longest);
        }
        rounds += 1;
    }
    let most: Vec<_> = CALLS.iter().zip(longest).map(|(call, most)| format!("{call:?} {most}")).collect();
    scene.notes.push(format!("{rounds} rounds; most polls before a drop: {}", most.join(", ")));
    Ok(())
}

/// Others that want the same few places, and wait for their ends. They poll the tested future more often, too.
async fn crowded(numbers: &Numbers, publisher: &Publisher<Number>, others: u64) {
    let publishing = (0..others).map(|_| numbers.publish(publisher));
    drop(futures_util::future::join_all(publishing).await);
}

/// Polls so many times, each time when it was woken, and drops. `None` if it did not end by then.
async fn polled<F: Future>(future: F, polls: u64) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    std::future::poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            // The last poll is not waited for.
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Makes the call and drops its future after so many polls. Answers whether it ended before.
async fn dropped(
    call: Call,
    publisher: &Publisher<Number>,
    numbers: &Numbers,
    polls: u64,
    rng: &mut Rng,
    deadline: Duration,
) -> bool {
    match call {
        Call::Publish => {
            let (id, message) = numbers.call(true);
            let outcome = polled(publisher.publish(message), polls).await;
            match &outcome {
                Some(outcome) => numbers.told(&id, outcome),
                None => numbers.dropped(&id, polls),
            }
            outcome.is_some()
        }
        Call::Submit => {
            let (id, message) = numbers.call(true);
            match polled(publisher.submit(message), polls).await {
                Some(Ok(receipt)) => {
                    numbers.told(&id, &receipt.await);
                    true
                }
                Some(Err(rejection)) => {
                    numbers.told(&id, &PublishOutcome::Rejected(rejection));
                    true
                }
                None => {
                    numbers.dropped(&id, polls);
                    false
                }
            }
        }
        Call::Receipt => {
            let (id, message) = numbers.call(true);
            match publisher.submit(message).await {
                Ok(receipt) => {
                    let outcome = polled(receipt, polls).await;
                    match &outcome {
                        Some(outcome) => numbers.told(&id, outcome),
                        None => numbers.dropped(&id, polls),
                    }
                    outcome.is_some()
                }
                Err(rejection) => {
                    numbers.told(&id, &PublishOutcome::Rejected(rejection));
                    false
                }
            }
        }
        Call::Batch => {
            // Called when the batch takes it, which is when its deadline begins; those it never took were never called.
            let taken = std::cell::RefCell::new(Vec::new());
            let messages = (0..BATCH).map(|_| {
                let (id, message) = numbers.call(false);
                taken.borrow_mut().push(id);
                message
            });
            let outcomes = polled(publisher.publish_batch(messages), polls).await;
            let taken = taken.take();
            match &outcomes {
                Some(outcomes) => {
                    taken.iter().zip(outcomes).for_each(|(id, outcome)| numbers.told(id, outcome));
                }
                None => taken.iter().for_each(|id| numbers.dropped(id, polls)),
            }
            outcomes.is_some()
        }
        Call::WindowSubmit | Call::WindowNext => window(call, publisher, numbers, polls, rng, deadline).await,
    }
}

/// A window that is full or not, of which one call is dropped; every other outcome must still come.
async fn window(
    call: Call,
    publisher: &Publisher<Number>,
    numbers: &Numbers,
    polls: u64,
    rng: &mut Rng,
    deadline: Duration,
) -> bool {
    let size = usize::try_from(IN_FLIGHT).unwrap_or(1);
    let Ok(mut window) = publisher.pipeline(size) else { return true };
    let told = |taken: Option<(Option<consign_core_api::MessageId>, PublishOutcome)>| {
        if let Some((Some(id), outcome)) = taken {
            numbers.told(&id.to_string(), &outcome);
        }
    };
    for _ in 0..rng.usize(1..=size) {
        let (id, message) = numbers.call(false);
        match window.submit(message).await {
            Ok(taken) => told(taken),
            Err(rejection) => numbers.told(&id, &PublishOutcome::Rejected(rejection)),
        }
    }
    let ended = if matches!(call, Call::WindowNext) {
        let next = polled(window.next(), polls).await;
        let ended = next.is_some();
        told(next.flatten());
        ended
    } else {
        let full = window.in_flight() >= size;
        let (id, message) = numbers.call_behind(false, if full { deadline } else { Duration::ZERO });
        match polled(window.submit(message), polls).await {
            Some(Ok(taken)) => {
                told(taken);
                true
            }
            Some(Err(rejection)) => {
                numbers.told(&id, &PublishOutcome::Rejected(rejection));
                true
            }
            None => {
                numbers.dropped(&id, polls);
                false
            }
        }
    };
    while let Some(taken) = window.next().await {
        told(Some(taken));
    }
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_future_is_polled_exactly_so_often_and_dropped() {
        for polls in 0..5 {
            let mut seen = 0;
            let future = std::future::poll_fn(|cx| {
                seen += 1;
                cx.waker().wake_by_ref();
                if seen == 3 { Poll::Ready(()) } else { Poll::Pending }
            });
            assert_eq!(polled(future, polls).await.is_some(), polls >= 3);
            assert_eq!(seen, polls.min(3));
        }
    }
}
