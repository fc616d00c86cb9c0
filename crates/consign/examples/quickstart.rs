//! Three outcomes, an in-order retry, a dead letter and its redrive, on the embedded broker.
//!
//! ```text
//! cargo run -p consign --example quickstart
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use consign::in_memory::{Broker, PublishFault, Script};
use consign::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    customer: String,
    cents: u64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The broker is scripted so that there is something to see: the answer to the fourth publish is lost.
    let broker = Broker::scripted(Script::on("orders").publish(4, PublishFault::NoReplyStored));
    let messaging = Messaging::builder()
        .transport("main", broker.clone())
        .profiles(ProfileSpecs::from_toml(include_str!("profiles.toml"))?)
        .build()
        .await?;

    publish(&messaging).await?;
    let card_works = Arc::new(AtomicBool::new(false));
    let consumer =
        messaging.consume("orders", "billing", Billing { card_works: Arc::clone(&card_works) }).await?;
    consumer.idle(Duration::from_millis(500)).await?;
    println!("dead letters: {}", broker.stored("orders.dead").len());

    // The card works by now, so what was buried can be handled.
    card_works.store(true, Ordering::SeqCst);
    let options = RedriveOptions::new().allow_reorder();
    println!("redriven: {}", messaging.redrive("orders.dead", options).await?);
    consumer.idle(Duration::from_millis(500)).await?;

    println!("{}", messaging.shutdown(Duration::from_secs(10)).await);
    Ok(())
}

async fn publish(messaging: &Messaging) -> Result<(), Box<dyn std::error::Error>> {
    let orders = messaging.publisher::<Order>("orders")?;
    for (id, cents) in [(1, 990), (2, 1_250), (3, 13), (4, 500)] {
        let order = Order { id, customer: "c-7".into(), cents };
        report(id, &orders.publish(Message::new(&order).key(&order.customer)).await);
    }
    // Key ordering needs a key; without one, nothing is sent.
    let order = Order { id: 5, customer: String::new(), cents: 1 };
    report(5, &orders.publish(Message::new(&order)).await);
    Ok(())
}

fn report(id: u64, outcome: &PublishOutcome) {
    match outcome {
        PublishOutcome::Confirmed(c) => println!("order {id}: CONFIRMED, {c}"),
        PublishOutcome::Rejected(r) => println!("order {id}: REJECTED, {r}"),
        PublishOutcome::Ambiguous(a) => println!("order {id}: AMBIGUOUS, {a}"),
    }
}

/// Charges orders: one is declined, and the gateway is down for the first attempt of another.
struct Billing {
    card_works: Arc<AtomicBool>,
}

impl Handler<Order> for Billing {
    async fn handle(&self, delivery: Delivery<Order>, context: HandlerContext) -> Result<(), HandlerFailure> {
        let order = delivery.require()?;
        if order.id == 2 && context.attempt().get() == 1 {
            println!("order 2: the gateway is down, attempt 1; orders 3 and 4 wait");
            return Err(HandlerFailure::transient("GATEWAY_DOWN", "connection refused"));
        }
        if order.cents == 13 && !self.card_works.load(Ordering::SeqCst) {
            println!("order {}: declined, to the dead letter", order.id);
            return Err(HandlerFailure::permanent("CARD_DECLINED", "do not honour"));
        }
        println!("order {}: charged {} cents, attempt {}", order.id, order.cents, context.attempt());
        Ok(())
    }
}
