//! The contract's view of a JetStream server. Messages are read back with the client alone, not through the adapter.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use consign_core_api::message::{EncodedMessage, Message, MessageId, Payload, Timestamp};
use consign_core_api::spi::Transport;
use consign_core_api::{MessagePosition, OrderingScope};
use consign_nats::NatsConfig;
use consign_testkit::{BrokerFault, FaultKind, Harness, NotOffered, Profile, Stored};
use futures_util::{StreamExt as _, TryStreamExt as _};
use serde::Deserialize;
use tokio::sync::Mutex;

use crate::brokers::nats::{Provided, provide};
use crate::{Error, Result};

/// How long one question to the server may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many messages are asked for at once.
const AT_ONCE: usize = 32;

/// A server for the contract.
pub struct NatsHarness {
    server: Arc<Mutex<Provided>>,
    url: String,
    controllable: bool,
    version: String,
}

impl NatsHarness {
    /// Provides a server. Blocks while it starts.
    ///
    /// # Errors
    /// If there is none and none can be started.
    pub async fn start() -> Result<Self> {
        let mut server = tokio::task::spawn_blocking(provide)
            .await
            .map_err(|error| Error::Broker(format!("starting the server: {error}")))??;
        let url = server.url();
        let controllable = server.started().is_some();
        let client = connect(&url).await.map_err(Error::Broker)?;
        let version = client.server_info().version;
        Ok(Self { server: Arc::new(Mutex::new(server)), url, controllable, version })
    }

    /// Returns the configurations that the contract runs in.
    #[must_use]
    pub fn profiles() -> Vec<Profile> {
        vec![
            Profile::new("plain"),
            Profile::new("destination").ordering(OrderingScope::Destination),
            Profile::new("partition").ordering(OrderingScope::Partition).native("partitions", 4),
            Profile::new("key").ordering(OrderingScope::Key).native("partitions", 4),
        ]
    }

