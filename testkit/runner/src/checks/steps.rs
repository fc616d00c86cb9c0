//! The steps, in order.

use std::process::Command;

use super::Step;
use crate::adapters::Adapter;
use crate::workspace::Workspace;
use crate::{Result, codes, contract, laws, process, tools};

/// Folders, and features of the same name, whose code needs a C compiler or a code generator to build.
const HEAVY: &[&str] = &["kafka", "pulsar-experimental"];

/// Every step.
pub(super) fn all() -> Vec<Step> {
    let mut steps = vec![
        Step { name: "crates", slow: false, run: fetch },
        Step { name: "format", slow: false, run: format },
        Step { name: "clippy", slow: false, run: clippy },
        Step { name: "docs", slow: false, run: docs },
        Step { name: "deny", slow: true, run: deny },
        Step { name: "laws", slow: false, run: laws::check },
        Step { name: "tests", slow: false, run: tests },
        Step { name: "doc tests", slow: false, run: doc_tests },
        Step { name: "loom", slow: true, run: loom },
    ];
    steps.extend(on_brokers());
    steps.push(Step { name: "codes", slow: false, run: codes::check });
    steps
}

/// What runs on brokers: the quickstart, and the contract suite on every adapter that is built in.
fn on_brokers() -> Vec<Step> {
    vec![
        Step { name: "quickstart", slow: false, run: quickstart },
        Step { name: "contract", slow: false, run: on_every_adapter },
        Step { name: "mutants", slow: false, run: |_| contract::mutants() },
    ]
}

fn quickstart(workspace: &Workspace) -> Result<()> {
    process::run(cargo(workspace).args([
        "run",
        "--locked",
        "--quiet",
        "--package",
        "consign",
        "--example",
        "quickstart",
    ]))
}

/// The evidence of the run stays in the target folder.
fn on_every_adapter(workspace: &Workspace) -> Result<()> {
    contract::run(Adapter::ALL, None, Some(&workspace.target().join("contract.jsonl")))
}

/// Downloads the crates of the lock file, which the steps after this one use without a network.
fn fetch(workspace: &Workspace) -> Result<()> {
    process::run(cargo(workspace).args(["fetch", "--locked", "--quiet"]))
}

fn format(workspace: &Workspace) -> Result<()> {
    process::run(cargo(workspace).args(["fmt", "--all", "--check"]))
}

fn clippy(workspace: &Workspace) -> Result<()> {
    let mut command = cargo(workspace);
    command.args(["clippy", "--locked", "--all-targets"]);
    process::run(everything(workspace, &mut command).args(["--", "-D", "warnings"]))
}

fn docs(workspace: &Workspace) -> Result<()> {
    let mut command = cargo(workspace);
    command.args(["doc", "--locked", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
    process::run(everything(workspace, &mut command))
}

/// Advisories are not among the checks: their database is a download of its own, see `deny.toml`.
fn deny(workspace: &Workspace) -> Result<()> {
    let mut command = Command::new(tools::cargo_deny(&workspace.tools())?);
    command.current_dir(workspace.root());
    process::run(command.args(["--offline", "--locked", "check", "bans", "licenses", "sources"]))
}

fn tests(workspace: &Workspace) -> Result<()> {
    let mut command = cargo(workspace);
    command.args(["test", "--locked", "--lib", "--bins", "--tests", "--examples"]);
    // The tests of the NATS adapter start and end servers of their own.
    command.env(tools::NATS_SERVER_VARIABLE, tools::nats_server(&workspace.tools())?);
    process::run(everything(workspace, &mut command))
}

fn doc_tests(workspace: &Workspace) -> Result<()> {
    let mut command = cargo(workspace);
    command.args(["test", "--locked", "--doc"]);
    process::run(everything(workspace, &mut command))
}

/// The flag changes every crate that knows loom, tokio too, so this has a target folder of its own. Optimised, since
/// the exploration takes many times longer than the build.
fn loom(workspace: &Workspace) -> Result<()> {
    let mut command = cargo(workspace);
    command
        .args(["test", "--locked", "--release", "--package", "consign-policy", "--test", "loom"])
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", workspace.target().join("loom"));
    process::run(&mut command)
}

fn cargo(workspace: &Workspace) -> Command {
    let mut command = process::cargo();
    command.current_dir(workspace.root());
    command
}

/// Selects every package and every feature that can be built without a C compiler.
fn everything<'a>(workspace: &Workspace, command: &'a mut Command) -> &'a mut Command {
    command.arg("--workspace");
    let mut features = Vec::new();
    for package in workspace.packages() {
        let name = package.name.as_str();
        if HEAVY.iter().any(|heavy| name.strip_prefix("consign-") == Some(heavy)) {
            command.args(["--exclude", name]);
        } else {
            let light = package.features.keys().filter(|feature| !HEAVY.contains(&feature.as_str()));
            features.extend(light.map(|feature| format!("{name}/{feature}")));
        }
    }
    if !features.is_empty() {
        command.args(["--features", &features.join(",")]);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_of_the_workspace_are_selected_by_package() {
        let workspace = Workspace::load().unwrap();
        let shown = process::shown(everything(&workspace, &mut Command::new("cargo")));
        assert!(shown.starts_with("cargo --workspace "), "{shown}");
        assert!(shown.contains("consign-testkit-runner/nats"), "{shown}");
        assert!(!shown.contains("/kafka"), "{shown}");
    }
}
