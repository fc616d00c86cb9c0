//! Which cases noticed which mutant.

use std::fmt;

/// One mutant and who noticed it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Caught {
    /// What it does wrong.
    pub mutant: &'static str,
    /// The promise that it breaks.
    pub breaks: &'static str,
    /// The profile in which it ran last; `None` where no profile was given in which it can matter.
    pub profile: Option<String>,
    /// The cases that noticed it, up to a few.
    pub by: Vec<String>,
}

/// Which cases noticed which mutant.
#[derive(Debug, Clone, Default)]
#[must_use = "a report that nobody looks at proves nothing"]
pub struct MutantReport {
    mutants: Vec<Caught>,
}

impl MutantReport {
    pub(super) fn push(&mut self, caught: Caught) {
        self.mutants.push(caught);
    }

    /// Returns all mutants, in the order in which they ran.
    #[must_use]
    pub fn mutants(&self) -> &[Caught] {
        &self.mutants
    }

    /// Returns the mutants that no case noticed.
    pub fn uncaught(&self) -> impl Iterator<Item = &Caught> {
        self.mutants.iter().filter(|caught| caught.by.is_empty())
    }

    /// Panics unless every mutant was noticed, and there was one.
    ///
    /// # Panics
    /// With the whole report, if a mutant was not noticed or there was none.
    #[expect(clippy::panic, reason = "this is an assertion for tests")]
    pub fn assert_all_caught(&self) {
        if self.mutants.is_empty() || self.uncaught().next().is_some() {
            panic!("{self}");
        }
    }
}

impl fmt::Display for MutantReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Caught { mutant, breaks, profile, by } in &self.mutants {
            match (profile, by.is_empty()) {
                (None, _) => writeln!(f, "NOT RUN {mutant}: no profile in which it matters ({breaks})")?,
                (Some(profile), true) => {
                    writeln!(f, "MISSED  {mutant}: no case in {profile} notices ({breaks})")?
                }
                (Some(profile), false) => writeln!(f, "caught  {mutant} ({profile}): {}", by.join(", "))?,
            }
        }
        let missed = self.uncaught().count();
        write!(f, "mutants: {} caught, {missed} missed", self.mutants.len() - missed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caught(by: &[&str]) -> Caught {
        let by = by.iter().map(|case| (*case).to_owned()).collect();
        Caught { mutant: "lies", breaks: "truth", profile: Some("plain".to_owned()), by }
    }

    #[test]
    fn a_mutant_that_no_case_noticed_is_named_and_fails() {
        let mut report = MutantReport::default();
        report.push(caught(&["a_case"]));
        report.assert_all_caught();
        report.push(caught(&[]));
        assert_eq!(report.uncaught().count(), 1);
        assert!(report.to_string().contains("MISSED  lies"));
        assert!(std::panic::catch_unwind(|| report.assert_all_caught()).is_err());
    }

    #[test]
    fn no_mutants_prove_nothing() {
        assert!(std::panic::catch_unwind(|| MutantReport::default().assert_all_caught()).is_err());
    }
}
