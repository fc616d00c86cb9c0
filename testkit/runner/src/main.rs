//! `cargo testkit <command>`.

use std::process::ExitCode;

use clap::Parser;
use consign_testkit_runner::Error;
use consign_testkit_runner::cli::Cli;

fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        // The count of steps is the last line of the run.
        Err(Error::Reported(_)) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
