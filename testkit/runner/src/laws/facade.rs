//! The facade as one gets it without naming a feature: no C compiler, no broker's client, no TLS.

use crate::workspace::Workspace;
use crate::{Result, process};

/// Packages whose presence means that something heavy came in.
const HEAVY: &[&str] = &[
    "async-nats",
    "aws-lc-rs",
    "aws-lc-sys",
    "bindgen",
    "cc",
    "cmake",
    "lapin",
    "native-tls",
    "openssl",
    "openssl-sys",
    "pkg-config",
    "prost-build",
    "pulsar",
    "rdkafka",
    "rdkafka-sys",
    "ring",
    "rustls",
    "vcpkg",
];

pub(super) fn violations(workspace: &Workspace) -> Result<Vec<String>> {
    let mut tree = process::cargo();
    tree.current_dir(workspace.root()).args([
        "tree",
        "--locked",
        "--offline",
        "--package",
        "consign",
        "--edges",
        "normal,build",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]);
    Ok(judge(&process::output(&mut tree)?))
}

/// Judges the output of `cargo tree`, whose lines begin with a package's name.
fn judge(tree: &str) -> Vec<String> {
    let mut found: Vec<_> = tree
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| HEAVY.contains(name))
        .collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(|name| format!("`consign` pulls in {name} by default")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_light_tree_passes() {
        assert_eq!(judge("consign v0.1.0 (/x)\nbytes v1.12.1\nserde v1.0.2\nserde v1.0.2 (*)\n"), [""; 0]);
    }

    #[test]
    fn a_c_compiler_and_a_client_are_found_once_each() {
        let tree = "consign v0.1.0\nring v0.17.0\ncc v1.2.0\ncc v1.2.0 (*)\nasync-nats v0.51.0\n";
        let names = ["async-nats", "cc", "ring"];
        assert_eq!(judge(tree), names.map(|name| format!("`consign` pulls in {name} by default")));
    }
}
