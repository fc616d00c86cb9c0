//! Which codes no line of code uses.

use std::collections::HashSet;
use std::path::Path;

use super::table::Row;
use crate::{Error, Result, source};

/// Collects what is used below a crate's `src` outside `codes.rs`; imports, comments, strings and test modules do not
/// count.
pub(super) fn used(folder: &Path) -> Result<HashSet<String>> {
    let mut used = HashSet::new();
    for path in source::rust_files(folder)? {
        if path != folder.join("codes.rs") {
            let tokens = source::tokens(&source::read(&path)?)
                .map_err(|e| Error::Workspace(format!("{}: {e}", path.display())))?;
            used.extend(source::used_identifiers(&tokens));
        }
    }
    Ok(used)
}

/// Lists the codes that are not used.
pub(super) fn unused(used: &HashSet<String>, rows: &[Row]) -> Vec<String> {
    rows.iter().map(|row| row.code.clone()).filter(|code| !used.contains(code)).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_code_that_only_its_table_a_comment_an_import_or_a_test_names_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let rows = ["A", "B", "C", "D"].map(|code| Row::new(code, "cause", "fix"));
        fs::write(folder.path().join("codes.rs"), "fn f() { (A, B, C, D) }").unwrap();
        let text = "use codes::C;\n// A\nfn f() { codes::B }\n#[cfg(test)] mod tests { fn g() { D } }";
        fs::create_dir(folder.path().join("deep")).unwrap();
        fs::write(folder.path().join("deep/mod.rs"), text).unwrap();
        assert_eq!(unused(&used(folder.path()).unwrap(), &rows), ["A", "C", "D"]);
    }
}
