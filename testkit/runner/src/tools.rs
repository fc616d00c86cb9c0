//! Installing what a fresh machine lacks: each tool once, in a version that is written here, in a folder of its own.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Error, Result, process};

const DENY_VERSION: &str = "0.20.2";
const NATS_VERSION: &str = "2.15.3";

/// What the names of the folders begin with in which tools are built.
const SCRATCH_PREFIX: &str = "building-";

/// Returns the path of cargo-deny and builds it first if it is not there (a minute or two on two cores).
///
/// # Errors
/// If it cannot be built.
pub fn cargo_deny(tools: &Path) -> Result<PathBuf> {
    ensure(tools, "cargo-deny", DENY_VERSION, |folder| {
        let mut install = process::cargo();
        install
            .args(["install", "cargo-deny", "--locked", "--quiet", "--version", DENY_VERSION, "--root"])
            .arg(folder)
            .env("CARGO_TARGET_DIR", folder.join("build"))
            // It runs for a second or two: a third of the time to build it counts more than its speed.
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
            .env("CARGO_PROFILE_RELEASE_DEBUG", "false")
            .env_remove("RUSTFLAGS");
        process::run(&mut install)?;
        Ok(folder.join("bin/cargo-deny"))
    })
}

/// The variable that names an executable of nats-server, for this command and for the tests of the NATS adapter.
pub const NATS_SERVER_VARIABLE: &str = "CONSIGN_NATS_SERVER";

/// Returns the path of nats-server: the one that `CONSIGN_NATS_SERVER` names, else one of our own, which is built with
/// Go first if it is not there (a minute or two).
///
/// # Errors
/// If Go is missing, or the server cannot be built.
pub fn nats_server(tools: &Path) -> Result<PathBuf> {
    if let Some(named) = env::var_os(NATS_SERVER_VARIABLE).filter(|path| !path.is_empty()) {
        return Ok(named.into());
    }
    ensure(tools, "nats-server", NATS_VERSION, |folder| {
        let mut install = Command::new("go");
        install
            .arg("install")
            .arg(format!("github.com/nats-io/nats-server/v2@v{NATS_VERSION}"))
            .env("GOBIN", folder)
            // Outside any module of the caller's; a static binary.
            .env("CGO_ENABLED", "0")
            .current_dir(folder);
        process::run(&mut install).map_err(|e| {
            Error::Broker(format!(
                "{e}\n  the NATS server is built with Go: install Go, or name an executable in {NATS_SERVER_VARIABLE}"
            ))
        })?;
        Ok(folder.join("nats-server"))
    })
}

/// Returns `tools/NAME-VERSION/NAME`. If it is not there, `build` makes it in a scratch folder and answers where; it
/// is then moved into place in one step. Other processes wait meanwhile.
fn ensure(
    tools: &Path,
    name: &str,
    version: &str,
    build: impl FnOnce(&Path) -> Result<PathBuf>,
) -> Result<PathBuf> {
    let home = tools.join(format!("{name}-{version}"));
    let tool = home.join(name);
    if tool.is_file() {
        return Ok(tool);
    }
    fs::create_dir_all(&home).map_err(Error::io(format!("creating {}", home.display())))?;
    let _lock = lock(&home.join("lock"))?;
    if tool.is_file() {
        return Ok(tool);
    }
    // Left by an installation that was killed.
    for stale in fs::read_dir(&home).map_err(Error::io(format!("reading {}", home.display())))?.flatten() {
        if stale.file_name().to_string_lossy().starts_with(SCRATCH_PREFIX) {
            let _ = fs::remove_dir_all(stale.path());
        }
    }
    eprintln!("installing {name} {version} into {} (once)", home.display());
    let scratch = tempfile::Builder::new()
        .prefix(SCRATCH_PREFIX)
        .tempdir_in(&home)
        .map_err(Error::io(format!("creating a folder in {}", home.display())))?;
    let built = build(scratch.path())?;
    fs::rename(&built, &tool).map_err(Error::io(format!("moving {} into place", built.display())))?;
    Ok(tool)
}

/// Takes a lock between processes, waiting for it; it ends with the returned file, also if the process dies.
pub(crate) fn lock(path: &Path) -> Result<File> {
    let failed = || Error::io(format!("locking {}", path.display()));
    let file = File::create(path).map_err(failed())?;
    file.lock().map_err(failed())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_tool_is_built_once_even_by_several_threads_and_then_reused() {
        let tools = tempfile::tempdir().unwrap();
        let built = AtomicUsize::new(0);
        let together = Barrier::new(4);
        let build = |folder: &Path| {
            built.fetch_add(1, Ordering::SeqCst);
            // Long enough for the others to come and find no tool.
            std::thread::sleep(std::time::Duration::from_millis(50));
            fs::write(folder.join("made"), "x").unwrap();
            Ok(folder.join("made"))
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    together.wait();
                    ensure(tools.path(), "t", "1", build).unwrap()
                });
            }
        });
        assert_eq!(ensure(tools.path(), "t", "1", build).unwrap(), tools.path().join("t-1/t"));
        assert_eq!(built.into_inner(), 1);
    }

    #[test]
    fn what_a_killed_installation_left_is_removed_by_the_next() {
        let tools = tempfile::tempdir().unwrap();
        let left = tools.path().join("t-1/building-x");
        fs::create_dir_all(&left).unwrap();
        let build = |folder: &Path| {
            fs::write(folder.join("t"), "x").unwrap();
            Ok(folder.join("t"))
        };
        ensure(tools.path(), "t", "1", build).unwrap();
        assert!(!left.exists());
    }

    #[test]
    fn a_failed_build_leaves_no_tool_and_is_tried_again() {
        let tools = tempfile::tempdir().unwrap();
        let failing = |folder: &Path| {
            fs::write(folder.join("half"), "x").unwrap();
            Err(Error::Command("broken".into()))
        };
        assert!(ensure(tools.path(), "t", "1", failing).is_err());
        assert!(!tools.path().join("t-1/t").exists());
        let good = |folder: &Path| {
            fs::write(folder.join("t"), "x").unwrap();
            Ok(folder.join("t"))
        };
        ensure(tools.path(), "t", "1", good).unwrap();
    }
}
