//! A fixed number of messages through the embedded broker, for counting instructions and allocations per message:
//! `per_message publish|pipeline|consume COUNT [SIZE] [HEADERS]`. Run it twice with different counts; the difference is what
//! the messages cost.

use bytes::Bytes;
use consign::in_memory::Broker;
use consign::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const PROFILES: &str = r#"
[admission]
in_flight = 4096
[destinations.d]
transport = "main"
delivery = "AT_LEAST_ONCE"
ordering = "NONE"
publish = { deadline = "1h" }
consumer = { concurrency = 16, handler_timeout = "1h", settlement_deadline = "1d" }
[destinations.d.native]
capacity = 1000000
"#;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let Some(mode) = arguments.first() else {
        println!("per_message publish|pipeline|consume COUNT [SIZE] [HEADERS]");
        return;
    };
    let number = |place: usize, default: usize| {
        arguments.get(place).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (count, size, headers) = (number(1, 1000), number(2, 64), number(3, 0));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let done = runtime.map(|runtime| runtime.block_on(run(mode, count, size, headers)));
    if let Err(error) | Ok(Err(error)) = done.map_err(Into::into) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

async fn run(
    mode: &str,
    count: usize,
    size: usize,
    headers: usize,
) -> Result<(), Box<dyn std::error::Error>> {
    let messaging = Messaging::builder()
        .transport("main", Broker::new())
        .profiles(ProfileSpecs::from_toml(PROFILES)?)
        .build()
        .await?;
    let publisher = messaging.bytes_publisher("d")?;
    let payload = Bytes::from(vec![7_u8; size]);
    let message = || {
        let mut message = Message::new(payload.clone());
        for _ in 0..headers {
            message = message.header("x-header", "value");
        }
        message
    };
    match mode {
        "publish" => {
            for _ in 0..count {
                publisher.publish(message()).await.into_result()?;
            }
        }
        "pipeline" => {
            let mut window = publisher.pipeline(256)?;
            for _ in 0..count {
                if let Some((_, outcome)) = window.submit(message()).await? {
                    outcome.into_result()?;
                }
            }
            while let Some((_, outcome)) = window.next().await {
                outcome.into_result()?;
            }
        }
        "consume" => {
            // The publishes cost the same in both modes, so that the difference to `publish` is the consuming.
            for _ in 0..count {
                publisher.publish(message()).await.into_result()?;
            }
            let handled = Arc::new(AtomicUsize::new(0));
            let seen = Arc::clone(&handled);
            let _consumer = messaging
                .consume_with("d", "g", BytesCodec::new(), move |_: Delivery<Bytes>, _: HandlerContext| {
                    seen.fetch_add(1, Ordering::Relaxed);
                    std::future::ready(Ok(()))
                })
                .await?;
            while handled.load(Ordering::Relaxed) < count {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        other => return Err(format!("unknown mode {other}").into()),
    }
    let report = messaging.shutdown(Duration::from_secs(10)).await;
    if report.is_clean() { Ok(()) } else { Err(report.to_string().into()) }
}
