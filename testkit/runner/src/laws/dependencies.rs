//! Who may depend on whom, by the manifests.

use cargo_metadata::DependencyKind;

use crate::Result;
use crate::workspace::Workspace;

const CORE: &str = "consign-core-api";
const POLICY: &str = "consign-policy";
const RUNTIME: &str = "consign-runtime";
const FACADE: &str = "consign";
const SUITE: &str = "consign-testkit";
const RUNNER: &str = "consign-testkit-runner";
const CLI: &str = "consign-cli";

/// The crates of adapters: folder names below `crates`.
pub(super) const ADAPTERS: &[&str] = &["in-memory", "nats", "kafka", "rabbitmq", "pulsar-experimental"];

/// What the law needs to know of a crate.
struct Crate {
    name: String,
    /// What its library and its build script depend on; optional dependencies too, dependencies of tests not.
    depends_on: Vec<String>,
}

pub(super) fn violations(workspace: &Workspace) -> Result<Vec<String>> {
    let crates: Vec<_> = workspace
        .packages()
        .into_iter()
        .map(|package| Crate {
            name: package.name.to_string(),
            depends_on: package
                .dependencies
                .iter()
                .filter(|dependency| dependency.kind != DependencyKind::Development)
                .map(|dependency| dependency.name.clone())
                .collect(),
        })
        .collect();
    Ok(judge(&crates))
}

fn judge(crates: &[Crate]) -> Vec<String> {
    let ours = |name: &str| crates.iter().any(|one| one.name == name);
    let mut violations = Vec::new();
    for one in crates {
        let Some(allowed) = allowed(&one.name) else {
            violations.push(format!("{} is unknown to the law; say there what it may depend on", one.name));
            continue;
        };
        for dependency in one.depends_on.iter().filter(|name| ours(name)) {
            if !allowed(dependency) {
                violations.push(format!("{} must not depend on {dependency}", one.name));
            }
        }
    }
    violations
}

/// Says which crates of this workspace a crate may depend on; `None` for a crate that no rule names.
fn allowed(name: &str) -> Option<fn(&str) -> bool> {
    Some(match name {
        CORE => |_| false,
        POLICY => |dependency| dependency == CORE,
        RUNTIME => |dependency| matches!(dependency, CORE | POLICY),
        FACADE => |dependency| matches!(dependency, CORE | POLICY | RUNTIME) || is_adapter(dependency),
        CLI => |dependency| matches!(dependency, CORE | POLICY | RUNTIME | FACADE),
        SUITE => |dependency| matches!(dependency, CORE | POLICY | RUNTIME),
        RUNNER => |_| true,
        adapter if is_adapter(adapter) => |dependency| matches!(dependency, CORE | POLICY),
        _ => return None,
    })
}

fn is_adapter(name: &str) -> bool {
    name.strip_prefix("consign-").is_some_and(|suffix| ADAPTERS.contains(&suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The workspace as it should be, and one more dependency.
    fn judged_with(name: &str, dependency: &str) -> Vec<String> {
        let mut crates: Vec<_> = [
            (CORE, &["serde"][..]),
            (POLICY, &[CORE]),
            (RUNTIME, &[CORE, POLICY]),
            ("consign-in-memory", &[CORE, POLICY]),
            ("consign-nats", &[CORE, POLICY, "async-nats"]),
            (FACADE, &[CORE, POLICY, RUNTIME, "consign-in-memory", "consign-nats"]),
            (SUITE, &[CORE, POLICY, RUNTIME]),
            (RUNNER, &[SUITE, FACADE, "consign-nats"]),
        ]
        .into_iter()
        .map(|(name, depends_on)| Crate {
            name: name.to_owned(),
            depends_on: depends_on.iter().map(ToString::to_string).collect(),
        })
        .collect();
        match crates.iter_mut().find(|one| one.name == name) {
            Some(one) => one.depends_on.push(dependency.to_owned()),
            None => crates.push(Crate { name: name.to_owned(), depends_on: vec![dependency.to_owned()] }),
        }
        judge(&crates)
    }

    #[test]
    fn the_intended_graph_and_foreign_crates_pass() {
        assert_eq!(judged_with(CORE, "uuid"), [""; 0]);
    }

    #[test]
    fn each_wrong_arrow_is_found() {
        for (from, to) in [
            (CORE, POLICY),
            (POLICY, RUNTIME),
            (RUNTIME, "consign-in-memory"),
            (RUNTIME, SUITE),
            ("consign-nats", RUNTIME),
            ("consign-nats", "consign-in-memory"),
            ("consign-in-memory", FACADE),
            (FACADE, SUITE),
            (FACADE, RUNNER),
            (SUITE, "consign-in-memory"),
            (SUITE, FACADE),
        ] {
            assert_eq!(judged_with(from, to), [format!("{from} must not depend on {to}")]);
        }
    }

    #[test]
    fn a_crate_that_the_law_does_not_name_is_found() {
        let violations = judged_with("consign-extra", CORE);
        assert!(violations[0].starts_with("consign-extra is unknown to the law"), "{violations:?}");
    }
}