    async fn control(
        &self,
        act: impl FnOnce(&mut crate::brokers::nats::Nats) -> Result<()> + Send + 'static,
    ) -> std::result::Result<(), String> {
        let mut server = Arc::clone(&self.server).lock_owned().await;
        let done = tokio::task::spawn_blocking(move || server.started().map(act)).await;
        match done {
            Ok(Some(result)) => result.map_err(|error| error.to_string()),
            Ok(None) => Err("an external server is not controlled".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

async fn connect(url: &str) -> std::result::Result<async_nats::Client, String> {
    let connecting = async_nats::ConnectOptions::new().connection_timeout(PATIENCE).connect(url);
    tokio::time::timeout(PATIENCE, connecting)
        .await
        .map_err(|_| "the server does not answer".to_owned())?
        .map_err(|error| format!("the server cannot be reached: {error}"))
}

#[async_trait]
impl Harness for NatsHarness {
    fn adapter(&self) -> &'static str {
        "nats"
    }

    async fn version(&self) -> String {
        self.version.clone()
    }

    fn transport(&self) -> Arc<dyn Transport> {
        Arc::new(consign_nats::Transport::new(NatsConfig::new(self.url.as_str())))
    }

    async fn read_back(&self, _: &Profile, destination: &str) -> std::result::Result<Vec<Stored>, String> {
        let client = connect(&self.url).await?;
        let jetstream = async_nats::jetstream::new(client.clone());
        let stream = jetstream.get_stream(destination).await.map_err(|error| error.to_string())?;
        let state = stream.get_info().await.map_err(|error| error.to_string())?.state;
        if state.messages == 0 {
            return Ok(Vec::new());
        }
        let reading = (state.first_sequence..=state.last_sequence).map(|sequence| {
            let client = client.clone();
            async move { raw(&client, destination, sequence).await }
        });
        let all: Vec<Option<Stored>> =
            futures_util::stream::iter(reading).buffered(AT_ONCE).try_collect().await?;
        Ok(all.into_iter().flatten().collect())
    }

    async fn inflict(&self, fault: BrokerFault<'_>) -> std::result::Result<(), NotOffered> {
        let refused = NotOffered(fault.kind());
        let done = match fault {
            BrokerFault::Restart => {
                let killed = self.control(crate::brokers::nats::Nats::kill9).await;
                match killed {
                    Ok(()) => self.control(crate::brokers::nats::Nats::restart).await,
                    failed => failed,
                }
            }
            BrokerFault::Freeze => self.control(crate::brokers::nats::Nats::freeze).await,
            BrokerFault::Thaw => self.control(crate::brokers::nats::Nats::thaw).await,
            // What a lost durable does to its readers is what an interruption is here.
            BrokerFault::Interrupt { destination, group } => self.delete_consumers(destination, group).await,
            _ => return Err(refused),
        };
        done.map_err(|_| refused)
    }

    fn offers(&self) -> &'static [FaultKind] {
        if self.controllable {
            &[FaultKind::Restart, FaultKind::Freeze, FaultKind::Interrupt]
        } else {
            &[FaultKind::Interrupt]
        }
    }
}

impl NatsHarness {
    async fn delete_consumers(&self, destination: &str, group: &str) -> std::result::Result<(), String> {
        let client = connect(&self.url).await?;
        let jetstream = async_nats::jetstream::new(client);
        let stream = jetstream.get_stream(destination).await.map_err(|error| error.to_string())?;
        let names: Vec<String> =
            stream.consumer_names().try_collect().await.map_err(|error| error.to_string())?;
        for name in names.iter().filter(|name| name.starts_with(group)) {
            stream.delete_consumer(name).await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

/// The answer to a request for one message of a stream.
#[derive(Deserialize)]
struct Answer {
    message: Option<Raw>,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Raw {
    #[serde(default)]
    hdrs: String,
    #[serde(default)]
    data: String,
}

#[derive(Deserialize)]
struct Refusal {
    err_code: u64,
    description: String,
}

const NO_MESSAGE: u64 = 10037;

/// Reads one message as the server keeps it; none where it was deleted. The client's own method for this drops headers
/// that repeat.
async fn raw(
    client: &async_nats::Client,
    stream: &str,
    sequence: u64,
) -> std::result::Result<Option<Stored>, String> {
    let request = format!(r#"{{"seq":{sequence}}}"#);
    let answer = client.request(format!("$JS.API.STREAM.MSG.GET.{stream}"), request.into());
    let answer = tokio::time::timeout(PATIENCE, answer).await.map_err(|_| "no answer in time".to_owned())?;
    let answer = answer.map_err(|error| error.to_string())?;
    let answer: Answer = serde_json::from_slice(&answer.payload).map_err(|error| error.to_string())?;
    match answer {
        Answer { error: Some(refusal), .. } if refusal.err_code == NO_MESSAGE => Ok(None),
        Answer { error: Some(refusal), .. } => Err(refusal.description),
        Answer { message: Some(raw), .. } => {
            let decoded = |text: &str| STANDARD.decode(text).map_err(|error| error.to_string());
            let (headers, payload) = (decoded(&raw.hdrs)?, Bytes::from(decoded(&raw.data)?));
            let headers = String::from_utf8(headers).map_err(|error| error.to_string())?;
            let message = read(&fields(&headers), payload);
            let position = MessagePosition::Sequence { stream: stream.into(), sequence };
            Ok(Some(Stored::new(message, Some(position))))
        }
        Answer { .. } => Err("an answer without a message".to_owned()),
    }
}

/// Splits headers into names and values, in their order.
fn fields(headers: &str) -> Vec<(&str, &str)> {
    let lines = headers.split("\r\n").skip(1);
    lines.filter_map(|line| line.split_once(':')).map(|(name, value)| (name, value.trim())).collect()
}

/// Reads a message as the adapter's page says that it writes them.
fn read(fields: &[(&str, &str)], payload: Bytes) -> EncodedMessage {
    let text = |wanted: &str| fields.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
    let mut parts = Message::<()>::tombstone().into_parts().1;
    parts.id = text("Nats-Msg-Id").and_then(|id| MessageId::new(id).ok());
    parts.key = text("consign-key").and_then(|key| URL_SAFE_NO_PAD.decode(key).ok()).map(Bytes::from);
    parts.timestamp = text("consign-timestamp").and_then(|t| t.parse().ok()).map(Timestamp::from_millis);
    let own =
        ["Nats-Msg-Id", "Nats-Expected-Stream", "consign-key", "consign-timestamp", "consign-tombstone"];
    parts.headers = fields
        .iter()
        .filter(|(name, _)| !own.contains(name))
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let payload =
        if text("consign-tombstone").is_some() { Payload::Tombstone } else { Payload::Bytes(payload) };
    EncodedMessage::new(payload, parts)
}

impl std::fmt::Debug for NatsHarness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NatsHarness").field("controllable", &self.controllable).finish_non_exhaustive()
    }
}
