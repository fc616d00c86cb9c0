//! The transport: configuration only, until it connects.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, ConnectErrorKind, ConnectOptions, ServerAddr};
use async_trait::async_trait;
use consign_core_api::capability::Capabilities;
use consign_core_api::error::Problem;
use consign_core_api::failure::{Failure, FailureCategory};
use consign_core_api::spi::{ConnectContext, Connection, DestinationSetup, TransportError};

use crate::config::{Credentials, NatsConfig, redacted};
use crate::connection::NatsConnection;
use crate::exchange::{Link, LinkEvents};
use crate::native::NativeHandle;
use crate::profile::NativeProfile;
use crate::{capability, codes};

/// How many commands the client holds for its connection. What is in it when the connection breaks is sent after the
/// reconnection, however late: the fewer, the better.
const CLIENT_QUEUE: usize = 256;
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// NATS JetStream as a transport. Making one does no I/O.
#[derive(Clone)]
pub struct Transport {
    config: NatsConfig,
    native: NativeHandle,
}

impl Transport {
    /// Makes a transport.
    #[must_use]
    pub fn new(config: NatsConfig) -> Self {
        Self { config, native: NativeHandle::default() }
    }

    /// Returns the way to the client itself, which is there once the transport is connected.
    #[must_use]
    pub fn native(&self) -> NativeHandle {
        self.native.clone()
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Transport").field(&self.config).finish()
    }
}

#[async_trait]
impl consign_core_api::spi::Transport for Transport {
    fn kind(&self) -> &'static str {
        "nats"
    }

    fn validate(&self, setup: &DestinationSetup) -> Vec<Problem> {
        NativeProfile::read(setup).err().unwrap_or_default()
    }

    fn capabilities(&self, setup: &DestinationSetup) -> Capabilities {
        capability::capabilities(setup)
    }

    async fn connect(&self, context: ConnectContext) -> Result<Arc<dyn Connection>, TransportError> {
        let events = LinkEvents::new();
        let attempt = dial(&self.config, &context, &events);
        let client = match tokio::time::timeout(context.timeout, attempt).await {
            Ok(dialled) => dialled.map_err(TransportError::Failed)?,
            Err(_) => {
                let text = format!("no server answered within {:?}", context.timeout);
                return Err(TransportError::Failed(failed(codes::NATS_CONNECT_FAILED, text)));
            }
        };
        let link = Link::new(client.clone(), &events);
        let connection = NatsConnection::start(link, &self.config, context.clock, events);
        let connection = match tokio::time::timeout(context.timeout, connection).await {
            Ok(started) => started.map_err(TransportError::Failed)?,
            Err(_) => {
                let text = "the server took no subscription in time";
                return Err(TransportError::Failed(failed(codes::NATS_CONNECT_FAILED, text)));
            }
        };
        self.native.put(client);
        Ok(connection)
    }
}

async fn dial(config: &NatsConfig, context: &ConnectContext, events: &LinkEvents) -> Result<Client, Failure> {
    let mut servers = Vec::with_capacity(config.servers.len());
    for server in &config.servers {
        // The client's own error may repeat the address, and with it what stands before an `@`.
        let address: ServerAddr = server.parse().map_err(|_| {
            let text = format!("{:?} is no address of a server", redacted(server));
            Failure::new(FailureCategory::Configuration, codes::NATS_CONFIG_INVALID, text)
        })?;
        servers.push(address);
    }
    let options = options(config, context, events).await?;
    async_nats::connect_with_options(servers, options).await.map_err(|error| {
        let (category, code) = match error.kind() {
            ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                (FailureCategory::Security, codes::NATS_AUTHENTICATION_FAILED)
            }
            ConnectErrorKind::ServerParse | ConnectErrorKind::Tls => {
                (FailureCategory::Configuration, codes::NATS_CONFIG_INVALID)
            }
            _ => (FailureCategory::TransientInfrastructure, codes::NATS_CONNECT_FAILED),
        };
        Failure::new(category, code, format!("cannot connect: {}", error.kind()))
    })
}

async fn options(
    config: &NatsConfig,
    context: &ConnectContext,
    events: &LinkEvents,
) -> Result<ConnectOptions, Failure> {
    let name = config.client_name.clone().unwrap_or_else(|| context.name.to_string());
    let (heard, pausing) = (events.clone(), events.clone());
    let mut options = ConnectOptions::new()
        .name(name)
        .ping_interval(config.ping_interval)
        .request_timeout(Some(config.request_timeout))
        .connection_timeout(context.timeout.clamp(Duration::from_millis(1), Duration::from_secs(5)))
        .client_capacity(CLIENT_QUEUE)
        .require_tls(config.tls_required)
        .event_callback(move |_| {
            heard.changed();
            std::future::ready(())
        })
        .reconnect_delay_callback(move |attempts| pause(&pausing, attempts));
    if let Some(file) = &config.root_certificates {
        options = options.add_root_certificates(file.clone());
    }
    Ok(match &config.credentials {
        Credentials::None => options,
        Credentials::UserPassword { user, password } => {
            options.user_and_password(user.clone(), password.clone())
        }
        Credentials::Token(token) => options.token(token.clone()),
        Credentials::NkeySeed(seed) => options.nkey(seed.clone()),
        Credentials::File(path) => options.credentials_file(path).await.map_err(|error| {
            // The kind only: the text of a parse error may show what it could not parse.
            let text = format!("the credentials file {path:?} cannot be used: {}", error.kind());
            Failure::new(FailureCategory::Security, codes::NATS_AUTHENTICATION_FAILED, text)
        })?,
    })
}

/// The client goes on reconnecting for ever, also once nobody holds it; after the close it may as well sleep.
fn pause(events: &LinkEvents, attempts: usize) -> Duration {
    if events.is_closed() {
        return consign_core_api::time::LONGEST;
    }
    let doubled = 1_u64 << attempts.min(12);
    Duration::from_millis(doubled).min(LONGEST_PAUSE)
}

fn failed(code: consign_core_api::Code, text: impl Into<std::borrow::Cow<'static, str>>) -> Failure {
    Failure::new(FailureCategory::TransientInfrastructure, code, text)
}
