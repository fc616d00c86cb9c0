//! Running a command, and ending it with everything it started.

use std::env;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::{Error, Result};

/// The process group of the command that runs now, so that a signal to the runner can end it. While a command is
/// started or ended the lock is held, so a signal never finds a group that is just about to exist.
static RUNNING: Mutex<Option<Pid>> = Mutex::new(None);

fn running() -> MutexGuard<'static, Option<Pid>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a cargo command, by the same cargo that runs this binary, without the variables that `cargo run` sets
/// for it: build scripts that watch them would run again for nothing.
#[must_use]
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") || text == "CARGO_BIN_NAME" {
            command.env_remove(&name);
        }
    }
    command
}

/// Renders a command as one would type it.
#[must_use]
pub fn shown(command: &Command) -> String {
    let mut text = String::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            text.push_str(&format!("{}='{}' ", name.to_string_lossy(), value.to_string_lossy()));
        }
    }
    let program = command.get_program().to_string_lossy();
    text.push_str(program.rsplit('/').next().unwrap_or(&program));
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}

/// Runs a command to its end, with this process's output and no input. Blocks until then.
///
/// It gets a process group of its own; [`end_on_signals`] ends that group with the runner.
///
/// # Errors
/// If it cannot be started, or does not answer zero.
pub fn run(command: &mut Command) -> Result<()> {
    let name = shown(command);
    command.stdin(Stdio::null());
    let status = wait(command).map_err(|e| Error::Command(format!("cannot run `{name}`: {e}")))?;
    if status.success() { Ok(()) } else { Err(Error::Command(format!("`{name}` failed: {status}"))) }
}

/// Runs a command to its end and returns its standard output; its standard error is this process's.
///
/// # Errors
/// If it cannot be started, does not answer zero, or writes something that is not UTF-8.
pub fn output(command: &mut Command) -> Result<String> {
    let name = shown(command);
    let failed = |why: &dyn std::fmt::Display| Error::Command(format!("`{name}` failed: {why}"));
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().map_err(|e| failed(&e))?;
    if !output.status.success() {
        return Err(failed(&output.status));
    }
    String::from_utf8(output.stdout).map_err(|e| failed(&e))
}

fn wait(command: &mut Command) -> io::Result<ExitStatus> {
    let mut child = {
        let mut running = running();
        let child = command.process_group(0).spawn()?;
        *running = Some(group_of(&child));
        child
    };
    let status = child.wait();
    *running() = None;
    status
}

fn group_of(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// From now on, an interrupt, a termination or a hang-up ends the running command with its children, then this
/// process with the usual status (128 plus the signal's number).
///
/// # Errors
/// If the signals cannot be watched.
pub fn end_on_signals() -> Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM])
        .map_err(Error::io("watching signals"))?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            // Held until the process is gone: no further command starts.
            let running = running();
            if let Some(group) = *running {
                let _ = kill_process_group(group, Signal::KILL);
            }
            eprintln!("ended by signal {signal}");
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_answers_zero_succeeds_and_another_one_fails_with_its_text() {
        run(&mut Command::new("true")).unwrap();
        let error = run(Command::new("sh").args(["-c", "exit 3"])).unwrap_err().to_string();
        assert!(error.contains("sh -c exit 3") && error.contains('3'), "{error}");
    }

    #[test]
    fn a_command_that_does_not_exist_fails() {
        let error = run(&mut Command::new("consign-no-such-command")).unwrap_err().to_string();
        assert!(error.starts_with("cannot run `consign-no-such-command`"), "{error}");
    }

    #[test]
    fn output_is_returned_and_a_failure_is_not_taken_for_output() {
        assert_eq!(output(Command::new("echo").arg("x")).unwrap(), "x\n");
        assert!(output(Command::new("sh").args(["-c", "echo x; exit 1"])).is_err());
    }
}
