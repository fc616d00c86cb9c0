//! One connection: two directions, each a pump of its own, so that neither waits for the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::watch;

use super::{Act, Direction, Piece, Shared, Traffic};

/// How long a closed connection goes on reading what it swallows, so that the system sends FIN and not RST.
const FAREWELL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Connection {
    to_broker: AtomicU64,
    to_client: AtomicU64,
    ended: watch::Sender<Option<Act>>,
}

impl Default for Connection {
    fn default() -> Self {
        Self { to_broker: AtomicU64::new(0), to_client: AtomicU64::new(0), ended: watch::Sender::new(None) }
    }
}

impl Connection {
    /// The first end counts.
    pub(super) fn end(&self, act: Act) {
        self.ended.send_if_modified(|ended| ended.is_none() && ended.replace(act).is_none());
    }

    pub(super) fn traffic(&self) -> Traffic {
        let read = |count: &AtomicU64| count.load(Ordering::SeqCst);
        Traffic { to_broker: read(&self.to_broker), to_client: read(&self.to_client) }
    }

    fn passed(&self, direction: Direction, bytes: usize) {
        let count = match direction {
            Direction::ToBroker => &self.to_broker,
            Direction::ToClient => &self.to_client,
        };
        count.fetch_add(bytes as u64, Ordering::SeqCst);
    }
}

/// Runs until both directions are over.
pub(super) async fn run(
    client: TcpStream,
    broker: TcpStream,
    connection: Arc<Connection>,
    shared: Arc<Shared>,
) {
    let (from_client, to_client) = client.into_split();
    let (from_broker, to_broker) = broker.into_split();
    let pump = |direction, from, to| Pump {
        direction,
        from,
        to,
        mode: Mode::Pass,
        connection: Arc::clone(&connection),
        shared: Arc::clone(&shared),
        ended: connection.ended.subscribe(),
    };
    let there = pump(Direction::ToBroker, from_client, to_broker);
    let back = pump(Direction::ToClient, from_broker, to_client);
    let (mut there, mut back) = tokio::join!(there.run(), back.run());
    if *connection.ended.borrow() == Some(Act::Reset) {
        for to in [there.to, back.to] {
            let _ = to.as_ref().set_zero_linger();
            // Dropped, it would say FIN first.
            to.forget();
        }
        return;
    }
    let _ = tokio::join!(there.to.shutdown(), back.to.shutdown());
    let farewell = async { tokio::join!(swallow(&mut there.from), swallow(&mut back.from)) };
    let _ = tokio::time::timeout(FAREWELL, farewell).await;
}

async fn swallow(from: &mut OwnedReadHalf) {
    let mut buffer = [0; 4096];
    while from.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Pass,
    Slice,
    Swallow,
}

struct Pump {
    direction: Direction,
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    mode: Mode,
    connection: Arc<Connection>,
    shared: Arc<Shared>,
    ended: watch::Receiver<Option<Act>>,
}

impl Pump {
    /// Carries bytes until the source or the connection ends, and returns the two halves.
    async fn run(mut self) -> Self {
        let mut ended = self.ended.clone();
        tokio::select! {
            // The sender is in `self.connection`, so the channel is open.
            _ = ended.wait_for(Option::is_some) => {}
            () = self.carry() => {}
        }
        self
    }

    async fn carry(&mut self) {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let Ok(read) = self.from.read(&mut buffer).await else {
                // A reset is carried on as one.
                return self.connection.end(Act::Reset);
            };
            let mut bytes = &buffer[..read];
            if read == 0 {
                let _ = self.to.shutdown().await;
                return;
            }
            while !bytes.is_empty() && self.mode != Mode::Swallow {
                let Piece { pass, then } = self.shared.piece(self.direction, bytes.len());
                let (passing, rest) = bytes.split_at(pass);
                if self.write(passing).await.is_err() {
                    return self.connection.end(Act::Reset);
                }
                bytes = rest;
                match then {
                    None => {}
                    Some(Act::Close) => return self.end(Act::Close).await,
                    Some(Act::Reset) => return self.end(Act::Reset).await,
                    Some(Act::HalfClose) => {
                        let _ = self.to.shutdown().await;
                        self.mode = Mode::Swallow;
                    }
                    Some(Act::BlackHole) => self.mode = Mode::Swallow,
                    Some(Act::Delay(wait)) => tokio::time::sleep(wait).await,
                    Some(Act::OneByteSlices) => self.mode = Mode::Slice,
                }
            }
        }
    }

    /// Ends the connection, and carries nothing more.
    async fn end(&self, act: Act) {
        self.connection.end(act);
        std::future::pending::<()>().await;
    }

    async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let most = if self.mode == Mode::Slice { 1 } else { bytes.len().max(1) };
        for slice in bytes.chunks(most) {
            self.to.write_all(slice).await?;
            self.connection.passed(self.direction, slice.len());
            if self.mode == Mode::Slice {
                // Lets the other side read it alone.
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }
}
