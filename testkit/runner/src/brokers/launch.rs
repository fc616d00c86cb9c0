//! Starting a NATS server's process and waiting until it serves.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::ready;
use crate::{Error, Result};

/// What the names of all data folders begin with.
pub(super) const DATA_PREFIX: &str = "consign-nats-";

/// How long a server may take until JetStream answers.
const READY_WITHIN: Duration = Duration::from_secs(20);

/// How long one question to a starting server may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Becomes the server when it is told to, and ends if whoever would tell it is gone.
const GATE: &str = r#"read -r go && exec "$@" </dev/null"#;

/// Why a server is not ready.
pub(super) enum Unready {
    /// The process ended before.
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

/// Starts a server in a process group of its own, on a port and with its data and `server.log` in a folder.
///
/// The server begins only after `arm` has made sure that somebody will end it: if this process dies before, there
/// is no server. If `arm` fails, there is none either.
pub(super) fn start<T>(
    binary: &Path,
    port: u16,
    data: &Path,
    arm: impl FnOnce(&Child) -> Result<T>,
) -> Result<(Child, T)> {
    if !binary.is_file() {
        return Err(Error::Broker(format!("{} is no executable", binary.display())));
    }
    let log = data.join("server.log");
    let failed = || Error::io(format!("opening {}", log.display()));
    let out = File::options().create(true).append(true).open(&log).map_err(failed())?;
    let err = out.try_clone().map_err(failed())?;
    let mut server = Command::new("sh")
        .args(["-c", GATE, "sh"])
        .arg(binary)
        .args(["-js", "-a", "127.0.0.1", "-p", &port.to_string(), "-n", &name(data), "-sd"])
        .arg(data)
        .stdin(Stdio::piped())
        .stdout(out)
        .stderr(err)
        .process_group(0)
        .spawn()
        .map_err(Error::io(format!("starting {}", binary.display())))?;
    let armed = arm(&server).and_then(|armed| {
        let mut gate = server.stdin.take();
        let opened = gate.as_mut().map_or(Ok(()), |gate| gate.write_all(b"go\n"));
        opened.map_err(Error::io("starting the server")).map(|()| armed)
    });
    match armed {
        Ok(armed) => Ok((server, armed)),
        Err(error) => {
            // The first error is the one to tell.
            let _ = server.kill();
            let _ = server.wait();
            Err(error)
        }
    }
}

/// Waits until JetStream of this very server answers, the process ends, or time is up.
pub(super) fn await_ready(server: &mut Child, port: u16, data: &Path) -> std::result::Result<(), Unready> {
    let until = Instant::now() + READY_WITHIN;
    let failed =
        |why: String| Error::Broker(format!("the NATS server {why}; its log ends:\n{}", log_end(data)));
    loop {
        let ended =
            server.try_wait().map_err(|e| Unready::Other(Error::io("asking for the server's state")(e)))?;
        if let Some(status) = ended {
            return Err(Unready::Ended(failed(format!("ended before it was ready ({status})"))));
        }
        match ready::jetstream(&format!("127.0.0.1:{port}"), PATIENCE) {
            Ok(greeting) if greeting.server_name == name(data) => return Ok(()),
            _ if Instant::now() >= until => {
                return Err(Unready::Other(failed(format!("was not ready within {READY_WITHIN:?}"))));
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
    use super::*;

    /// A server that only says that it began.
    fn witness(folder: &Path) -> std::path::PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.join("witness");
        fs::write(&path, "#!/bin/sh\necho began\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn log(folder: &Path) -> String {
        fs::read_to_string(folder.join("server.log")).unwrap()
    }

    #[test]
    fn a_server_begins_after_it_is_armed_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let before = |_: &Child| Ok(log(folder.path()));
        let (mut server, seen) = start(&witness(folder.path()), 1, folder.path(), before).unwrap();
        server.wait().unwrap();
        assert_eq!((&*seen, &*log(folder.path())), ("", "began\n"));
    }

    #[test]
    fn a_server_that_could_not_be_armed_never_begins() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |_: &Child| -> Result<()> { Err(Error::Broker("refused".into())) };
        assert!(start(&witness(folder.path()), 1, folder.path(), refused).is_err());
        assert_eq!(log(folder.path()), "");
    }

    #[test]
    fn the_gate_ends_without_a_server_when_its_owner_is_gone() {
        let mut gate = Command::new("sh")
            .args(["-c", GATE, "sh", "echo", "began"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        drop(gate.stdin.take());
        let output = gate.wait_with_output().unwrap();
        assert!(!output.status.success() && output.stdout.is_empty());
    }
}
