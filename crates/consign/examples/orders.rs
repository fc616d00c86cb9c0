//! Orders from a file of JSON lines to NATS JetStream and back, whatever happens to the server meanwhile.
//!
//! ```text
//! CONSIGN_NATS_URL=nats://127.0.0.1:4222 cargo run -p consign --features nats --example orders -- orders.jsonl
//! ```
//! It publishes every line, prints how many ended in each outcome, then consumes, and checks that every CONFIRMED
//! order arrives and no REJECTED one does. Kill the server in the middle and start it again: the check still holds.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use consign::nats::{NatsConfig, Transport};
use consign::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncBufReadExt;

#[derive(Clone, Serialize, Deserialize)]
struct Order {
    id: u64,
    customer: String,
    cents: u64,
}

const PROFILES: &str = r#"
[destinations.orders]
transport = "main"
topology = "declare"
delivery = "AT_LEAST_ONCE"
ordering = "NONE"
publish = { deadline = "10s", in_flight = 256 }
"#;

/// The message ids of the orders that ended in each outcome.
#[derive(Default)]
struct Tally {
    confirmed: BTreeSet<String>,
    rejected: BTreeSet<String>,
    ambiguous: BTreeSet<String>,
}

impl Tally {
    fn note(&mut self, id: Option<MessageId>, outcome: &PublishOutcome) {
        let id = id.map(|id| id.to_string()).unwrap_or_default();
        match outcome {
            PublishOutcome::Confirmed(_) => self.confirmed.insert(id),
            PublishOutcome::Rejected(_) => self.rejected.insert(id),
            PublishOutcome::Ambiguous(_) => self.ambiguous.insert(id),
        };
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("CONSIGN_NATS_URL").unwrap_or_else(|_| "nats://127.0.0.1:4222".to_owned());
    let file = std::env::args().nth(1).ok_or("usage: orders FILE.jsonl")?;
    let messaging = Messaging::builder()
        .transport("main", Transport::new(NatsConfig::new(url)))
        .profiles(ProfileSpecs::from_toml(PROFILES)?)
        .build()
        .await?;

    let sent = publish(&messaging, &file).await?;
    let (confirmed, rejected, ambiguous) = (sent.confirmed.len(), sent.rejected.len(), sent.ambiguous.len());
    println!("published: {confirmed} confirmed, {rejected} rejected, {ambiguous} ambiguous");

    let arrived = consume(&messaging).await?;
    println!("{}", messaging.shutdown(Duration::from_secs(10)).await);

    let missing = sent.confirmed.difference(&arrived).count();
    let ghosts = sent.rejected.intersection(&arrived).count();
    let stored = sent.ambiguous.intersection(&arrived).count();
    println!("arrived: {} orders, {stored} of the {ambiguous} ambiguous ones among them", arrived.len());
    println!("confirmed but missing: {missing}; rejected but present: {ghosts}");
    if missing == 0 && ghosts == 0 { Ok(()) } else { Err("an outcome was a lie".into()) }
}

/// Publishes every line, at most 256 in flight, and notes every outcome.
async fn publish(messaging: &Messaging, file: &str) -> Result<Tally, Box<dyn std::error::Error>> {
    let publisher = messaging.publisher::<Order>("orders")?;
    let mut window = publisher.pipeline(256)?;
    let mut lines = tokio::io::BufReader::new(tokio::fs::File::open(file).await?).lines();
    let mut tally = Tally::default();
    let mut handed_over = 0_u64;
    while let Some(line) = lines.next_line().await? {
        let order: Order = serde_json::from_str(&line)?;
        let id = MessageId::new(format!("order-{}", order.id))?;
        match window.submit(Message::new(&order).key(&order.customer).id(id.clone())).await {
            Ok(Some((id, outcome))) => tally.note(id, &outcome),
            Ok(None) => {}
            Err(rejection) => tally.note(Some(id), &PublishOutcome::Rejected(rejection)),
        }
        handed_over += 1;
        if handed_over.is_multiple_of(1000) {
            println!("handed over {handed_over}");
        }
    }
    while let Some((id, outcome)) = window.next().await {
        tally.note(id, &outcome);
    }
    Ok(tally)
}

/// Consumes until nothing comes any more, and returns the ids that arrived.
async fn consume(messaging: &Messaging) -> Result<BTreeSet<String>, Box<dyn std::error::Error>> {
    let arrived = Arc::new(Mutex::new(BTreeSet::new()));
    let seen = Arc::clone(&arrived);
    let consumer = messaging
        .consume("orders", "billing", move |order: Delivery<Order>, _: HandlerContext| {
            let seen = Arc::clone(&seen);
            async move {
                let total = order.require()?.cents;
                let id = order.message_id().map(ToString::to_string).unwrap_or_default();
                if let (Ok(mut seen), true) = (seen.lock(), total > 0) {
                    seen.insert(id);
                }
                Ok(())
            }
        })
        .await?;
    consumer.idle(Duration::from_secs(3)).await?;
    consumer.stop(Duration::from_secs(5)).await;
    let arrived = arrived.lock().map_err(|_| "a handler panicked")?.clone();
    Ok(arrived)
}
