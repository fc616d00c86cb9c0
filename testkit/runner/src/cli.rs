//! The commands and their options.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::adapters::Adapter;
use crate::brokers::{self, Status};
use crate::workspace::Workspace;
use crate::{Error, Result, audit, checks, codes, contract, demo, instructions, laws};

/// The checks of Consign, and the brokers that they need.
#[derive(Debug, Parser)]
#[command(name = "cargo testkit", bin_name = "cargo testkit")]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs everything that CI does, starting and stopping its own brokers.
    Test {
        /// Leaves out the slow steps, and says which.
        #[arg(long)]
        fast: bool,
    },
    /// Checks dependencies, file sizes, the rooms of the adapters, and where `unsafe` stands.
    Laws,
    /// Compares the tables of error codes, the sources and docs/error-codes.md.
    Codes(Codes),
    /// Starts, stops and shows the brokers for tests.
    Brokers(Brokers),
    /// Runs the contract suite on each of these adapters, in each of its configurations.
    Contract(Contract),
    /// Runs the contract suite on deliberately wrong transports; each has to be caught.
    Mutants,
    /// Inflicts faults while messages go out and in, then reads the broker back and lists every lie.
    Audit(Audit),
    /// Runs an example as a story: `orders` kills a JetStream server in the middle of it.
    Demo {
        /// Which one.
        #[arg(value_enum)]
        name: Demo,
    },
    /// Counts instructions and allocations per message with valgrind.
    Instructions(Instructions),
}

#[derive(Debug, Args)]
struct Contract {
    /// The adapters, separated by commas. One whose broker cannot be had fails the run.
    #[arg(long, value_delimiter = ',', required = true)]
    require: Vec<Adapter>,
    /// Only cases whose name contains this.
    #[arg(long)]
    only: Option<String>,
    /// Where the evidence goes: a JSON object a line.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct Audit {
    /// The adapter whose broker is read back.
    #[arg(long, required_unless_present = "check")]
    broker: Option<Adapter>,
    /// Where randomness starts; by default another number each time, which is printed.
    #[arg(long)]
    seed: Option<u64>,
    /// How long faults are inflicted, shared by the kinds.
    #[arg(long, default_value = "60s", value_parser = humantime::parse_duration)]
    budget: std::time::Duration,
    /// Which kinds of faults, separated by commas; by default all that the broker knows.
    #[arg(long, value_delimiter = ',', value_enum)]
    fault: Vec<audit::Fault>,
    /// Where the histories go; by default `audit` in the target folder.
    #[arg(long, value_name = "FOLDER")]
    histories: Option<PathBuf>,
    /// Checks a history again instead of running.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["broker", "seed", "fault", "histories"])]
    check: Option<PathBuf>,
}

impl Audit {
    fn run(self, workspace: &Workspace) -> Result<()> {
        if let Some(path) = &self.check {
            return audit::recheck(path);
        }
        let Some(broker) = self.broker else {
            return Err(Error::Command("--broker is missing".into()));
        };
        // Random by its hasher's keys; any number will do.
        let random = || std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0) % 1_000_000;
        let mut options = audit::Options::new(broker, self.seed.unwrap_or_else(random), self.budget);
        (options.faults, options.histories) = (self.fault, self.histories);
        audit::run(workspace, &options)
    }
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Demo {
    /// Orders to JetStream and back, the server killed in the middle.
    Orders,
}

#[derive(Debug, Args)]
struct Instructions {
    /// Writes the figures to docs/performance.md instead of comparing with it.
    #[arg(long)]
    write: bool,
}

#[derive(Debug, Args)]
struct Codes {
    /// Compares, and fails on a difference. This is the default.
    #[arg(long, conflicts_with = "write")]
    check: bool,
    /// Writes the page anew.
    #[arg(long)]
    write: bool,
}

#[derive(Debug, Args)]
struct Brokers {
    #[command(subcommand)]
    action: Action,
    /// Which broker. Only nats can be started so far.
    #[arg(long, global = true, default_value = "nats")]
    broker: Adapter,
}

#[derive(Debug, Clone, Copy, Subcommand)]
enum Action {
    /// Makes sure that the broker runs, and prints its URL.
    Up,
    /// Stops what `up` started, and removes its data.
    Down,
    /// Tells how the broker stands; fails unless it can be used.
    Status,
}

impl Cli {
    /// Runs the command and prints its results. Blocks until it is done.
    ///
    /// # Errors
    /// If the command fails, or what it checks is not as it should be.
    pub fn run(self) -> Result<()> {
        let workspace = Workspace::load()?;
        match self.command {
            Command::Test { fast } => checks::test(&workspace, fast),
            Command::Laws => laws::check(&workspace),
            Command::Codes(Codes { write: true, .. }) => codes::write(&workspace),
            Command::Codes(Codes { write: false, .. }) => codes::check(&workspace),
            Command::Brokers(brokers) => brokers.run(&workspace),
            Command::Contract(Contract { require, only, report }) => {
                contract::run(&require, only.as_deref(), report.as_deref())
            }
            Command::Mutants => contract::mutants(),
            Command::Audit(audit) => audit.run(&workspace),
            Command::Demo { name: Demo::Orders } => demo::orders(&workspace),
            Command::Instructions(Instructions { write }) => instructions::run(&workspace, write),
        }
    }
}

impl Brokers {
    fn run(&self, workspace: &Workspace) -> Result<()> {
        self.broker.require()?;
        if self.broker != Adapter::Nats {
            return Err(Error::Broker(format!("{} needs no broker to be started", self.broker)));
        }
        match self.action {
            Action::Up => tell(&brokers::up(workspace)?),
            Action::Status => tell(&brokers::status(workspace)?),
            Action::Down => {
                println!("nats: {}", if brokers::down(workspace)? { "stopped" } else { "nothing to stop" });
                Ok(())
            }
        }
    }
}

fn tell(status: &Status) -> Result<()> {
    match status {
        Status::External { url, version } => {
            println!("nats: external, {version}\nCONSIGN_NATS_URL={}", without_credentials(url));
        }
        Status::Up { url, version } => println!("nats: up, {version}\nCONSIGN_NATS_URL={url}"),
        Status::Broken { why } => {
            return Err(Error::Broker(format!("nats: {why}; run `cargo testkit brokers up`")));
        }
        Status::Down => return Err(Error::Broker("nats: down".into())),
    }
    Ok(())
}

/// Shows a URL without what stands before its `@`.
fn without_credentials(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://***@{host}"),
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_are_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn check_and_write_exclude_each_other_and_check_is_the_default() {
        let parse = |line: &str| Cli::try_parse_from(line.split(' '));
        assert!(parse("testkit codes --check --write").is_err());
        assert!(matches!(
            parse("testkit codes").unwrap().command,
            Command::Codes(Codes { write: false, .. })
        ));
        assert!(parse("testkit brokers up --broker pigeon").is_err());
        assert!(parse("testkit brokers up --broker nats").is_ok());
    }

    #[test]
    fn credentials_are_not_shown() {
        assert_eq!(without_credentials("nats://user:secret@host:1"), "nats://***@host:1");
        assert_eq!(without_credentials("nats://host:1"), "nats://host:1");
    }
}
