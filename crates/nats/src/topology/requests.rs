//! Requests about streams and consumers, each answered by a value or by the reason why not.

use std::fmt;

use async_nats::jetstream::context::RequestErrorKind;
use async_nats::jetstream::response::Response;
use async_nats::jetstream::{consumer, stream};
use serde::{Deserialize, Serialize};

use crate::connection::Shared;

const STREAM_NOT_FOUND: u64 = 10059;
const CONSUMER_NOT_FOUND: u64 = 10014;
const CONSUMER_EXISTS: [u64; 3] = [10013, 10105, 10148];
const STREAM_EXISTS: u64 = 10058;

/// Why a request gave nothing.
#[derive(Debug, Clone)]
pub(super) enum Refused {
    /// What was asked for does not exist.
    Missing,
    /// What was to be created exists already, and differs.
    Exists,
    /// The server said no.
    Server { code: u64, text: String },
    /// Nobody answered, or not in time, or not understandably.
    Unanswered(RequestErrorKind),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("it does not exist"),
            Self::Exists => f.write_str("it exists already and differs"),
            Self::Server { code, text } => write!(f, "the server answered {code}: {text}"),
            Self::Unanswered(kind) => write!(f, "{kind}"),
        }
    }
}

async fn ask<T: Serialize, V: serde::de::DeserializeOwned>(
    shared: &Shared,
    subject: String,
    request: &T,
) -> Result<V, Refused> {
    let answer = shared.jetstream.request::<_, _, Response<V>>(subject, request);
    // The client bounds the answer; this bounds the way into its queue too, which stands still while it reconnects.
    match tokio::time::timeout(shared.request_timeout.saturating_mul(2), answer).await {
        Err(_) => Err(Refused::Unanswered(RequestErrorKind::TimedOut)),
        Ok(Err(error)) => Err(Refused::Unanswered(error.kind())),
        Ok(Ok(Response::Ok(value))) => Ok(value),
        Ok(Ok(Response::Err { error })) => Err(match error.error_code().0 {
            STREAM_NOT_FOUND | CONSUMER_NOT_FOUND => Refused::Missing,
            code if code == STREAM_EXISTS || CONSUMER_EXISTS.contains(&code) => Refused::Exists,
            code => Refused::Server { code, text: error.to_string() },
        }),
    }
}

/// Looks at a stream.
pub(super) async fn stream(shared: &Shared, name: &str) -> Result<stream::Info, Refused> {
    ask(shared, format!("STREAM.INFO.{name}"), &serde_json::json!({})).await
}

/// Creates a stream. One that somebody else created meanwhile is looked at instead.
pub(super) async fn create_stream(shared: &Shared, config: stream::Config) -> Result<stream::Info, Refused> {
    let name = config.name.clone();
    match ask(shared, format!("STREAM.CREATE.{name}"), &config).await {
        Err(Refused::Exists) => stream(shared, &name).await,
        created => created,
    }
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    total: usize,
    #[serde(default)]
    consumers: Option<Vec<consumer::Info>>,
}

/// Lists the consumers of a stream.
pub(super) async fn consumers(shared: &Shared, stream: &str) -> Result<Vec<consumer::Info>, Refused> {
    let mut all: Vec<consumer::Info> = Vec::new();
    loop {
        let offset = serde_json::json!({ "offset": all.len() });
        let page: Page = ask(shared, format!("CONSUMER.LIST.{stream}"), &offset).await?;
        let consumers = page.consumers.unwrap_or_default();
        let last = consumers.is_empty();
        all.extend(consumers);
        if last || all.len() >= page.total {
            return Ok(all);
        }
    }
}

/// Looks at a consumer.
pub(super) async fn consumer(shared: &Shared, stream: &str, name: &str) -> Result<consumer::Info, Refused> {
    ask(shared, format!("CONSUMER.INFO.{stream}.{name}"), &serde_json::json!({})).await
}

/// Creates a durable consumer, never altering one that exists. One that somebody else created meanwhile is looked at
/// instead.
pub(super) async fn create_consumer(
    shared: &Shared,
    stream: &str,
    name: &str,
    config: &consumer::Config,
) -> Result<consumer::Info, Refused> {
    let request = serde_json::json!({ "stream_name": stream, "config": config, "action": "create" });
    let subject = format!("CONSUMER.CREATE.{stream}.{name}.{}", config.filter_subject);
    match ask(shared, subject, &request).await {
        Err(Refused::Exists) => consumer(shared, stream, name).await,
        created => created,
    }
}
