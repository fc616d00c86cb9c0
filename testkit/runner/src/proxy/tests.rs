//! Each act, byte-exact, between a client and an echo.

use std::io::ErrorKind;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::*;

const BOUND: Duration = Duration::from_secs(5);

/// What an echo heard, and how that ended.
#[derive(Debug, PartialEq)]
struct Heard {
    bytes: Vec<u8>,
    end: Option<ErrorKind>,
    reads: usize,
}

/// Sends back what it hears, if it is to; tells what it heard when a connection ends.
async fn echo(talks: bool) -> (SocketAddr, mpsc::UnboundedReceiver<Heard>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, heard) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let tell = tell.clone();
            tokio::spawn(async move {
                let (mut bytes, mut reads, mut buffer) = (Vec::new(), 0, [0; 1024]);
                let end = loop {
                    match stream.read(&mut buffer).await {
                        Ok(0) => break None,
                        Ok(read) => {
                            bytes.extend_from_slice(&buffer[..read]);
                            reads += 1;
                            if talks && stream.write_all(&buffer[..read]).await.is_err() {
                                break None;
                            }
                        }
                        Err(error) => break Some(error.kind()),
                    }
                };
                let _ = tell.send(Heard { bytes, end, reads });
            });
        }
    });
    (address, heard)
}

struct Line {
    proxy: Proxy,
    client: TcpStream,
    heard: mpsc::UnboundedReceiver<Heard>,
}

impl Line {
    async fn new(talks: bool) -> Self {
        let (address, heard) = echo(talks).await;
        let proxy = Proxy::start(address).await.unwrap();
        let client = TcpStream::connect(proxy.address()).await.unwrap();
        Self { proxy, client, heard }
    }

    fn arm(&self, direction: Direction, after: u64, act: Act) {
        self.proxy.arm(Rule { direction, after, act });
    }

    /// Reads until the end.
    async fn read(&mut self) -> (Vec<u8>, Option<ErrorKind>) {
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(BOUND, self.client.read_to_end(&mut bytes)).await.unwrap();
        (bytes, read.err().map(|error| error.kind()))
    }

    async fn heard(&mut self) -> Heard {
        tokio::time::timeout(BOUND, self.heard.recv()).await.unwrap().unwrap()
    }
}

const TEXT: &[u8] = b"0123456789";

#[tokio::test]
async fn without_a_rule_every_byte_passes_and_is_counted() {
    let mut line = Line::new(true).await;
    line.client.write_all(TEXT).await.unwrap();
    let mut back = [0; 10];
    line.client.read_exact(&mut back).await.unwrap();
    assert_eq!(back, TEXT);
    line.client.shutdown().await.unwrap();
    assert_eq!(line.read().await, (Vec::new(), None));
    assert_eq!(line.heard().await.bytes, TEXT);
    assert_eq!(line.proxy.traffic(), [Traffic { to_broker: 10, to_client: 10 }]);
    let other = TcpStream::connect(line.proxy.address()).await.unwrap();
    drop(other);
    assert_eq!(line.proxy.total(), Traffic { to_broker: 10, to_client: 10 });
}

#[tokio::test]
async fn a_close_lets_exactly_so_many_bytes_pass_to_the_broker() {
    for after in 0..=10 {
        let mut line = Line::new(false).await;
        line.arm(Direction::ToBroker, after, Act::Close);
        line.client.write_all(TEXT).await.unwrap();
        let expected = &TEXT[..usize::try_from(after).unwrap()];
        assert_eq!(line.read().await, (Vec::new(), None));
        let Heard { bytes, end, .. } = line.heard().await;
        assert_eq!((bytes.as_slice(), end), (expected, None), "after {after}");
        assert_eq!(line.proxy.total().to_broker, after);
        assert!(!line.proxy.disarm(), "it fired");
    }
}

#[tokio::test]
async fn a_close_lets_exactly_so_many_bytes_pass_to_the_client() {
    for after in 0..=10 {
        let mut line = Line::new(true).await;
        line.arm(Direction::ToClient, after, Act::Close);
        line.client.write_all(TEXT).await.unwrap();
        let (bytes, end) = line.read().await;
        assert_eq!((bytes.as_slice(), end), (&TEXT[..usize::try_from(after).unwrap()], None));
        assert_eq!(line.heard().await.bytes, TEXT);
    }
}

#[tokio::test]
async fn bytes_are_counted_from_the_arming_over_several_writes() {
    let mut line = Line::new(true).await;
    line.client.write_all(b"before").await.unwrap();
    line.client.read_exact(&mut [0; 6]).await.unwrap();
    line.arm(Direction::ToBroker, 3, Act::Close);
    for byte in TEXT.chunks(1) {
        // The last ones may find it closed.
        let _ = line.client.write_all(byte).await;
    }
    assert_eq!(line.heard().await.bytes, b"before012");
}

