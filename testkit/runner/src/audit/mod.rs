//! `cargo testkit audit`: faults while messages go out and in, and then what was said held against what is there.
//!
//! Every fault is a run of its own, with a broker, a history and a verdict of its own.

mod dropping;
mod fault;
mod lag;
mod scene;
#[cfg(feature = "nats")]
mod settling;
mod storm;
#[cfg(feature = "nats")]
mod sweep;
mod target;

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::time::Duration;

use consign_testkit::audit::{Findings, History, Recorder, Table, check};

pub use fault::Fault;
use scene::Scene;

use crate::adapters::Adapter;
use crate::workspace::Workspace;
use crate::{Error, Result};

/// How many lies of a run are printed; all are in its history.
const SHOWN: usize = 10;

/// What to run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The adapter.
    pub broker: Adapter,
    /// Where randomness starts.
    pub seed: u64,
    /// How long all runs together may inflict faults. A sweep that is shorter ends earlier; one that is longer is cut, which
    /// its row says.
    pub budget: Duration,
    /// Which faults; empty for all that the broker knows.
    pub faults: Vec<Fault>,
    /// Where the histories go; `audit` in the target folder if not given.
    pub histories: Option<PathBuf>,
}

impl Options {
    /// Makes options for every fault of a broker.
    #[must_use]
    pub fn new(broker: Adapter, seed: u64, budget: Duration) -> Self {
        Self { broker, seed, budget, faults: Vec::new(), histories: None }
    }
}

/// Runs the audit and prints the table. Blocks until it is done.
///
/// # Errors
/// If the adapter is not built in, a broker cannot be had, a fault does not fit the broker, or any run has a lie.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    options.broker.require()?;
    let faults = fault::chosen(options.broker, &options.faults)?;
    let folder = options.histories.clone().unwrap_or_else(|| workspace.target().join("audit"));
    std::fs::create_dir_all(&folder).map_err(Error::io(format!("making {}", folder.display())))?;
    println!("audit: {}, seed {}, budget {:?}", options.broker, options.seed, options.budget);
    let share = options.budget / u32::try_from(faults.len()).unwrap_or(u32::MAX).max(1);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Error::io("starting the runtime"))?;
    let (mut table, mut failed) = (Table::default(), 0);
    for fault in &faults {
        println!("  {fault} ...");
        let ran = runtime.block_on(one(options, *fault, share));
        let path = folder.join(format!("{}-{fault}-{}.jsonl", options.broker, options.seed));
        let trouble = match ran {
            Ok((history, notes)) => {
                write(&history, &path)?;
                notes.iter().for_each(|note| println!("    {note}"));
                let findings = check(&history);
                let lies = findings.lies.len();
                tell(&findings, &path);
                table.add(fault.to_string(), findings);
                lies > 0
            }
            Err(error) => {
                println!("    could not be run to its end: {error}");
                true
            }
        };
        failed += usize::from(trouble);
    }
    println!("{table}");
    let passed = faults.len() - failed;
    println!("audit: {passed} passed, {failed} failed");
    if failed == 0 && passed > 0 { Ok(()) } else { Err(Error::Reported(failed)) }
}

/// Checks a history that an earlier run wrote, and prints what it shows.
///
/// # Errors
/// If it cannot be read, or has a lie.
pub fn recheck(path: &Path) -> Result<()> {
    let file = File::open(path).map_err(Error::io(format!("opening {}", path.display())))?;
    let history =
        History::read(BufReader::new(file)).map_err(Error::io(format!("reading {}", path.display())))?;
    let findings = check(&history);
    tell(&findings, path);
    let (lies, mut table) = (findings.lies.len(), Table::default());
    table.add(findings.run.as_ref().map_or_else(String::new, |run| run.fault.clone()), findings);
    println!("{table}\naudit: {} passed, {} failed", usize::from(lies == 0), usize::from(lies > 0));
    if lies == 0 { Ok(()) } else { Err(Error::Reported(lies)) }
}

async fn one(options: &Options, fault: Fault, budget: Duration) -> Result<(History, Vec<String>)> {
    let mut scene = Scene::open(options, fault, budget).await?;
    let prober = lag::Prober::start(scene.recorder.clone());
    match fault {
        Fault::Kill | Fault::Freeze | Fault::Chaos => storm::run(&mut scene).await?,
        Fault::DropFutures => dropping::run(&mut scene).await?,
        #[cfg(feature = "nats")]
        Fault::CutEveryByte | Fault::Reset | Fault::BlackHole => {
            sweep::run(&mut scene).await?;
            settling::run(&mut scene).await?;
        }
        #[cfg(not(feature = "nats"))]
        other => return Err(Error::Adapter(format!("{other} needs a broker with a connection"))),
    }
    prober.stop();
    scene.close().await
}

fn write(history: &History, path: &Path) -> Result<()> {
    let writing = || format!("writing {}", path.display());
    let file = File::create(path).map_err(Error::io(writing()))?;
    history.write(BufWriter::new(file)).map_err(Error::io(writing()))
}

fn tell(findings: &Findings, path: &Path) {
    for lie in findings.lies.iter().take(SHOWN) {
        println!("    LIE {lie}");
    }
    if findings.lies.len() > SHOWN {
        println!("    ... and {} more", findings.lies.len() - SHOWN);
    }
    let records = path.display();
    println!("    worst lag of the machine {} ms; history: {records}", findings.worst_lag / 1000);
}

/// Shares a recorder.
type Recording = std::sync::Arc<Recorder>;
