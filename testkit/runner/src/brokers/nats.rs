//! A NATS server with JetStream.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tempfile::TempDir;

use super::launch::{self, Unready};
use super::watch::Watch;
use super::{port, ready};
use crate::workspace::Workspace;
use crate::{Error, Result, tools};

pub use super::ready::Greeting;

/// The variable that names a running server.
pub const URL_VARIABLE: &str = "CONSIGN_NATS_URL";

/// How long one question to a server may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often another port is tried when the server ends at once.
const PORTS_TRIED: usize = 5;

/// A server to use, and whether it can be controlled.
#[derive(Debug)]
#[non_exhaustive]
pub enum Provided {
    /// Someone else's: it can be used, not killed or frozen.
    External(String),
    /// Our own.
    Started(Nats),
}

impl Provided {
    /// Returns the URL.
    #[must_use]
    pub fn url(&self) -> String {
        match self {
            Self::External(url) => url.clone(),
            Self::Started(server) => server.url(),
        }
    }

    /// Returns the controls of our own server.
    pub fn started(&mut self) -> Option<&mut Nats> {
        match self {
            Self::External(_) => None,
            Self::Started(server) => Some(server),
        }
    }
}

/// Provides a server: the one that `CONSIGN_NATS_URL` names, if it answers and has JetStream, else a native one.
///
/// # Errors
/// If the named server does not answer or has no JetStream (another one is not tried), or none can be started.
pub fn provide() -> Result<Provided> {
    match external() {
        Some(url) => {
            greeting(&url)?;
            Ok(Provided::External(url))
        }
        None => Nats::start().map(Provided::Started),
    }
}

/// Returns the value of `CONSIGN_NATS_URL`, if it is set and not empty.
pub(super) fn external() -> Option<String> {
    env::var(URL_VARIABLE).ok().filter(|url| !url.is_empty())
}

/// Asks a server by its URL for its greeting, and refuses one without JetStream.
pub(super) fn greeting(url: &str) -> Result<Greeting> {
    let greeting = ready::greeting(&address(url), PATIENCE)
        .map_err(|e| Error::Broker(format!("no NATS server answers at {}: {e}", address(url))))?;
    if greeting.jetstream {
        Ok(greeting)
    } else {
        Err(Error::Broker(format!("the NATS server at {} has no JetStream", address(url))))
    }
}

/// Returns host and port of the first server in a URL, without scheme and credentials.
fn address(url: &str) -> String {
    let first = url.split(',').next().unwrap_or_default().trim();
    let rest = first.split_once("://").map_or(first, |(_, rest)| rest);
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host).trim_end_matches('/');
    let has_port = host.rsplit_once(':').is_some_and(|(before, port)| {
        !port.contains(']') && (!before.contains(':') || before.ends_with(']'))
    });
    if has_port { host.to_owned() } else { format!("{host}:4222") }
}

/// A server of our own: a process on a loopback port, with JetStream's data in a temporary folder.
///
/// Dropping it kills the process and removes the data. Starting, restarting and stopping block for as long as that
/// takes, at most some 20 seconds.
#[derive(Debug)]
pub struct Nats {
    binary: PathBuf,
    port: u16,
    data: TempDir,
    watch: Watch,
    process: Option<Child>,
}

impl Nats {
    /// Starts a server and waits until JetStream answers. The first start on a machine builds the server.
    ///
    /// # Errors
    /// If it cannot be built, does not start, or is not ready in time; the text holds the end of its log.
    pub fn start() -> Result<Self> {
        Self::start_from(&tools::nats_server(&Workspace::load()?.tools())?)
    }

