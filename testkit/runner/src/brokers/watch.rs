//! Ends a server and removes its data when the process that owns them is gone, however that came about.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::{Error, Result};

/// Notes the process id of the server from every line, an empty one for none, until the line `done`. If the input ends
/// without it, because its writer died, it kills the server and removes the data: again and again for half a second,
/// for a dying server may still create files.
const SCRIPT: &str = r#"
server=
while read -r line; do
    [ "$line" != done ] || exit 0
    server=$line
done
[ -z "$server" ] || kill -9 "$server"
for _ in 1 2 3 4 5; do
    rm -rf -- "$1"
    sleep 0.1
done
"#;

/// A small shell that holds the other end of a pipe. Dropping it undismissed lets it do its work.
#[derive(Debug)]
pub(super) struct Watch {
    shell: Child,
    line: Option<ChildStdin>,
}

impl Watch {
    /// Watches over a folder of data, and over no server yet.
    pub(super) fn over(data: &Path) -> Result<Self> {
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT, "sh"])
            .arg(data)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A signal from the terminal to our group must not end the watcher before us.
            .process_group(0)
            .spawn()
            .map_err(Error::io("starting the watcher of a server"))?;
        let line = shell.stdin.take();
        Ok(Self { shell, line })
    }

    /// Watches over a server as well.
    pub(super) fn server(&mut self, server: &Child) -> Result<()> {
        self.say(&server.id().to_string())
    }

    /// Forgets the server. To be called before it is reaped: until then its process id cannot mean another process.
    pub(super) fn forget_server(&mut self) -> Result<()> {
        self.say("")
    }

    /// Ends the watcher, which then touches nothing. Waits for its end.
    pub(super) fn dismiss(&mut self) {
        // If the watcher is gone already, there is nobody to dismiss.
        let _ = self.say("done");
        self.line = None;
        let _ = self.shell.wait();
    }

    fn say(&mut self, text: &str) -> Result<()> {
        let line = self.line.as_mut().ok_or_else(|| Error::Broker("the watcher was dismissed".into()))?;
        line.write_all(format!("{text}\n").as_bytes()).map_err(Error::io("telling the watcher of a server"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stand-in for a server, which ends by itself if a test fails.
    fn sleeper() -> Child {
        Command::new("sleep").arg("30").spawn().unwrap()
    }

    /// What the end of this process would do, and the watcher's answer to it.
    fn owner_dies(watch: Watch) {
        let Watch { mut shell, line } = watch;
        drop(line);
        shell.wait().unwrap();
    }

    #[test]
    fn when_the_owner_dies_the_server_is_killed_and_its_data_removed() {
        let data = tempfile::tempdir().unwrap();
        std::fs::write(data.path().join("file"), "x").unwrap();
        let mut server = sleeper();
        let mut watch = Watch::over(data.path()).unwrap();
        watch.server(&server).unwrap();
        owner_dies(watch);
        assert!(!server.wait().unwrap().success());
        assert!(!data.path().exists());
    }

    #[test]
    fn a_forgotten_server_is_not_killed_and_the_data_goes_all_the_same() {
        let data = tempfile::tempdir().unwrap();
        let mut server = sleeper();
        let mut watch = Watch::over(data.path()).unwrap();
        watch.server(&server).unwrap();
        watch.forget_server().unwrap();
        owner_dies(watch);
        assert!(server.try_wait().unwrap().is_none());
        assert!(!data.path().exists());
        server.kill().unwrap();
        server.wait().unwrap();
    }

    #[test]
    fn a_dismissed_watcher_touches_nothing() {
        let data = tempfile::tempdir().unwrap();
        let mut server = sleeper();
        let mut watch = Watch::over(data.path()).unwrap();
        watch.server(&server).unwrap();
        watch.dismiss();
        assert!(server.try_wait().unwrap().is_none());
        assert!(data.path().exists());
        assert!(watch.server(&server).is_err());
        server.kill().unwrap();
        server.wait().unwrap();
    }
}
