//! The rules that no compiler checks: who may depend on whom, how long a file is, which rooms an adapter has,
//! where `unsafe` may stand.

mod dependencies;
mod facade;
mod files;
mod rooms;

use crate::workspace::Workspace;
use crate::{Error, Result};

/// A law: what it says, and the function that lists what breaks it.
type Law = (&'static str, fn(&Workspace) -> Result<Vec<String>>);

/// Every law, in the order of checking.
const LAWS: &[Law] = &[
    ("dependencies point inwards", dependencies::violations),
    ("the facade's default is light", facade::violations),
    ("no file is over 900 lines", files::too_long),
    ("`unsafe` stands in kafka only", files::with_unsafe),
    ("every adapter has the same rooms", rooms::violations),
];

/// Checks every law and prints each one's result.
///
/// # Errors
/// Every violation of every law, together.
pub fn check(workspace: &Workspace) -> Result<()> {
    let mut all = Vec::new();
    for (name, law) in LAWS {
        let violations = law(workspace)?;
        println!("{} {name}", if violations.is_empty() { "ok      " } else { "VIOLATED" });
        all.extend(violations.into_iter().map(|violation| format!("{name}: {violation}")));
    }
    Error::from_violations("laws", &all).map_or(Ok(()), Err)
}
