//! Where the servers are and who we are.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// How to connect to NATS. Making one does no I/O.
///
/// `Debug` and every error leave out passwords, tokens and seeds, also those that stand in an address.
#[derive(Clone)]
pub struct NatsConfig {
    pub(crate) servers: Vec<String>,
    pub(crate) credentials: Credentials,
    pub(crate) client_name: Option<String>,
    pub(crate) ping_interval: Duration,
    pub(crate) request_timeout: Duration,
    pub(crate) tls_required: bool,
    pub(crate) root_certificates: Option<PathBuf>,
}

/// Who we are.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Credentials {
    /// Nobody in particular; what an address carries still counts.
    #[default]
    None,
    /// A user and a password.
    UserPassword {
        /// The user.
        user: String,
        /// The password.
        password: String,
    },
    /// A token.
    Token(String),
    /// The seed of an nkey.
    NkeySeed(String),
    /// A credentials file with a JWT and a seed, read when connecting.
    File(PathBuf),
}

impl NatsConfig {
    /// Connects to one server, such as `nats://127.0.0.1:4222`; the others of its cluster are discovered.
    #[must_use]
    pub fn new(server: impl Into<String>) -> Self {
        Self {
            servers: vec![server.into()],
            credentials: Credentials::None,
            client_name: None,
            ping_interval: Duration::from_secs(5),
            request_timeout: Duration::from_secs(5),
            tls_required: false,
            root_certificates: None,
        }
    }

    /// Adds a further server to begin with.
    #[must_use]
    pub fn with_server(mut self, server: impl Into<String>) -> Self {
        self.servers.push(server.into());
        self
    }

    /// Sets who we are.
    #[must_use]
    pub fn with_credentials(mut self, credentials: Credentials) -> Self {
        self.credentials = credentials;
        self
    }

    /// Sets the name under which the server lists the connection. Default: the transport's name.
    #[must_use]
    pub fn with_client_name(mut self, name: impl Into<String>) -> Self {
        self.client_name = Some(name.into());
        self
    }

    /// Sets how often the server is pinged; two unanswered pings end the connection. Default 5 s; below 100 ms
    /// counts as 100 ms.
    #[must_use]
    pub fn with_ping_interval(mut self, interval: Duration) -> Self {
        self.ping_interval = interval.clamp(Duration::from_millis(100), consign_core_api::time::LONGEST);
        self
    }

    /// Sets how long one request about streams or consumers may take. Default 5 s; below 100 ms counts as 100 ms.
    #[must_use]
    pub fn with_request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = timeout.clamp(Duration::from_millis(100), consign_core_api::time::LONGEST);
        self
    }

    /// Refuses to talk without TLS. Default no; an address with `tls://` asks for it too.
    #[must_use]
    pub const fn with_tls_required(mut self, required: bool) -> Self {
        self.tls_required = required;
        self
    }

    /// Trusts the certificates in this PEM file instead of the system's.
    #[must_use]
    pub fn with_root_certificates(mut self, file: impl Into<PathBuf>) -> Self {
        self.root_certificates = Some(file.into());
        self
    }
}

impl fmt::Debug for NatsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsConfig")
            .field("servers", &self.servers.iter().map(|server| redacted(server)).collect::<Vec<_>>())
            .field("credentials", &self.credentials)
            .field("client_name", &self.client_name)
            .field("ping_interval", &self.ping_interval)
            .field("request_timeout", &self.request_timeout)
            .field("tls_required", &self.tls_required)
            .field("root_certificates", &self.root_certificates)
            .finish()
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::UserPassword { user, .. } => write!(f, "UserPassword({user:?}, ..)"),
            Self::Token(_) => f.write_str("Token(..)"),
            Self::NkeySeed(_) => f.write_str("NkeySeed(..)"),
            Self::File(path) => write!(f, "File({path:?})"),
        }
    }
}

/// An address without what stands before its last `@`: user, password or token.
pub(crate) fn redacted(server: &str) -> String {
    let Some((before, host)) = server.rsplit_once('@') else { return server.to_owned() };
    match before.split_once("://") {
        Some((scheme, _)) => format!("{scheme}://..@{host}"),
        None => format!("..@{host}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_secret_wherever_it_was_put() {
        let secrets = [
            Credentials::UserPassword { user: "bob".into(), password: "hunter2".into() },
            Credentials::Token("hunter2".into()),
            Credentials::NkeySeed("hunter2".into()),
        ];
        for credentials in secrets {
            let config = NatsConfig::new("nats://bob:hunter2@host:4222")
                .with_server("hunter2@other")
                .with_server("tls://hunter2@p@host")
                .with_credentials(credentials);
            let text = format!("{config:?} {config:#?}");
            assert!(!text.contains("hunter2"), "{text}");
            assert!(text.contains("host:4222"), "{text}");
        }
    }

    #[test]
    fn odd_durations_are_clamped() {
        let config =
            NatsConfig::new("h").with_ping_interval(Duration::ZERO).with_request_timeout(Duration::MAX);
        assert!(config.ping_interval > Duration::ZERO);
        assert!(config.request_timeout < Duration::MAX);
    }
}
