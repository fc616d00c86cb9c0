//! `cargo testkit contract` and `cargo testkit mutants`.

use std::path::Path;

use consign_testkit::Report;
#[cfg(feature = "in-memory")]
use consign_testkit::mutants;

use crate::adapters::Adapter;
use crate::{Error, Result, harness};

/// Runs the contract on each of the required adapters, prints the report, and writes the evidence file.
///
/// # Errors
/// If a required adapter is not built in or its broker cannot be had, if a case failed, or if none ran.
pub fn run(required: &[Adapter], only: Option<&str>, evidence: Option<&Path>) -> Result<()> {
    let report = block_on(async {
        let mut report = Report::default();
        for adapter in required {
            let mut contract = harness::contract(*adapter).await?;
            if let Some(part) = only {
                contract = contract.only(part);
            }
            report.extend(contract.run().await);
        }
        Ok(report)
    })?;
    println!("{report}");
    for adapter in required {
        let of = |entry: &&consign_testkit::Entry| entry.adapter == adapter.name();
        let passed = report.entries().iter().filter(of).filter(|entry| entry.passed()).count();
        println!("{adapter}: {passed} passed");
        if passed == 0 {
            return Err(Error::Broker(format!("no case ran on {adapter}")));
        }
    }
    if let Some(path) = evidence {
        let text = report.to_json_lines().map_err(|error| Error::Command(error.to_string()))?;
        std::fs::write(path, text).map_err(Error::io(format!("writing {}", path.display())))?;
    }
    let failed = report.failures().count();
    println!("contract: {} passed, {failed} failed", report.passed());
    if failed == 0 { Ok(()) } else { Err(Error::Reported(failed)) }
}

/// Runs the contract on every mutant of the embedded broker, and prints which cases caught it.
///
/// # Errors
/// If a mutant was not caught.
#[cfg(feature = "in-memory")]
pub fn mutants() -> Result<()> {
    use harness::in_memory::{InMemoryHarness, profiles};
    let report = block_on(async { Ok(mutants::run(InMemoryHarness::new, profiles()).await) })?;
    println!("{report}");
    let (all, missed) = (report.mutants().len(), report.uncaught().count());
    println!("mutants: {} passed, {missed} failed", all - missed);
    if missed == 0 && all > 0 { Ok(()) } else { Err(Error::Reported(missed)) }
}

/// Runs the contract on every mutant of the embedded broker.
///
/// # Errors
/// Always: this runner is built without it.
#[cfg(not(feature = "in-memory"))]
pub fn mutants() -> Result<()> {
    Adapter::InMemory.require()
}

/// Runs a future on a runtime of its own. Blocks until it is done.
fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Error::io("starting the runtime"))?
        .block_on(future)
}
