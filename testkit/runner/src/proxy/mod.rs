//! A TCP proxy that breaks a connection after an exact byte.
//!
//! It listens on a loopback port and forwards to a broker. One [`Rule`] can be armed: after so many further bytes of one
//! direction, something happens to the connection that carries them. Bytes are counted per connection and direction.

mod connection;
mod rule;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use connection::Connection;
pub use rule::{Act, Direction, Rule};
use rule::{Armed, Piece};

/// A running proxy. Dropping it closes the port and every connection.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

/// How many bytes a connection carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Traffic {
    /// Bytes that the broker was sent.
    pub to_broker: u64,
    /// Bytes that the client was sent.
    pub to_client: u64,
}

#[derive(Debug)]
struct Shared {
    broker: SocketAddr,
    armed: Mutex<Option<Armed>>,
    shut: AtomicBool,
    connections: Mutex<Vec<Arc<Connection>>>,
}

impl Proxy {
    /// Listens on a free loopback port and forwards every connection to `broker`. Needs a tokio runtime with I/O.
    ///
    /// # Errors
    /// If no port can be had.
    pub async fn start(broker: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            broker,
            armed: Mutex::default(),
            shut: AtomicBool::new(false),
            connections: Mutex::default(),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, accepting })
    }

    /// Returns where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Arms a rule, counting from now. It takes the place of one that has not fired, and fires once.
    pub fn arm(&self, rule: Rule) {
        *lock(&self.shared.armed) = Some(Armed::new(rule));
    }

    /// Takes the rule back. Answers whether it had not fired.
    pub fn disarm(&self) -> bool {
        lock(&self.shared.armed).take().is_some()
    }

    /// Closes new connections as soon as they are made, or no more. Those that are open stay.
    pub fn shut(&self, shut: bool) {
        self.shared.shut.store(shut, Ordering::SeqCst);
    }

    /// Ends every open connection, by FIN or by RST. The bytes that it still held are lost.
    pub fn end_all(&self, reset: bool) {
        for connection in lock(&self.shared.connections).iter() {
            connection.end(if reset { Act::Reset } else { Act::Close });
        }
    }

    /// Returns what each connection carried, in the order in which they were made; one that was refused is none.
    #[must_use]
    pub fn traffic(&self) -> Vec<Traffic> {
        lock(&self.shared.connections).iter().map(|connection| connection.traffic()).collect()
    }

    /// Returns what all connections carried.
    #[must_use]
    pub fn total(&self) -> Traffic {
        self.traffic().iter().fold(Traffic::default(), |sum, one| Traffic {
            to_broker: sum.to_broker + one.to_broker,
            to_client: sum.to_client + one.to_client,
        })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.end_all(false);
    }
}

impl Shared {
    /// Decides what becomes of `available` bytes.
    fn piece(&self, direction: Direction, available: usize) -> Piece {
        rule::piece(&mut lock(&self.armed), direction, available)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((client, _)) = listener.accept().await {
        if shared.shut.load(Ordering::SeqCst) {
            continue;
        }
        // A broker that is down closes the client's connection at once.
        let Ok(broker) = TcpStream::connect(shared.broker).await else { continue };
        // Small writes are what this is about.
        if client.set_nodelay(true).and(broker.set_nodelay(true)).is_err() {
            continue;
        }
        let connection = Arc::new(Connection::default());
        lock(&shared.connections).push(Arc::clone(&connection));
        tokio::spawn(connection::run(client, broker, connection, Arc::clone(&shared)));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