    /// Starts a server from an executable.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_from(binary: &Path) -> Result<Self> {
        let mut tried = 1;
        loop {
            let data = launch::new_data()?;
            let watch = Watch::over(data.path())?;
            let mut server =
                Self { binary: binary.to_owned(), port: port::free()?, data, watch, process: None };
            match server.launch() {
                Ok(()) => return Ok(server),
                // Most likely someone took the port in between.
                Err(Unready::Ended(_)) if tried < PORTS_TRIED => tried += 1,
                Err(Unready::Ended(error) | Unready::Other(error)) => return Err(error),
            }
        }
    }

    /// Returns the URL.
    #[must_use]
    pub fn url(&self) -> String {
        launch::url(self.port)
    }

    /// Returns the port, which stays the same over restarts.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns the folder of the data and of `server.log`.
    #[must_use]
    pub fn data(&self) -> &Path {
        self.data.path()
    }

    /// Tells whether the process runs; a frozen one does.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn is_running(&mut self) -> Result<bool> {
        let Some(server) = &mut self.process else { return Ok(false) };
        let ended = server.try_wait().map_err(Error::io("asking for the server's state"))?.is_some();
        if ended {
            self.kill9()?;
        }
        Ok(!ended)
    }

    /// Kills the process as `kill -9` does, and returns when it is gone. The data stays. Harmless if it does not run.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn kill9(&mut self) -> Result<()> {
        let Some(mut server) = self.process.take() else { return Ok(()) };
        let forgotten = self.watch.forget_server();
        // Answers Ok for a process that has ended but was not reaped.
        server.kill().map_err(Error::io("killing the server"))?;
        server.wait().map_err(Error::io("waiting for the killed server"))?;
        forgotten
    }

    /// Starts the process again on the same port and data, and waits until JetStream answers. A running one is killed
    /// first.
    ///
    /// # Errors
    /// As [`start`](Self::start); the server is then not running, and may be restarted again.
    pub fn restart(&mut self) -> Result<()> {
        self.kill9()?;
        self.launch().map_err(|(Unready::Ended(error) | Unready::Other(error))| error)
    }

    /// Stops the process where it is: it keeps its connections and answers nothing, until [`thaw`](Self::thaw). On
    /// return every thread of it stands.
    ///
    /// # Errors
    /// If it does not run.
    pub fn freeze(&mut self) -> Result<()> {
        let pid = self.signal(Signal::STOP)?;
        // Only looks: whoever reaps the process must still find it.
        let look = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(pid), look).map_err(|e| Error::io("waiting for the server to stand")(e.into()))?;
        if self.is_running()? { Ok(()) } else { Err(not_running()) }
    }

    /// Lets a frozen process go on.
    ///
    /// # Errors
    /// If it does not run.
    pub fn thaw(&mut self) -> Result<()> {
        self.signal(Signal::CONT).map(drop)
    }

    fn signal(&mut self, signal: Signal) -> Result<Pid> {
        // Not reaped before the signal is sent, so its id cannot mean another process.
        let server = self.process.as_ref().ok_or_else(not_running)?;
        let pid = Pid::from_child(server);
        kill_process(pid, signal).map_err(|e| Error::io("signalling the server")(e.into()))?;
        Ok(pid)
    }

    fn launch(&mut self) -> std::result::Result<(), Unready> {
        let data = self.data.path();
        let watch = |server: &Child| self.watch.server(server);
        let (server, ()) = launch::start(&self.binary, self.port, data, watch).map_err(Unready::Other)?;
        let ready = launch::await_ready(self.process.insert(server), self.port, data);
        if ready.is_err() {
            // The first error is the one to tell.
            let _ = self.kill9();
        }
        ready
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        // The data goes with its folder, after this.
        let _ = self.kill9();
        self.watch.dismiss();
    }
}

