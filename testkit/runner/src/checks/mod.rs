//! `cargo testkit test`: everything that CI does, step by step, up to the first failure.

mod steps;

use std::time::{Duration, Instant};

use crate::workspace::Workspace;
use crate::{Error, Result, process};

/// One step of the whole check.
struct Step {
    name: &'static str,
    /// Left out by `--fast`.
    slow: bool,
    run: fn(&Workspace) -> Result<()>,
}

/// How far a run came.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: usize,
    failed: usize,
    not_run: Vec<&'static str>,
}

/// Runs every step, or with `fast` every quick one, and prints each one's name, duration and result. The last line
/// says how many steps passed and failed.
///
/// # Errors
/// If a step failed; those after it are not run.
pub fn test(workspace: &Workspace, fast: bool) -> Result<()> {
    process::end_on_signals()?;
    let (steps, left_out): (Vec<_>, Vec<_>) = steps::all().into_iter().partition(|step| !(fast && step.slow));
    let tally = run(workspace, &steps);
    if !left_out.is_empty() {
        println!("left out by --fast: {}", names(&left_out).join(", "));
    }
    if !tally.not_run.is_empty() {
        println!("not run: {}", tally.not_run.join(", "));
    }
    let Tally { passed, failed, .. } = tally;
    println!("{passed} passed, {failed} failed");
    if failed == 0 { Ok(()) } else { Err(Error::Reported(failed)) }
}

fn names(steps: &[Step]) -> Vec<&'static str> {
    steps.iter().map(|step| step.name).collect()
}

fn run(workspace: &Workspace, steps: &[Step]) -> Tally {
    let mut tally = Tally::default();
    for (index, step) in steps.iter().enumerate() {
        println!("==> {}", step.name);
        let start = Instant::now();
        let result = (step.run)(workspace);
        let took = seconds(start.elapsed());
        match result {
            Ok(()) => {
                println!("<== {}: passed in {took}", step.name);
                tally.passed += 1;
            }
            Err(error) => {
                println!("<== {}: FAILED in {took}\n{error}", step.name);
                tally.failed += 1;
                tally.not_run = names(&steps[index + 1..]);
                break;
            }
        }
    }
    tally
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &'static str, run: fn(&Workspace) -> Result<()>) -> Step {
        Step { name, slow: false, run }
    }

    #[test]
    fn the_first_failure_ends_the_run_and_the_rest_is_named() {
        let steps = [
            step("a", |_| Ok(())),
            step("b", |_| Err(Error::Command("broken".into()))),
            step("c", |_| unreachable!("a step after a failure")),
        ];
        let tally = run(&Workspace::load().unwrap(), &steps);
        assert_eq!(tally, Tally { passed: 1, failed: 1, not_run: vec!["c"] });
    }

    #[test]
    fn a_run_without_failures_counts_every_step() {
        let steps = [step("a", |_| Ok(())), step("b", |_| Ok(()))];
        let tally = run(&Workspace::load().unwrap(), &steps);
        assert_eq!(tally, Tally { passed: 2, failed: 0, not_run: vec![] });
    }
}
