//! `cargo testkit <command>`.

use std::process::ExitCode;

use clap::Parser;
use consign_testkit_runner::cli::Cli;

fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
