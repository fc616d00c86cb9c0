//! Ends a server when the process that started it is gone, however that came about.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::{Error, Result};

/// Waits for one line. If the input ends instead, because its writer died, it kills the server and removes its data.
const SCRIPT: &str = r#"read -r dismissed || { kill -9 "$1"; rm -rf -- "$2"; }"#;

/// A small shell that holds the other end of a pipe.
#[derive(Debug)]
pub(super) struct Watch {
    shell: Child,
    line: ChildStdin,
}

impl Watch {
    /// Watches over a server that is a child of this process.
    pub(super) fn over(server: &Child, data: &Path) -> Result<Self> {
        let failed = || Error::io("starting the watcher of a server");
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT, "sh", &server.id().to_string()])
            .arg(data)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A signal from the terminal to our group must not end the watcher before us.
            .process_group(0)
            .spawn()
            .map_err(failed())?;
        let line = shell.stdin.take().ok_or_else(|| failed()(std::io::ErrorKind::BrokenPipe.into()))?;
        Ok(Self { shell, line })
    }

    /// Ends the watcher and leaves the server alone. To be called before the server is reaped: until then its process
    /// id cannot mean another process.
    pub(super) fn dismiss(mut self) {
        // If the watcher is gone already, there is nobody to dismiss.
        let _ = self.line.write_all(b"dismissed\n");
        drop(self.line);
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("600").spawn().unwrap()
    }

    #[test]
    fn when_the_owner_dies_the_server_is_killed_and_its_data_removed() {
        let data = tempfile::tempdir().unwrap();
        let mut server = sleeper();
        let Watch { mut shell, line } = Watch::over(&server, data.path()).unwrap();
        drop(line);
        shell.wait().unwrap();
        assert!(!server.wait().unwrap().success());
        assert!(!data.path().exists());
    }

    #[test]
    fn a_dismissed_watcher_touches_nothing() {
        let data = tempfile::tempdir().unwrap();
        let mut server = sleeper();
        Watch::over(&server, data.path()).unwrap().dismiss();
        assert!(server.try_wait().unwrap().is_none());
        assert!(data.path().exists());
        server.kill().unwrap();
        server.wait().unwrap();
    }
}
