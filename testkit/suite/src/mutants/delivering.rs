//! Wrong subscriptions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use consign_core_api::spi::{Event, Settler};

use super::{Mutant, Suits};
use crate::wrap::{Meddle, Site, wrapper};

/// A subscription that does it in another way. It is told the number of the delivery, from 1, and has a shelf; both are
/// the group's.
struct Delivering<F> {
    change: F,
    groups: Mutex<HashMap<String, (usize, Vec<Event>)>>,
}

impl<F> Meddle for Delivering<F>
where
    F: Fn(usize, &mut Vec<Event>, Event) -> Vec<Event> + Send + Sync + 'static,
{
    fn event(&self, site: &Site, _: &Arc<dyn Settler>, event: Event) -> Vec<Event> {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, shelf) = groups.entry(format!("{site:?}")).or_default();
        *count += usize::from(matches!(event, Event::Delivery(_)));
        (self.change)(*count, shelf, event)
    }
}

fn mutant(
    name: &'static str,
    breaks: &'static str,
    suits: Suits,
    suspects: &'static [&'static str],
    change: impl Fn(usize, &mut Vec<Event>, Event) -> Vec<Event> + Send + Sync + 'static,
) -> Mutant {
    Mutant {
        name,
        breaks,
        suits,
        suspects,
        wrapper: wrapper(Delivering { change, groups: Mutex::default() }),
    }
}

const fn is_delivery(event: &Event) -> bool {
    matches!(event, Event::Delivery(_))
}

pub(super) fn all() -> Vec<Mutant> {
    vec![
        mutant(
            "swaps two deliveries of a unit",
            "deliveries of a unit come in its order",
            Suits::Ordered,
            &["start_in_publish_order", "overtake"],
            |count, shelf, event| match count % 5 {
                2 if is_delivery(&event) => {
                    shelf.push(event);
                    Vec::new()
                }
                3 if is_delivery(&event) => std::iter::once(event).chain(shelf.drain(..)).collect(),
                _ => vec![event],
            },
        ),
        mutant(
            "loses a delivery",
            "every message is delivered",
            Suits::Any,
            &["every_group_gets", "members_of_a_group"],
            |count, _, event| if is_delivery(&event) && count % 7 == 0 { Vec::new() } else { vec![event] },
        ),
        mutant(
            "delivers a message twice",
            "an outstanding message is not delivered again",
            Suits::Any,
            &["every_group_gets"],
            |count, _, event| match event {
                Event::Delivery(inbound) if count % 4 == 0 => {
                    vec![Event::Delivery(inbound.clone()), Event::Delivery(inbound)]
                }
                other => vec![other],
            },
        ),
        mutant(
            "counts every delivery as the first",
            "where deliveries are counted, the count rises",
            Suits::AtLeastOnce,
            &["count_of_deliveries", "too_often"],
            |_, _, event| match event {
                Event::Delivery(mut inbound) => {
                    (inbound.delivery_count, inbound.redelivered) = (Some(1), Some(false));
                    vec![Event::Delivery(inbound)]
                }
                other => vec![other],
            },
        ),
        mutant(
            "keeps silent about a broken stream",
            "a broken stream is told",
            Suits::AtLeastOnce,
            &["interrupt"],
            |_, _, event| if matches!(event, Event::Interrupted(_)) { Vec::new() } else { vec![event] },
        ),
        mutant(
            "keeps silent about a revocation",
            "a unit is told to be drained before it goes",
            Suits::AtLeastOnce,
            &["drained"],
            |_, _, event| if matches!(event, Event::Revoking { .. }) { Vec::new() } else { vec![event] },
        ),
        mutant(
            "hands a consumer what its group had not asked for",
            "a message is delivered with its own content",
            Suits::Any,
            &["every_group_gets", "handled_message"],
            |_, shelf, event| match event {
                Event::Delivery(mut inbound) => {
                    if let Some(Event::Delivery(first)) = shelf.first() {
                        inbound.message = first.message.clone();
                    } else {
                        shelf.push(Event::Delivery(inbound.clone()));
                    }
                    vec![Event::Delivery(inbound)]
                }
                other => vec![other],
            },
        ),
    ]
}
