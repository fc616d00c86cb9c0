//! How long a file is, and where `unsafe` may stand.

use std::path::Path;

use crate::workspace::Workspace;
use crate::{Result, source};

const MOST_LINES: usize = 900;

/// The only folder whose code may be `unsafe`.
const UNSAFE_ALLOWED: &str = "crates/kafka/";

pub(super) fn too_long(workspace: &Workspace) -> Result<Vec<String>> {
    violations(workspace.root(), length)
}

pub(super) fn with_unsafe(workspace: &Workspace) -> Result<Vec<String>> {
    violations(workspace.root(), unsafety)
}

fn violations(root: &Path, law: fn(&str, &str) -> Option<String>) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for path in source::rust_files(root)? {
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        found.extend(law(&name, &source::read(&path)?));
    }
    Ok(found)
}

fn length(path: &str, text: &str) -> Option<String> {
    let lines = text.lines().count();
    (lines > MOST_LINES).then(|| format!("{path} has {lines} lines"))
}

fn unsafety(path: &str, text: &str) -> Option<String> {
    if path.starts_with(UNSAFE_ALLOWED) {
        return None;
    }
    match source::tokens(text) {
        Ok(tokens) => source::mentions(&tokens, "unsafe").then(|| format!("{path} uses `unsafe`")),
        Err(error) => Some(format!("{path} cannot be judged: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_hundred_lines_pass_and_one_more_is_found() {
        assert_eq!(length("a.rs", &"x\n".repeat(900)), None);
        assert_eq!(length("a.rs", &"x\n".repeat(901)).unwrap(), "a.rs has 901 lines");
    }

    #[test]
    fn unsafe_is_found_everywhere_but_in_kafka() {
        let text = "fn f() { unsafe { g() } }";
        assert!(unsafety("crates/nats/src/lib.rs", text).is_some());
        assert!(unsafety("crates/kafka-like/src/lib.rs", text).is_some());
        assert_eq!(unsafety("crates/kafka/src/raw.rs", text), None);
        assert_eq!(unsafety("crates/nats/src/lib.rs", "// unsafe\nfn f() {}"), None);
    }

    #[test]
    fn a_file_that_is_not_rust_is_not_passed_over() {
        assert!(unsafety("a.rs", "fn f( {").unwrap().contains("cannot be judged"));
    }

    #[test]
    fn a_planted_file_is_found_by_its_path() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("crates/x/tests")).unwrap();
        std::fs::write(root.path().join("crates/x/tests/bad.rs"), "unsafe fn f() {}").unwrap();
        assert_eq!(violations(root.path(), unsafety).unwrap(), ["crates/x/tests/bad.rs uses `unsafe`"]);
    }
}
