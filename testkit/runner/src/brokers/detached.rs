//! A server that outlives the command that started it: `brokers up`, `status` and `down`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use super::launch::{self, DATA_PREFIX, Unready};
use super::{nats, port};
use crate::workspace::Workspace;
use crate::{Error, Result, tools};

/// How long a server may take to end by itself before it is killed.
const END_WITHIN: Duration = Duration::from_secs(10);

/// How a server stands.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// `CONSIGN_NATS_URL` names it, and it answers with this version.
    External {
        /// Its URL.
        url: String,
        /// Its version.
        version: String,
    },
    /// `up` started it, and it answers with this version.
    Up {
        /// Its URL.
        url: String,
        /// Its version.
        version: String,
    },
    /// `up` started it, and it is gone or does not answer.
    Broken {
        /// What is wrong.
        why: String,
    },
    /// There is none.
    Down,
}

/// What `up` leaves behind for `status` and `down`.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    pid: i32,
    port: u16,
    data: PathBuf,
}

impl Record {
    fn url(&self) -> String {
        launch::url(self.port)
    }

    /// Tells whether the process is still the one that was started: the system may have given its id to another one.
    fn is_alive(&self) -> bool {
        command_line(self.pid).is_some_and(|line| line.contains(&*self.data.to_string_lossy()))
    }

    fn pid(&self) -> Result<Pid> {
        // Anything below would mean a group of processes, or all of them.
        let pid = if self.pid > 1 { Pid::from_raw(self.pid) } else { None };
        pid.ok_or_else(|| Error::Broker(format!("{} is no process of ours", self.pid)))
    }
}

/// Returns the arguments of a running process; `None` if it is gone, or has ended and only waits to be reaped.
fn command_line(pid: i32) -> Option<String> {
    if Path::new("/proc/self/cmdline").exists() {
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        return Some(String::from_utf8_lossy(&line).into_owned());
    }
    let output = Command::new("ps").args(["-o", "args=", "-p", &pid.to_string()]).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Where the record is.
struct Place {
    folder: PathBuf,
}

impl Place {
    fn of(workspace: &Workspace) -> Self {
        Self { folder: workspace.target().join("testkit-brokers") }
    }

    /// Keeps two commands from starting or stopping at once.
    fn lock(&self) -> Result<fs::File> {
        fs::create_dir_all(&self.folder).map_err(Error::io(format!("creating {}", self.folder.display())))?;
        tools::lock(&self.folder.join("nats.lock"))
    }

    fn file(&self) -> PathBuf {
        self.folder.join("nats.json")
    }

    fn read(&self) -> Result<Option<Record>> {
        let failed = |why: &dyn std::fmt::Display| {
            Error::Broker(format!("{} cannot be read: {why}", self.file().display()))
        };
        match fs::read(self.file()) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|e| failed(&e)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(failed(&e)),
        }
    }

    fn write(&self, record: &Record) -> Result<()> {
        let text = serde_json::to_vec(record).map_err(|e| Error::Broker(e.to_string()))?;
        fs::write(self.file(), text).map_err(Error::io(format!("writing {}", self.file().display())))
    }

    fn start(&self, binary: &Path) -> Result<Record> {
        let data = launch::new_data()?;
        let port = port::free()?;
        // Written before the server begins, so that `down` finds it even if this command is interrupted.
        let (mut server, record) = launch::start(binary, port, data.path(), |server| {
            let pid = i32::try_from(server.id()).map_err(|e| Error::Broker(e.to_string()))?;
            let record = Record { pid, port, data: data.path().to_owned() };
            self.write(&record).map(|()| record)
        })?;
        if let Err(Unready::Ended(error) | Unready::Other(error)) =
            launch::await_ready(&mut server, port, data.path())
        {
            let _ = server.kill();
            let _ = server.wait();
            let _ = fs::remove_file(self.file());
            return Err(error);
        }
        // Kept from now on: `down` removes it.
        let _ = data.keep();
        Ok(record)
    }

    fn stop(&self, record: &Record) -> Result<()> {
        if record.is_alive() {
            let pid = record.pid()?;
            let signal =
                |signal| kill_process(pid, signal).map_err(|e| Error::io("ending the server")(e.into()));
            // A frozen process must run to end.
            signal(Signal::TERM)?;
            signal(Signal::CONT)?;
            if !ended(record) {
                signal(Signal::KILL)?;
                if !ended(record) {
                    return Err(Error::Broker(format!(
                        "the NATS server (process {}) does not end",
                        record.pid
                    )));
                }
            }
        }
        remove_data(&record.data)?;
        fs::remove_file(self.file()).map_err(Error::io(format!("removing {}", self.file().display())))
    }
}

