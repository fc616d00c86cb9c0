//! What a run proved.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How one case ended in one profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "verdict", content = "detail")]
#[non_exhaustive]
pub enum Verdict {
    /// It holds.
    Passed,
    /// It does not, and this is what happened.
    Failed(String),
    /// It does not apply to this profile, and this is why.
    NotApplicable(String),
}

/// One case in one profile: a line of the evidence file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Entry {
    /// The adapter.
    pub adapter: String,
    /// The broker's version.
    pub version: String,
    /// The profile.
    pub profile: String,
    /// The case.
    pub case: String,
    /// How it ended.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// How long it took, in milliseconds.
    pub millis: u64,
    /// What happened during a failed case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<String>,
}

impl Entry {
    /// Tells whether it holds.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.verdict == Verdict::Passed
    }

    /// Tells whether it does not.
    #[must_use]
    pub const fn failed(&self) -> bool {
        matches!(self.verdict, Verdict::Failed(_))
    }
}

/// Everything that a run proved or did not.
#[derive(Debug, Clone, Default)]
#[must_use = "a report that nobody looks at proves nothing"]
pub struct Report {
    /// A line for each case and profile.
    entries: Vec<Entry>,
}

impl Report {
    pub(crate) fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// Adds the lines of another run.
    pub fn extend(&mut self, other: Self) {
        self.entries.extend(other.entries);
    }

    /// Returns all lines.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Counts what passed.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.entries.iter().filter(|entry| entry.passed()).count()
    }

    /// Returns what failed.
    pub fn failures(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.failed())
    }

    /// Returns the evidence file: one JSON object a line.
    ///
    /// # Errors
    /// Never in practice: every entry is plain data.
    pub fn to_json_lines(&self) -> Result<String, serde_json::Error> {
        let mut text = String::new();
        for entry in &self.entries {
            text.push_str(&serde_json::to_string(entry)?);
            text.push('\n');
        }
        Ok(text)
    }

    /// Panics unless everything that applied passed, and at least one case did.
    ///
    /// # Panics
    /// With the whole report, if a case failed or none ran.
    #[expect(clippy::panic, reason = "this is an assertion for tests")]
    pub fn assert_passed(&self) {
        if self.failures().next().is_some() || self.passed() == 0 {
            panic!("{self}");
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for entry in &self.entries {
            let Entry { adapter, profile, case, .. } = entry;
            let took = Duration::from_millis(entry.millis);
            match &entry.verdict {
                Verdict::Passed => writeln!(f, "passed  {adapter}/{profile} {case} ({took:?})")?,
                Verdict::NotApplicable(why) => writeln!(f, "n/a     {adapter}/{profile} {case}: {why}")?,
                Verdict::Failed(why) => {
                    writeln!(f, "FAILED  {adapter}/{profile} {case} ({took:?}): {why}")?;
                    for line in &entry.history {
                        writeln!(f, "        | {line}")?;
                    }
                }
            }
        }
        write!(f, "contract: {} passed, {} failed", self.passed(), self.failures().count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(verdict: Verdict) -> Entry {
        let (adapter, version, profile, case) = ("a".into(), "1".into(), "plain".into(), "a_case".into());
        Entry { adapter, version, profile, case, verdict, millis: 3, history: vec!["it happened".into()] }
    }

    fn report(verdicts: &[Verdict]) -> Report {
        let mut report = Report::default();
        verdicts.iter().for_each(|verdict| report.push(entry(verdict.clone())));
        report
    }

    #[test]
    fn a_failure_fails_the_run_and_shows_its_history() {
        let report = report(&[Verdict::Passed, Verdict::Failed("so it was".into())]);
        assert!(report.to_string().contains("so it was") && report.to_string().contains("it happened"));
        assert!(std::panic::catch_unwind(|| report.assert_passed()).is_err());
    }

    #[test]
    fn a_run_in_which_nothing_passed_proves_nothing() {
        for verdicts in [&[][..], &[Verdict::NotApplicable("no".into())]] {
            assert!(std::panic::catch_unwind(|| report(verdicts).assert_passed()).is_err());
        }
        report(&[Verdict::Passed, Verdict::NotApplicable("no".into())]).assert_passed();
    }

    #[test]
    fn the_evidence_file_reads_back() {
        let all = report(&[Verdict::Passed, Verdict::Failed("x".into()), Verdict::NotApplicable("y".into())]);
        let text = all.to_json_lines().unwrap();
        let read: Vec<Entry> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let verdicts: Vec<_> = read.into_iter().map(|entry| entry.verdict).collect();
        assert_eq!(verdicts, all.entries().iter().map(|entry| entry.verdict.clone()).collect::<Vec<_>>());
    }
}
