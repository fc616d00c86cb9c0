//! The broker under audit: faults, transports, and reading it back not through the adapter.

use std::net::SocketAddr;
use std::sync::Arc;

use consign_core_api::spi::Transport;
use consign_testkit::audit::Event;

use crate::{Error, Result};

#[cfg(feature = "nats")]
pub(super) use nats::Server;

/// A broker of this run's own.
pub(super) enum Target {
    #[cfg(feature = "nats")]
    Nats(Server),
    #[cfg(feature = "in-memory")]
    InMemory(consign_in_memory::Broker),
}

impl Target {
    /// Returns a transport, through a proxy if one is given.
    pub(super) fn transport(&self, through: Option<SocketAddr>) -> Arc<dyn Transport> {
        match self {
            #[cfg(feature = "nats")]
            Self::Nats(server) => server.transport(through),
            #[cfg(feature = "in-memory")]
            Self::InMemory(broker) => {
                debug_assert!(through.is_none(), "the embedded broker has no connection");
                Arc::new(broker.clone())
            }
        }
    }

    /// Reads all that a destination holds.
    pub(super) async fn read_back(&self, destination: &str) -> Result<Vec<Event>> {
        match self {
            #[cfg(feature = "nats")]
            Self::Nats(server) => server.read_back(destination).await.map_err(Error::Broker),
            #[cfg(feature = "in-memory")]
            Self::InMemory(broker) => Ok(broker
                .stored(destination)
                .iter()
                .map(|held| {
                    let message = held.message();
                    Event::Found {
                        id: message.id().map(ToString::to_string).unwrap_or_default(),
                        key: consign_testkit::lab::key_of(message.key()),
                        n: consign_testkit::lab::number_of(message).unwrap_or(u64::MAX),
                        position: held.position().to_string(),
                    }
                })
                .collect()),
        }
    }
}

#[cfg(feature = "nats")]
mod nats {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::Arc;
    use std::time::Duration;

    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use consign_core_api::MessagePosition;
    use consign_core_api::spi::Transport;
    use consign_nats::NatsConfig;
    use consign_testkit::audit::Event;
    use consign_testkit::lab::Number;
    use futures_util::{StreamExt as _, TryStreamExt as _};
    use tokio::sync::Mutex;

    use crate::brokers::nats::Nats;
    use crate::{Error, Result};

    /// How long one question to the server may take.
    const PATIENCE: Duration = Duration::from_secs(10);
    /// How many messages are asked for at once.
    const AT_ONCE: usize = 64;

    /// A server of our own.
    #[derive(Clone)]
    pub(in super::super) struct Server {
        process: Arc<Mutex<Nats>>,
        port: u16,
    }

    impl Server {
        pub(in super::super) async fn start() -> Result<Self> {
            let started = tokio::task::spawn_blocking(Nats::start).await;
            let process = started.map_err(|error| Error::Broker(error.to_string()))??;
            let port = process.port();
            Ok(Self { process: Arc::new(Mutex::new(process)), port })
        }

        pub(in super::super) fn address(&self) -> SocketAddr {
            (Ipv4Addr::LOCALHOST, self.port).into()
        }

        pub(super) fn transport(&self, through: Option<SocketAddr>) -> Arc<dyn Transport> {
            let address = through.unwrap_or_else(|| self.address());
            // In a sweep nothing but the exchange under test should be on the wire.
            let ping = Duration::from_secs(if through.is_some() { 60 } else { 1 });
            let config = NatsConfig::new(format!("nats://{address}")).with_ping_interval(ping);
            Arc::new(consign_nats::Transport::new(config))
        }

        /// Does something to the process.
        pub(in super::super) async fn inflict(
            &self,
            act: impl FnOnce(&mut Nats) -> Result<()> + Send + 'static,
        ) -> Result<()> {
            let mut process = Arc::clone(&self.process).lock_owned().await;
            let done = tokio::task::spawn_blocking(move || act(&mut process)).await;
            done.map_err(|error| Error::Broker(error.to_string()))?
        }

        /// Reads every message of a stream with the client alone.
        pub(super) async fn read_back(&self, stream: &str) -> std::result::Result<Vec<Event>, String> {
            let options = async_nats::ConnectOptions::new().connection_timeout(PATIENCE);
            let options = options.request_timeout(Some(PATIENCE));
            let client = options.connect(self.address().to_string()).await.map_err(told)?;
            let context = async_nats::jetstream::new(client);
            let stream = context.get_stream(stream).await.map_err(told)?;
            let state = stream.get_info().await.map_err(told)?.state;
            if state.messages == 0 {
                return Ok(Vec::new());
            }
            let stream = &stream;
            let reading = (state.first_sequence..=state.last_sequence)
                .map(|sequence| async move { stream.get_raw_message(sequence).await });
            let raw: Vec<_> =
                futures_util::stream::iter(reading).buffered(AT_ONCE).try_collect().await.map_err(told)?;
            if raw.len() as u64 != state.messages {
                return Err(format!("{} messages read of {}", raw.len(), state.messages));
            }
            let name = stream.cached_info().config.name.as_str();
            Ok(raw.iter().map(|message| found(name, message)).collect())
        }
    }

    fn told(error: impl std::fmt::Display) -> String {
        format!("reading back: {error}")
    }

    fn found(stream: &str, message: &async_nats::jetstream::message::StreamMessage) -> Event {
        let text = |name: &str| message.headers.get(name).map(|value| value.as_str().to_owned());
        let key = text("consign-key").and_then(|key| URL_SAFE_NO_PAD.decode(key).ok());
        let number = serde_json::from_slice::<Number>(&message.payload);
        let position = MessagePosition::Sequence { stream: stream.into(), sequence: message.sequence };
        Event::Found {
            id: text("Nats-Msg-Id").unwrap_or_default(),
            key: key.map(|key| String::from_utf8_lossy(&key).into_owned()).unwrap_or_default(),
            n: number.map_or(u64::MAX, |number| number.n),
            position: position.to_string(),
        }
    }
}
