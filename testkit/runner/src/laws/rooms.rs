//! The rooms of an adapter: a missing one is a missing feature, visible in a listing.

use std::path::Path;

use super::dependencies::ADAPTERS;
use crate::Result;
use crate::workspace::Workspace;

const ROOMS: &[&str] = &[
    "lib",
    "config",
    "profile",
    "capability",
    "publisher",
    "consumer",
    "settlement",
    "outcome",
    "topology",
    "codes",
    "native",
];

pub(super) fn violations(workspace: &Workspace) -> Result<Vec<String>> {
    Ok(judge(workspace.root()))
}

/// Judges every adapter that has a folder.
fn judge(root: &Path) -> Vec<String> {
    let mut missing = Vec::new();
    for adapter in ADAPTERS {
        let source = root.join("crates").join(adapter).join("src");
        if !source.is_dir() {
            continue;
        }
        for room in ROOMS {
            let file = source.join(format!("{room}.rs"));
            let folder = source.join(room).join("mod.rs");
            if !file.is_file() && !folder.is_file() {
                missing.push(format!("{adapter} has no room `{room}`"));
            }
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn adapter_without(room: &str) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        let source = root.path().join("crates/nats/src");
        fs::create_dir_all(source.join("consumer")).unwrap();
        fs::write(source.join("consumer/mod.rs"), "").unwrap();
        for name in ROOMS.iter().filter(|name| **name != room && **name != "consumer") {
            fs::write(source.join(format!("{name}.rs")), "").unwrap();
        }
        judge(root.path())
    }

    #[test]
    fn files_and_folders_are_rooms_and_an_absent_adapter_is_no_violation() {
        assert_eq!(adapter_without(""), [""; 0]);
    }

    #[test]
    fn each_missing_room_is_found() {
        for room in ROOMS.iter().filter(|room| **room != "consumer") {
            assert_eq!(adapter_without(room), [format!("nats has no room `{room}`")]);
        }
    }
}