#[tokio::test]
async fn a_reset_is_a_reset_at_both_ends_and_lets_no_more_pass() {
    let mut line = Line::new(false).await;
    line.arm(Direction::ToBroker, 4, Act::Reset);
    line.client.write_all(TEXT).await.unwrap();
    let (bytes, end) = line.read().await;
    assert_eq!((bytes.len(), end), (0, Some(ErrorKind::ConnectionReset)));
    let Heard { bytes, end, .. } = line.heard().await;
    assert!(TEXT[..4].starts_with(&bytes), "{bytes:?}");
    assert_eq!(end, Some(ErrorKind::ConnectionReset));
    assert_eq!(line.proxy.total().to_broker, 4);
}

#[tokio::test]
async fn a_black_hole_swallows_one_direction_and_keeps_the_connection() {
    let mut line = Line::new(true).await;
    line.arm(Direction::ToClient, 4, Act::BlackHole);
    line.client.write_all(TEXT).await.unwrap();
    let mut back = [0; 4];
    line.client.read_exact(&mut back).await.unwrap();
    assert_eq!(&back, b"0123");
    line.client.write_all(TEXT).await.unwrap();
    // The end passes; what was swallowed does not come before it.
    line.client.shutdown().await.unwrap();
    assert_eq!(line.heard().await.bytes, [TEXT, TEXT].concat());
    assert_eq!(line.read().await, (Vec::new(), None));
    assert_eq!(line.proxy.total(), Traffic { to_broker: 20, to_client: 4 });
}

#[tokio::test]
async fn a_half_close_ends_one_direction_and_the_other_goes_on() {
    let mut line = Line::new(true).await;
    line.arm(Direction::ToBroker, 7, Act::HalfClose);
    line.client.write_all(TEXT).await.unwrap();
    // The echo of what passed still comes back, after the broker was told that nothing more comes.
    let (bytes, end) = line.read().await;
    assert_eq!((bytes.as_slice(), end), (&TEXT[..7], None));
    assert_eq!(line.heard().await, Heard { bytes: TEXT[..7].to_vec(), end: None, reads: 1 });
}

#[tokio::test]
async fn a_delay_holds_the_rest_back_and_loses_nothing() {
    let mut line = Line::new(true).await;
    let wait = Duration::from_millis(100);
    line.arm(Direction::ToClient, 4, Act::Delay(wait));
    let at = std::time::Instant::now();
    line.client.write_all(TEXT).await.unwrap();
    let mut back = [0; 10];
    line.client.read_exact(&mut back).await.unwrap();
    assert!(at.elapsed() >= wait);
    assert_eq!(back, TEXT);
}

#[tokio::test]
async fn one_byte_slices_lose_nothing_and_keep_the_order() {
    let mut line = Line::new(false).await;
    line.arm(Direction::ToBroker, 2, Act::OneByteSlices);
    line.client.write_all(TEXT).await.unwrap();
    line.client.shutdown().await.unwrap();
    let heard = line.heard().await;
    assert_eq!(heard.bytes, TEXT);
    assert!(heard.reads > 1, "one read saw it all");
    assert_eq!(line.proxy.total().to_broker, 10);
}

#[tokio::test]
async fn a_shut_proxy_closes_new_connections_and_keeps_the_open_ones() {
    let mut line = Line::new(true).await;
    line.client.write_all(b"a").await.unwrap();
    line.client.read_exact(&mut [0; 1]).await.unwrap();
    line.proxy.shut(true);
    let mut refused = TcpStream::connect(line.proxy.address()).await.unwrap();
    assert_eq!(refused.read(&mut [0; 1]).await.unwrap(), 0);
    line.client.write_all(b"b").await.unwrap();
    line.client.read_exact(&mut [0; 1]).await.unwrap();
    line.proxy.shut(false);
    let mut open = TcpStream::connect(line.proxy.address()).await.unwrap();
    open.write_all(b"c").await.unwrap();
    open.read_exact(&mut [0; 1]).await.unwrap();
}

#[tokio::test]
async fn ending_all_connections_reaches_every_one() {
    let mut line = Line::new(true).await;
    line.client.write_all(b"a").await.unwrap();
    line.client.read_exact(&mut [0; 1]).await.unwrap();
    line.proxy.end_all(true);
    assert_eq!(line.read().await.1, Some(ErrorKind::ConnectionReset));
}

#[test]
fn a_rule_counts_only_its_own_direction_and_fires_once() {
    let rule = Rule { direction: Direction::ToBroker, after: 5, act: Act::Reset };
    let mut armed = Some(Armed::new(rule));
    assert_eq!(rule::piece(&mut armed, Direction::ToClient, 9), Piece { pass: 9, then: None });
    assert_eq!(rule::piece(&mut armed, Direction::ToBroker, 4), Piece { pass: 4, then: None });
    assert_eq!(rule::piece(&mut armed, Direction::ToBroker, 4), Piece { pass: 1, then: Some(Act::Reset) });
    assert_eq!(rule::piece(&mut armed, Direction::ToBroker, 4), Piece { pass: 4, then: None });
    let huge = Rule { after: u64::MAX, ..rule };
    assert_eq!(rule::piece(&mut Some(Armed::new(huge)), Direction::ToBroker, 4).then, None);
}