fn not_running() -> Error {
    Error::Broker("the NATS server does not run".into())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn an_address_is_found_in_every_kind_of_url() {
        for (url, expected) in [
            ("nats://127.0.0.1:4333", "127.0.0.1:4333"),
            ("tls://user:p@ss@host/", "host:4222"),
            ("host", "host:4222"),
            ("nats://[::1]", "[::1]:4222"),
            ("nats://[::1]:5", "[::1]:5"),
            ("nats://a:1,nats://b:2", "a:1"),
        ] {
            assert_eq!(address(url), expected, "{url}");
        }
    }

    /// Asks the server and reads lines until one begins as expected.
    fn ask(server: &Nats, request: &str, expected: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port()))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(format!("CONNECT {{\"verbose\":false}}\r\nSUB reply 1\r\n{request}").as_bytes())?;
        let mut lines = BufReader::new(stream).lines();
        loop {
            let line = lines.next().ok_or(std::io::ErrorKind::UnexpectedEof)??;
            if line.starts_with(expected) {
                return lines.next().ok_or(std::io::ErrorKind::UnexpectedEof)?;
            }
        }
    }

    fn request(subject: &str, payload: &str) -> String {
        format!("PUB {subject} reply {}\r\n{payload}\r\n", payload.len())
    }

    #[test]
    fn a_stored_message_survives_kill9_and_restart_on_the_same_port() {
        let mut server = Nats::start().unwrap();
        let url = server.url();
        let stream = r#"{"name":"S","subjects":["s"],"storage":"file"}"#;
        ask(&server, &request("$JS.API.STREAM.CREATE.S", stream), "MSG reply").unwrap();
        assert!(ask(&server, &request("s", "x"), "MSG reply").unwrap().contains("\"seq\":1"));
        server.kill9().unwrap();
        assert!(!server.is_running().unwrap());
        assert!(ask(&server, "PING\r\n", "INFO").is_err());
        assert!(server.freeze().is_err());
        server.restart().unwrap();
        assert_eq!(server.url(), url);
        let info = ask(&server, &request("$JS.API.STREAM.INFO.S", ""), "MSG reply").unwrap();
        assert!(info.contains("\"messages\":1"), "{info}");
    }

    #[test]
    fn a_frozen_server_accepts_and_does_not_answer_until_it_is_thawed() {
        let mut server = Nats::start().unwrap();
        server.freeze().unwrap();
        let address = format!("127.0.0.1:{}", server.port());
        let error = ready::greeting(&address, Duration::from_millis(200)).unwrap_err();
        assert!(
            matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut),
            "{error}"
        );
        assert!(server.is_running().unwrap());
        server.thaw().unwrap();
        ready::jetstream(&address, PATIENCE).unwrap();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn every_thread_stands_when_freeze_returns() {
        let mut server = Nats::start().unwrap();
        let tasks = format!("/proc/{}/task", server.process.as_ref().unwrap().id());
        for _ in 0..100 {
            server.freeze().unwrap();
            for task in std::fs::read_dir(&tasks).unwrap() {
                let stat = std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap();
                let state = stat.rsplit_once(')').unwrap().1.trim_start().chars().next();
                assert_eq!(state, Some('T'), "{stat}");
            }
            server.thaw().unwrap();
        }
    }

    #[test]
    fn another_server_on_the_same_port_is_not_taken_for_ours() {
        let other = Nats::start().unwrap();
        let data = launch::new_data().unwrap();
        let mut ours = std::process::Command::new("sleep").arg("0.2").spawn().unwrap();
        let ready = launch::await_ready(&mut ours, other.port(), data.path());
        assert!(matches!(ready, Err(Unready::Ended(_))));
    }

    #[test]
    fn after_a_panic_the_server_and_its_data_are_gone() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let panicked = std::thread::spawn(move || {
            let mut server = Nats::start().unwrap();
            server.freeze().unwrap();
            sender.send((server.port(), server.data().to_owned())).unwrap();
            panic!("on purpose");
        })
        .join();
        assert!(panicked.is_err());
        let (port, data) = receiver.recv().unwrap();
        assert!(!data.exists());
        assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    }

    #[test]
    fn an_executable_that_ends_at_once_is_an_error_and_leaves_no_data() {
        let error = Nats::start_from(Path::new("/bin/false")).unwrap_err().to_string();
        assert!(error.contains("ended before it was ready"), "{error}");
        assert!(Nats::start_from(Path::new("/no/such/server")).is_err());
    }
}
