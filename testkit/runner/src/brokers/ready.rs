//! Whether a NATS server answers, asked over its plain-text protocol.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use serde::Deserialize;

/// The longest line that is read before the peer is taken for something else.
const LONGEST_LINE: u64 = 64 * 1024;

/// How many lines may come before the answer that is waited for.
const MOST_LINES: usize = 64;

/// What a server says of itself when one connects.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct Greeting {
    /// Its name.
    #[serde(default)]
    pub server_name: String,
    /// Its version.
    pub version: String,
    /// Whether JetStream is on.
    #[serde(default)]
    pub jetstream: bool,
}

/// Connects and reads the greeting, which a server sends before it asks for credentials or TLS.
pub(super) fn greeting(address: &str, patience: Duration) -> Result<Greeting> {
    Ok(connect(address, patience)?.1)
}

/// Connects and has JetStream itself answer, which it does only when it is ready to serve.
pub(super) fn jetstream(address: &str, patience: Duration) -> Result<Greeting> {
    let (mut reader, greeting) = connect(address, patience)?;
    let request =
        "CONNECT {\"verbose\":false,\"pedantic\":false}\r\nSUB reply 1\r\nPUB $JS.API.INFO reply 0\r\n\r\n";
    reader.get_mut().write_all(request.as_bytes())?;
    for _ in 0..MOST_LINES {
        let line = line(&mut reader)?;
        if line.starts_with("MSG reply 1 ") {
            return Ok(greeting);
        } else if line.starts_with("-ERR") {
            return Err(Error::other(line));
        } else if line == "PING" {
            reader.get_mut().write_all(b"PONG\r\n")?;
        }
    }
    Err(Error::new(ErrorKind::InvalidData, "JetStream does not answer"))
}

fn connect(address: &str, patience: Duration) -> Result<(BufReader<TcpStream>, Greeting)> {
    let mut last = Error::new(ErrorKind::NotFound, format!("{address} is no address"));
    for candidate in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&candidate, patience) {
            Ok(stream) => {
                stream.set_read_timeout(Some(patience))?;
                stream.set_write_timeout(Some(patience))?;
                let mut reader = BufReader::new(stream);
                let line = line(&mut reader)?;
                let json = line.strip_prefix("INFO ").ok_or_else(|| {
                    Error::new(ErrorKind::InvalidData, format!("{address} does not greet as a NATS server"))
                })?;
                return Ok((reader, serde_json::from_str(json)?));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn line(reader: &mut BufReader<TcpStream>) -> Result<String> {
    let mut line = String::new();
    let read = reader.by_ref().take(LONGEST_LINE).read_line(&mut line)?;
    if read == 0 || !line.ends_with('\n') {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    line.truncate(line.trim_end().len());
    Ok(line)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);

    /// A peer that says one thing and hangs up.
    fn greeted_by(text: &'static [u8]) -> Result<Greeting> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let peer = std::thread::spawn(move || listener.accept().unwrap().0.write_all(text));
        let answer = greeting(&address, PATIENCE);
        let _ = peer.join();
        answer
    }

    #[test]
    fn a_greeting_is_read() {
        let greeting =
            greeted_by(b"INFO {\"server_name\":\"n\",\"version\":\"2.1\",\"jetstream\":true} \r\n").unwrap();
        assert_eq!((&*greeting.server_name, &*greeting.version, greeting.jetstream), ("n", "2.1", true));
    }

    #[test]
    fn a_peer_that_is_no_nats_server_is_an_error_and_not_a_panic() {
        for text in [
            &b""[..],
            b"INFO",
            b"INFO {}\r\n",
            b"HTTP/1.1 200 OK\r\n",
            b"INFO {\"version\":1}\r\n",
            b"\xff\n",
        ] {
            assert!(greeted_by(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_closed_port_and_a_wrong_address_are_errors() {
        let port = super::super::port::free().unwrap();
        assert!(greeting(&format!("127.0.0.1:{port}"), PATIENCE).is_err());
        assert!(greeting("no address", PATIENCE).is_err());
    }
}
