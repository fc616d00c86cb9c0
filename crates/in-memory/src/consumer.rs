//! Consuming: a subscription is a member of a group, and takes what is its own under the destination's lock.

use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use consign_core_api::spi::{
    Batch, DestinationSetup, Event, Inbound, Settler, Start, Subscription, SubscriptionSpec, TransportError,
};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::broker::{ConnectionState, DeliveryFault, DestinationState, Inner, Member, MemberId, WakeList};
use crate::outcome::Cut;
use crate::settlement::InMemorySettler;
use crate::topology;

/// Subscribes. Never waits.
pub(crate) fn subscribe(
    connection: &Arc<ConnectionState>,
    state: &Arc<DestinationState>,
    setup: &DestinationSetup,
    spec: &SubscriptionSpec,
) -> Result<Box<dyn Subscription>, TransportError> {
    let mut wakes = WakeList::default();
    let mut inner = state.lock();
    if connection.is_closed() {
        return Err(TransportError::Failed(Cut::Closed.failure()));
    }
    if inner.switches.down {
        return Err(TransportError::Failed(Cut::Down.failure()));
    }
    let ordered = setup.ordering.is_ordered();
    let Some(group) = inner.model.group(&spec.group, ordered, setup.consumer.start == Start::Earliest) else {
        let there = if ordered { "NONE" } else { "an order" };
        let problem = topology::mismatch(setup, "ordering", &setup.ordering.to_string(), there);
        return Err(TransportError::Refused(vec![problem]));
    };
    let make = |id| Member::new(id, connection.id, spec, Arc::clone(&connection.clock));
    let member = inner.model.groups[group].1.join(make, Instant::now(), &mut wakes);
    drop(inner);
    wakes.wake();
    let settler =
        InMemorySettler { connection: Arc::clone(connection), state: Arc::clone(state), group, member };
    let state = Arc::clone(state);
    Ok(Box::new(InMemorySubscription { state, group, member, settler: Arc::new(settler), end: End::Open }))
}

/// A member of a group. Dropping it leaves the group; what is outstanding comes again.
#[derive(Debug)]
struct InMemorySubscription {
    state: Arc<DestinationState>,
    group: usize,
    member: MemberId,
    settler: Arc<InMemorySettler>,
    end: End,
}

/// Whether the connection was closed under the subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    Told,
}

#[async_trait]
impl Subscription for InMemorySubscription {
    /// After the connection was closed it returns `Interrupted` once, and then waits for ever.
    async fn next(&mut self, max: NonZeroUsize) -> Batch {
        // Messages are taken in the poll that returns them, so a dropped future loses none.
        let mut timer: Option<Pin<Box<Sleep>>> = None;
        std::future::poll_fn(|cx| {
            loop {
                let until = match self.take(max.get(), cx) {
                    Taken::Batch(batch) => return Poll::Ready(batch),
                    Taken::Nothing(None) => return Poll::Pending,
                    Taken::Nothing(Some(until)) => until,
                };
                let timer = timer.get_or_insert_with(|| Box::pin(sleep_until(until)));
                if timer.deadline() != until {
                    timer.as_mut().reset(until);
                }
                if timer.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
            }
        })
        .await
    }

    fn settler(&self) -> Arc<dyn Settler> {
        Arc::<InMemorySettler>::clone(&self.settler)
    }

    async fn close(&mut self) {
        self.leave();
    }
}

enum Taken {
    Batch(Batch),
    /// Nothing, and nothing by time alone before this instant.
    Nothing(Option<Instant>),
}

impl InMemorySubscription {
    fn take(&mut self, max: usize, cx: &Context<'_>) -> Taken {
        let mut wakes = WakeList::default();
        let mut inner = self.state.lock();
        let now = Instant::now();
        let mut batch = Vec::new();
        let member = fill(&mut inner, self.group, self.member, max, now, &mut batch, &mut wakes);
        let taken = match member {
            Some(()) if !batch.is_empty() => Taken::Batch(batch),
            Some(()) => {
                let down = inner.switches.down;
                let group = &mut inner.model.groups[self.group].1;
                group.park(self.member, cx.waker());
                Taken::Nothing(if down { None } else { group.next_change(self.member, now) })
            }
            None if self.end == End::Open => {
                self.end = End::Told;
                Taken::Batch(vec![Event::Interrupted(Cut::Closed.failure())])
            }
            None => Taken::Nothing(None),
        };
        drop(inner);
        wakes.wake();
        taken
    }

    fn leave(&mut self) {
        let mut wakes = WakeList::default();
        self.state.lock().model.groups[self.group].1.leave(self.member, Instant::now(), &mut wakes);
        wakes.wake();
    }
}

impl Drop for InMemorySubscription {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Fills a batch with unread events and at most `max` deliveries. `None` where the member is none any more.
fn fill(
    inner: &mut Inner,
    group: usize,
    member: MemberId,
    max: usize,
    now: Instant,
    batch: &mut Batch,
    wakes: &mut WakeList,
) -> Option<()> {
    let Inner { model, faults, switches, .. } = inner;
    let group = &mut model.groups.get_mut(group)?.1;
    let room = group.start(member, now, batch, wakes)?;
    if switches.down {
        return Some(());
    }
    for _ in 0..room.min(max) {
        let Some(handed) = group.hand_out(member, &model.logs, now) else { break };
        let Some(message) =
            model.logs.get(handed.place.partition as usize).and_then(|l| l.get(handed.place.offset))
        else {
            break;
        };
        let inbound =
            Inbound::new(handed.token, message.clone()).at(handed.place.into()).counted(handed.count);
        batch.push(Event::Delivery(Box::new(inbound)));
        if handed.count > 1 {
            continue;
        }
        match faults.next_delivery() {
            None => {}
            Some(DeliveryFault::Redelivered) => {
                // It was outstanding a moment ago, so it cannot be stale.
                let _ = group.give_back(member, handed.token, None, now, wakes);
            }
            Some(DeliveryFault::Interrupted) => {
                group.interrupt(&Cut::Interrupted.failure(), wakes);
                group.start(member, now, batch, wakes)?;
                break;
            }
        }
    }
    Some(())
}
