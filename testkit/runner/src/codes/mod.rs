//! The stable codes of every crate, and their page `docs/error-codes.md`.

mod page;
mod table;
mod usage;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use consign_core_api::code::CodeEntry;

use crate::workspace::Workspace;
use crate::{Error, Result, source};

use table::Row;

/// The page, seen from the root.
const PAGE: &str = "docs/error-codes.md";

/// The crate whose codes every other crate may use.
const VOCABULARY: &str = "consign-core-api";

/// The codes of one crate, as its `src/codes.rs` defines them.
struct CrateCodes {
    name: String,
    folder: PathBuf,
    rows: Vec<Row>,
}

/// The tables that are compiled into this runner. The page is made from the sources, so that it does not depend on
/// which adapters are built in; these prove that the sources were read rightly.
fn compiled() -> Vec<(&'static str, &'static [CodeEntry])> {
    vec![(VOCABULARY, consign_core_api::codes::TABLE)]
}

/// Checks that tables, sources and page agree.
///
/// # Errors
/// Every difference: a code defined twice or never used, a table that was read otherwise than it is compiled, a
/// page that is not what `--write` would write.
pub fn check(workspace: &Workspace) -> Result<()> {
    let crates = read(workspace)?;
    let mut violations = violations(&crates)?;
    let page = workspace.root().join(PAGE);
    if fs::read_to_string(&page).ok().as_deref() != Some(&*page::render(&crates)) {
        violations.push(format!("{PAGE} is out of date; run `cargo testkit codes --write`"));
    }
    let codes: usize = crates.iter().map(|one| one.rows.len()).sum();
    println!("{codes} codes in {} crates", crates.len());
    Error::from_violations("codes", &violations).map_or(Ok(()), Err)
}

/// Writes the page anew.
///
/// # Errors
/// If a table cannot be read or the page cannot be written.
pub fn write(workspace: &Workspace) -> Result<()> {
    let crates = read(workspace)?;
    let page = workspace.root().join(PAGE);
    fs::write(&page, page::render(&crates)).map_err(Error::io(format!("writing {}", page.display())))?;
    println!("wrote {PAGE}");
    Ok(())
}

fn read(workspace: &Workspace) -> Result<Vec<CrateCodes>> {
    let mut crates = Vec::new();
    for package in workspace.packages() {
        let Some(folder) = package.manifest_path.parent().map(|folder| folder.as_std_path().join("src"))
        else {
            continue;
        };
        let file = folder.join("codes.rs");
        if file.is_file() {
            let rows = table::parse(&source::read(&file)?)
                .map_err(|e| Error::Workspace(format!("{}: {e}", file.display())))?;
            crates.push(CrateCodes { name: package.name.to_string(), folder, rows });
        }
    }
    crates.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(crates)
}

fn violations(crates: &[CrateCodes]) -> Result<Vec<String>> {
    let mut violations = defined_twice(crates);
    let used = crates.iter().map(|one| usage::used(&one.folder)).collect::<Result<Vec<_>>>()?;
    for (one, own) in crates.iter().zip(&used) {
        // The codes of the shared vocabulary are there for the other crates.
        let unused = if one.name == VOCABULARY {
            usage::unused(&used.iter().flatten().cloned().collect(), &one.rows)
        } else {
            usage::unused(own, &one.rows)
        };
        violations
            .extend(unused.into_iter().map(|code| format!("{}: {code} is defined and never used", one.name)));
    }
    for (name, entries) in compiled() {
        let read = crates.iter().find(|one| one.name == name).map_or(&[][..], |one| &one.rows);
        if !read.iter().map(Row::as_tuple).eq(entries.iter().map(|e| (e.code.as_str(), e.cause, e.fix))) {
            violations.push(format!("{name}: the table read from its source is not the compiled one"));
        }
    }
    Ok(violations)
}

fn defined_twice(crates: &[CrateCodes]) -> Vec<String> {
    let mut owners = BTreeMap::<&str, Vec<&str>>::new();
    for one in crates {
        for row in &one.rows {
            owners.entry(&row.code).or_default().push(&one.name);
        }
    }
    owners
        .into_iter()
        .filter(|(_, crates)| crates.len() > 1)
        .map(|(code, crates)| format!("{code} is defined more than once: {}", crates.join(", ")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_codes(name: &str, codes: &[&str]) -> CrateCodes {
        let rows = codes.iter().map(|code| Row::new(code, "cause", "fix")).collect();
        CrateCodes { name: name.into(), folder: PathBuf::new(), rows }
    }

    #[test]
    fn a_code_of_two_crates_is_found_and_distinct_ones_are_not() {
        let crates = [with_codes("a", &["X", "Y"]), with_codes("b", &["X", "Z"])];
        assert_eq!(defined_twice(&crates), ["X is defined more than once: a, b"]);
    }

    #[test]
    fn the_sources_are_read_as_they_are_compiled() {
        let crates = read(&Workspace::load().unwrap()).unwrap();
        for (name, entries) in compiled() {
            let rows = &crates.iter().find(|one| one.name == name).unwrap().rows;
            let compiled: Vec<_> = entries.iter().map(|e| (e.code.as_str(), e.cause, e.fix)).collect();
            assert_eq!(rows.iter().map(Row::as_tuple).collect::<Vec<_>>(), compiled);
        }
    }
}
