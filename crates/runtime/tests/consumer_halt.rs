//! A unit that stands still is told, and seen.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use consign_core_api::Message;
use consign_in_memory::Broker;
use consign_policy::ProfileSpecs;
use consign_runtime::consumer::{Delivery, HandlerContext, HandlerFailure};
use consign_runtime::{Consumer, Messaging, Observed, Observer};

/// Looks at the consumer when it is told that a unit stands still.
#[derive(Default)]
struct Looks {
    consumer: OnceLock<Consumer>,
    seen: Mutex<Vec<usize>>,
}

impl Observer for Looks {
    fn observe(&self, event: &Observed<'_>) {
        if let Observed::Halted { .. } = event {
            self.seen.lock().unwrap().push(self.consumer.get().unwrap().health().halted_units);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_is_told_of_a_halt_finds_it_in_the_health() {
    let looks = Arc::new(Looks::default());
    let specs =
        "[destinations.orders]\ntransport = \"main\"\ndelivery = \"AT_LEAST_ONCE\"\nordering = \"NONE\"";
    let messaging = Messaging::builder()
        .transport("main", Broker::new())
        .profiles(ProfileSpecs::from_toml(specs).unwrap())
        .observer(looks.clone())
        .build()
        .await
        .unwrap();
    let handler = |_: Delivery<u64>, _: HandlerContext| {
        std::future::ready(Err::<(), _>(HandlerFailure::permanent("NO", "never")))
    };
    let consumer = messaging.consume("orders", "billing", handler).await.unwrap();
    looks.consumer.set(consumer.clone()).unwrap_or_else(|_| panic!("set once"));
    let orders = messaging.publisher::<u64>("orders").unwrap();
    for number in 0..3 {
        assert!(orders.publish(Message::new(number)).await.is_confirmed());
    }
    let halted = consumer.idle_within(Duration::from_secs(1), Duration::from_secs(60)).await;
    assert_eq!(halted.unwrap_err().code(), "UNIT_HALTED");
    assert_eq!(*looks.seen.lock().unwrap(), [1, 2, 3]);
}
