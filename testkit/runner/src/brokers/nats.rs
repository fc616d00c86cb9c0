//! A NATS server with JetStream.

use std::env;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tempfile::TempDir;

use super::watch::Watch;
use super::{port, ready};
use crate::workspace::Workspace;
use crate::{Error, Result, tools};

pub use super::ready::Greeting;

/// The variable that names a running server.
pub const URL_VARIABLE: &str = "CONSIGN_NATS_URL";

/// How long a server may take until JetStream answers.
const READY_WITHIN: Duration = Duration::from_secs(20);

/// How long one question to a server may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often another port is tried when the server ends at once.
const PORTS_TRIED: usize = 5;

/// What the names of all data folders begin with.
pub(super) const DATA_PREFIX: &str = "consign-nats-";

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
    process: Option<Process>,
}

#[derive(Debug)]
struct Process {
    server: Child,
    watch: Watch,
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
            let mut server =
                Self { binary: binary.to_owned(), port: port::free()?, data: new_data()?, process: None };
            match server.launch() {
                Ok(()) => return Ok(server),
                // Most likely someone took the port in between.
                Err(Launch::Ended(_)) if tried < PORTS_TRIED => tried += 1,
                Err(Launch::Ended(error) | Launch::Other(error)) => return Err(error),
            }
        }
    }

    /// Returns the URL.
    #[must_use]
    pub fn url(&self) -> String {
        url(self.port)
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
        let Some(process) = &mut self.process else { return Ok(false) };
        let ended = process.server.try_wait().map_err(Error::io("asking for the server's state"))?.is_some();
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
        self.process.take().map_or(Ok(()), Process::end)
    }

    /// Starts the process again on the same port and data, and waits until JetStream answers. A running one is killed
    /// first.
    ///
    /// # Errors
    /// As [`start`](Self::start); the server is then not running, and may be restarted again.
    pub fn restart(&mut self) -> Result<()> {
        self.kill9()?;
        self.launch().map_err(|(Launch::Ended(error) | Launch::Other(error))| error)
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
        let process = self.process.as_ref().ok_or_else(not_running)?;
        let pid = Pid::from_child(&process.server);
        kill_process(pid, signal).map_err(|e| Error::io("signalling the server")(e.into()))?;
        Ok(pid)
    }

    fn launch(&mut self) -> std::result::Result<(), Launch> {
        let server = spawn(&self.binary, self.port, self.data.path()).map_err(Launch::Other)?;
        let process = match Watch::over(&server, self.data.path()) {
            Ok(watch) => self.process.insert(Process { server, watch }),
            Err(error) => {
                let mut server = server;
                let _ = server.kill();
                let _ = server.wait();
                return Err(Launch::Other(error));
            }
        };
        let ready = await_ready(&mut process.server, self.port, self.data.path());
        if ready.is_err() {
            // The first error is the one to tell.
            let _ = self.kill9();
        }
        ready.map(drop)
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        // The data goes with its folder, after the process.
        let _ = self.kill9();
    }
}

impl Process {
    fn end(mut self) -> Result<()> {
        self.watch.dismiss();
        // Answers Ok for a process that has ended but was not reaped.
        self.server.kill().map_err(Error::io("killing the server"))?;
        self.server.wait().map(drop).map_err(Error::io("waiting for the killed server"))
    }
}

fn not_running() -> Error {
    Error::Broker("the NATS server does not run".into())
}

/// Why a launch failed.
pub(super) enum Launch {
    /// The process ended before it was ready.
    Ended(Error),
    /// Anything else.
    Other(Error),
}

pub(super) fn url(port: u16) -> String {
    format!("nats://127.0.0.1:{port}")
}

pub(super) fn new_data() -> Result<TempDir> {
    tempfile::Builder::new().prefix(DATA_PREFIX).tempdir().map_err(Error::io("creating a temporary folder"))
}

/// The name by which a server is known to be the one with this data: another one may sit on the same port.
fn name(data: &Path) -> String {
    data.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Starts the process in a process group of its own.
pub(super) fn spawn(binary: &Path, port: u16, data: &Path) -> Result<Child> {
    let log = data.join("server.log");
    let failed = || Error::io(format!("opening {}", log.display()));
    let out = File::options().create(true).append(true).open(&log).map_err(failed())?;
    let err = out.try_clone().map_err(failed())?;
    Command::new(binary)
        .args(["-js", "-a", "127.0.0.1", "-p", &port.to_string(), "-n", &name(data), "-sd"])
        .arg(data)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .process_group(0)
        .spawn()
        .map_err(Error::io(format!("starting {}", binary.display())))
}

/// Waits until JetStream of this very server answers, the process ends, or time is up.
pub(super) fn await_ready(
    server: &mut Child,
    port: u16,
    data: &Path,
) -> std::result::Result<Greeting, Launch> {
    let until = Instant::now() + READY_WITHIN;
    let failed =
        |why: String| Error::Broker(format!("the NATS server {why}; its log ends:\n{}", log_end(data)));
    loop {
        let ended =
            server.try_wait().map_err(|e| Launch::Other(Error::io("asking for the server's state")(e)))?;
        if let Some(status) = ended {
            return Err(Launch::Ended(failed(format!("ended before it was ready ({status})"))));
        }
        match ready::jetstream(&format!("127.0.0.1:{port}"), PATIENCE) {
            Ok(greeting) if greeting.server_name == name(data) => return Ok(greeting),
            _ if Instant::now() >= until => {
                return Err(Launch::Other(failed(format!("was not ready within {READY_WITHIN:?}"))));
            }
            _ => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

fn log_end(data: &Path) -> String {
    let log = fs::read_to_string(data.join("server.log")).unwrap_or_default();
    let lines: Vec<_> = log.lines().collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
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
