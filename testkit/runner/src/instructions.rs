//! `cargo testkit instructions`: what a message costs on the embedded broker, in instructions and allocations.
//!
//! A program sends a number of messages, then twice as many; the difference is what the messages cost, without the
//! start and the end of the program. Valgrind counts, so that the figures hardly depend on what else the machine does.

use std::process::{Command, Stdio};

use crate::workspace::Workspace;
use crate::{Error, Result, process};

const MESSAGES: u64 = 2_000;
/// The page with the committed figures.
const PAGE: &str = "docs/performance.md";
const BEGIN: &str = "<!-- figures: begin -->";
const END: &str = "<!-- figures: end -->";

/// What is counted: mode, payload bytes, headers.
const ROWS: &[(&str, u32, u32)] = &[
    ("publish", 64, 0),
    ("publish", 1024, 5),
    ("pipeline", 64, 0),
    ("consume", 64, 0),
    ("consume", 1024, 5),
];

/// Counts, prints the table, and with `write` puts it into the page.
///
/// # Errors
/// If valgrind is missing, or the program fails under it.
pub fn run(workspace: &Workspace, write: bool) -> Result<()> {
    let program = build(workspace)?;
    let mut table = String::from(
        "| what | payload | headers | instructions per message | allocations per message |\n|---|---|---|---|---|\n",
    );
    for (mode, size, headers) in ROWS {
        let cost = Cost::of(&program, mode, *size, *headers)?;
        // A consume run publishes first, each message awaited; what that costs is known from the publish row.
        let cost = if *mode == "consume" {
            cost.less(Cost::of(&program, "publish", *size, *headers)?)
        } else {
            cost
        };
        let row = format!(
            "| {mode} | {size} B | {headers} | {} | {:.1} |\n",
            cost.instructions.round(),
            cost.allocations
        );
        print!("{row}");
        table.push_str(&row);
    }
    if write { put(workspace, &table) } else { Ok(()) }
}

/// What one message costs.
#[derive(Debug, Clone, Copy)]
struct Cost {
    instructions: f64,
    allocations: f64,
}

impl Cost {
    fn of(program: &str, mode: &str, size: u32, headers: u32) -> Result<Self> {
        let count = |tool: &[&str], marker: &str, messages: u64| -> Result<u64> {
            let mut command = Command::new("valgrind");
            command.args(tool).arg(program).arg(mode);
            command.args([messages.to_string(), size.to_string(), headers.to_string()]);
            counted(&mut command, marker)
        };
        let each = |tool: &[&str], marker: &str| -> Result<f64> {
            let (less, more) = (count(tool, marker, MESSAGES)?, count(tool, marker, 2 * MESSAGES)?);
            #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
            Ok((more as f64 - less as f64) / MESSAGES as f64)
        };
        let callgrind = ["--tool=callgrind", "--callgrind-out-file=/dev/null"];
        Ok(Self {
            instructions: each(&callgrind, "Collected :")?,
            allocations: each(&["--tool=memcheck", "--leak-check=no"], "total heap usage:")?,
        })
    }

    fn less(self, other: Self) -> Self {
        Self {
            instructions: self.instructions - other.instructions,
            allocations: (self.allocations - other.allocations).max(0.0),
        }
    }
}

/// Runs valgrind and returns the first number after the marker.
fn counted(command: &mut Command, marker: &str) -> Result<u64> {
    let name = process::shown(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Error::Command(format!("cannot run `{name}`: {error}; install valgrind")))?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        return Err(Error::Command(format!("`{name}` failed: {}\n{text}", output.status)));
    }
    number_after(&text, marker).ok_or_else(|| Error::Command(format!("`{name}` printed no {marker:?}")))
}

fn number_after(text: &str, marker: &str) -> Option<u64> {
    let (_, rest) = text.split_once(marker)?;
    let digits = rest.trim_start().chars().take_while(|c| c.is_ascii_digit() || *c == ',');
    digits.filter(char::is_ascii_digit).collect::<String>().parse().ok()
}

/// Builds the program and returns its path.
fn build(workspace: &Workspace) -> Result<String> {
    let mut command = process::cargo();
    command.current_dir(workspace.root());
    command.args(["bench", "--locked", "--quiet", "--package", "consign", "--bench", "per_message"]);
    let messages = process::output(command.args(["--no-run", "--message-format", "json"]))?;
    let executable = |line: &str| -> Option<String> {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        message.get("executable")?.as_str().map(str::to_owned)
    };
    messages
        .lines()
        .filter_map(executable)
        .next_back()
        .ok_or_else(|| Error::Command("cargo named no executable of the program".into()))
}

/// Puts the table between its marks.
fn put(workspace: &Workspace, table: &str) -> Result<()> {
    let path = workspace.root().join(PAGE);
    let page = std::fs::read_to_string(&path).map_err(Error::io(format!("reading {PAGE}")))?;
    let page = replaced(&page, table)
        .ok_or_else(|| Error::Workspace(format!("{PAGE} lacks the marks {BEGIN} and {END}")))?;
    std::fs::write(&path, page).map_err(Error::io(format!("writing {PAGE}")))
}

fn replaced(page: &str, table: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{table}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_and_without_separators() {
        assert_eq!(number_after("==1== Collected : 8966136\n", "Collected :"), Some(8_966_136));
        let heap = "==1==   total heap usage: 1,136 allocs, 135 frees";
        assert_eq!(number_after(heap, "total heap usage:"), Some(1_136));
        assert_eq!(number_after("nothing", "Collected :"), None);
    }

    #[test]
    fn a_table_replaces_only_what_stands_between_its_marks() {
        let page = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        assert_eq!(replaced(&page, "new\n"), Some(format!("a\n{BEGIN}\nnew\n{END}\nb\n")));
        assert_eq!(replaced("a", "new"), None);
    }
}
