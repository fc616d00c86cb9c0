//! Starts, freezes, kills and restarts a server on a free port of this machine.

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server that dies with this value.
pub(crate) struct Server {
    process: Child,
    port: u16,
    folder: tempfile::TempDir,
    arguments: Vec<String>,
}

impl Server {
    /// Starts a server. Fails the test where there is none: set `CONSIGN_NATS_SERVER` to the path of one.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let process = spawn(port, &folder, &arguments);
        let server = Self { process, port, folder, arguments };
        server.wait();
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Ends it without a chance to write anything (SIGKILL).
    pub(crate) fn kill(&mut self) {
        self.process.kill().expect("kills");
        self.process.wait().expect("ends");
    }

    /// Starts it again with the same port and data.
    pub(crate) fn restart(&mut self) {
        self.process = spawn(self.port, &self.folder, &self.arguments);
        self.wait();
    }

    /// Stops it in its tracks (SIGSTOP); connections stay open. On return every thread of it stands.
    pub(crate) fn freeze(&self) {
        self.signal("-STOP");
        let threads = format!("/proc/{}/task", self.process.id());
        let stands = |stat: String| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'));
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let threads = std::fs::read_dir(&threads).expect("the server runs");
            let stats =
                threads.map(|thread| std::fs::read_to_string(thread.expect("a thread").path().join("stat")));
            // A thread that ended meanwhile stands too.
            if stats.flatten().all(stands) {
                return;
            }
            assert!(Instant::now() < until, "the server does not stand still");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Lets it go on (SIGCONT).
    pub(crate) fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let done = Command::new("kill").arg(signal).arg(self.process.id().to_string()).status();
        assert!(done.expect("kill runs").success());
    }

    fn wait(&self) {
        let until = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < until, "the server does not come up");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A process that already ended is what is wanted.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn spawn(port: u16, folder: &tempfile::TempDir, arguments: &[String]) -> Child {
    let binary =
        std::env::var_os("CONSIGN_NATS_SERVER").map_or_else(|| PathBuf::from("nats-server"), PathBuf::from);
    let data = folder.path().join("data");
    Command::new(&binary)
        .args(["-js", "-a", "127.0.0.1", "-p", &port.to_string(), "-sd"])
        .arg(&data)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| {
            panic!("cannot start {binary:?} ({error}): set CONSIGN_NATS_SERVER to the path of a nats-server")
        })
}