fn ended(record: &Record) -> bool {
    let until = Instant::now() + END_WITHIN;
    while record.is_alive() {
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

/// Removes a data folder; only one that bears our name, whatever the record says.
fn remove_data(data: &Path) -> Result<()> {
    if !data.file_name().is_some_and(|name| name.to_string_lossy().starts_with(DATA_PREFIX)) {
        return Err(Error::Broker(format!("{} is no data folder of ours", data.display())));
    }
    match fs::remove_dir_all(data) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io(format!("removing {}", data.display()))(e))
        }
        _ => Ok(()),
    }
}

/// Makes sure that a server runs, and returns how it stands. One that runs already is left as it is.
///
/// # Errors
/// If the external server does not answer, or none can be started.
pub fn up(workspace: &Workspace) -> Result<Status> {
    match status(workspace)? {
        ready @ (Status::External { .. } | Status::Up { .. }) => return Ok(ready),
        Status::Broken { .. } => down(workspace)?,
        Status::Down => false,
    };
    let binary = tools::nats_server(&workspace.tools())?;
    let place = Place::of(workspace);
    let lock = place.lock()?;
    if place.read()?.is_none() {
        place.start(&binary)?;
    }
    drop(lock);
    status(workspace)
}

/// Stops what [`up`] started and removes its data; returns whether there was anything to stop. An external server is
/// left alone.
///
/// # Errors
/// If it cannot be stopped.
pub fn down(workspace: &Workspace) -> Result<bool> {
    let place = Place::of(workspace);
    let _lock = place.lock()?;
    match place.read()? {
        Some(record) => place.stop(&record).map(|()| true),
        None => Ok(false),
    }
}

/// Tells how the server stands.
///
/// # Errors
/// If the external server does not answer or has no JetStream, or the record cannot be read.
pub fn status(workspace: &Workspace) -> Result<Status> {
    if let Some(url) = nats::external() {
        let version = nats::greeting(&url)?.version;
        return Ok(Status::External { url, version });
    }
    let Some(record) = Place::of(workspace).read()? else { return Ok(Status::Down) };
    if !record.is_alive() {
        return Ok(Status::Broken { why: format!("its process {} is gone", record.pid) });
    }
    Ok(match nats::greeting(&record.url()) {
        Ok(greeting) => Status::Up { url: record.url(), version: greeting.version },
        Err(error) => Status::Broken { why: error.to_string() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, Place) {
        let folder = tempfile::tempdir().unwrap();
        let place = Place { folder: folder.path().to_owned() };
        (folder, place)
    }

    #[test]
    fn a_server_outlives_its_guard_and_is_stopped_by_its_record_alone() {
        let binary = tools::nats_server(&Workspace::load().unwrap().tools()).unwrap();
        let (_folder, place) = place();
        place.start(&binary).unwrap();
        let record = place.read().unwrap().unwrap();
        assert!(record.is_alive());
        assert!(nats::greeting(&record.url()).unwrap().jetstream);
        place.stop(&record).unwrap();
        assert!(!record.is_alive());
        assert!(!record.data.exists());
        assert!(place.read().unwrap().is_none());
    }

    #[test]
    fn a_process_that_only_bears_the_id_is_not_touched() {
        let (_folder, place) = place();
        let data = launch::new_data().unwrap();
        let mut stranger = Command::new("sleep").arg("30").spawn().unwrap();
        let pid = i32::try_from(stranger.id()).unwrap();
        let record = Record { pid, port: 1, data: data.path().to_owned() };
        place.write(&record).unwrap();
        assert!(!record.is_alive());
        place.stop(&record).unwrap();
        assert!(stranger.try_wait().unwrap().is_none());
        assert!(!data.path().exists());
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }

    #[test]
    fn a_folder_that_is_not_ours_is_not_removed() {
        let stranger = tempfile::Builder::new().prefix("precious-").tempdir().unwrap();
        assert!(remove_data(stranger.path()).is_err());
        assert!(stranger.path().exists());
        remove_data(Path::new("/no/such/consign-nats-x")).unwrap();
    }

    #[test]
    fn a_broken_record_is_an_error_and_none_is_none() {
        let (_folder, place) = place();
        assert!(place.read().unwrap().is_none());
        fs::write(place.file(), "{").unwrap();
        assert!(place.read().is_err());
        assert!(Record { pid: -1, port: 1, data: PathBuf::new() }.pid().is_err());
    }
}
