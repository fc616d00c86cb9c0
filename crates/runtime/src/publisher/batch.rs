//! Many messages, an outcome for each.

use std::borrow::Borrow;
use std::collections::VecDeque;

use consign_core_api::{Message, PublishOutcome};

use super::{Publisher, Receipt};

/// Publishes in order with a window of the profile's `in_flight`.
pub(super) async fn publish<T: 'static, V: Borrow<T>>(
    publisher: &Publisher<T>,
    messages: impl IntoIterator<Item = Message<V>>,
) -> Vec<PublishOutcome> {
    let most = publisher.destination.profile().setup().publish.in_flight.get();
    let mut outcomes: Vec<Option<PublishOutcome>> = Vec::new();
    let mut window: VecDeque<(usize, Receipt)> = VecDeque::new();
    for message in messages {
        if window.len() >= most {
            settle_oldest(&mut window, &mut outcomes).await;
        }
        let place = outcomes.len();
        match publisher.submit(message).await {
            Ok(receipt) => {
                outcomes.push(None);
                window.push_back((place, receipt));
            }
            Err(rejection) => outcomes.push(Some(PublishOutcome::Rejected(rejection))),
        }
    }
    while !window.is_empty() {
        settle_oldest(&mut window, &mut outcomes).await;
    }
    outcomes.into_iter().flatten().collect()
}

async fn settle_oldest(window: &mut VecDeque<(usize, Receipt)>, outcomes: &mut [Option<PublishOutcome>]) {
    let Some((place, receipt)) = window.pop_front() else { return };
    let outcome = receipt.await;
    if let Some(open) = outcomes.get_mut(place) {
        *open = Some(outcome);
    }
}
