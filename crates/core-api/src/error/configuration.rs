//! A configuration that does not start, and everything that is wrong with it.

use std::fmt;

use crate::code::Code;
use crate::name::DestinationName;

/// When a problem was found. Problems are reported in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Phase {
    /// Reading the text of the profiles.
    Syntax,
    /// Single values out of their range.
    Fields,
    /// Values that contradict each other within a profile.
    Rules,
    /// The graph of retry and dead-letter edges over all profiles.
    Topology,
    /// The broker's own rules.
    Broker,
    /// Needs that the broker's capabilities do not meet.
    Negotiation,
    /// What the broker's real configuration said after connecting.
    Preflight,
}

/// One thing that is wrong: a stable code, the destination, the fields at fault, and what to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    code: Code,
    phase: Phase,
    rank: u16,
    destination: Option<String>,
    message: String,
    fields: Vec<(String, String)>,
    help: String,
}

impl Problem {
    /// Describes a problem: what is wrong and what to change.
    #[must_use]
    pub fn new(phase: Phase, code: Code, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            code,
            phase,
            rank: 0,
            destination: None,
            message: message.into(),
            fields: Vec::new(),
            help: help.into(),
        }
    }

    /// Names the destination.
    #[must_use]
    pub fn at(mut self, destination: &DestinationName) -> Self {
        self.destination = Some(destination.to_string());
        self
    }

    /// Names the destination by its raw text, where that is no legal name.
    #[must_use]
    pub fn at_text(mut self, destination: impl Into<String>) -> Self {
        self.destination = Some(destination.into());
        self
    }

    /// Adds a field at fault with its value as written.
    #[must_use]
    pub fn field(mut self, name: impl Into<String>, value: impl fmt::Display) -> Self {
        self.fields.push((name.into(), value.to_string()));
        self
    }

    /// Sets the place among the problems of the same phase and destination.
    #[must_use]
    pub const fn ranked(mut self, rank: u16) -> Self {
        self.rank = rank;
        self
    }

    /// Returns the stable code.
    #[must_use]
    pub const fn code(&self) -> Code {
        self.code
    }

    /// Returns when it was found.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns the place among the problems of the same phase and destination.
    #[must_use]
    pub const fn rank(&self) -> u16 {
        self.rank
    }

    /// Returns the destination, if it is one destination's problem.
    #[must_use]
    pub fn destination(&self) -> Option<&str> {
        self.destination.as_deref()
    }

    /// Returns the fields at fault with their values.
    #[must_use]
    pub fn fields(&self) -> &[(String, String)] {
        &self.fields
    }

    /// Returns what is wrong, for people; it is no contract.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns what to change.
    #[must_use]
    pub fn help(&self) -> &str {
        &self.help
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error[{}]: ", self.code)?;
        if let Some(destination) = &self.destination {
            write!(f, "destination {destination:?}: ")?;
        }
        f.write_str(&self.message)?;
        for (i, (name, value)) in self.fields.iter().enumerate() {
            write!(f, "{}{name} = {value}", if i == 0 { " (" } else { ", " })?;
        }
        if !self.fields.is_empty() {
            f.write_str(")")?;
        }
        if self.help.is_empty() { Ok(()) } else { write!(f, "\n  help: {}", self.help) }
    }
}

/// A configuration that does not start: every problem, ordered by phase, destination and rule.
///
/// `Debug` prints what `Display` prints, so that `main() -> Result<(), ConfigurationError>` shows the report.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigurationError {
    problems: Vec<Problem>,
}

impl ConfigurationError {
    /// Collects problems into a report; without a problem there is no error.
    ///
    /// # Errors
    /// The report, if there is at least one problem.
    pub fn check(mut problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() {
            return Ok(());
        }
        problems.sort_by(|a, b| (a.phase, &a.destination, a.rank).cmp(&(b.phase, &b.destination, b.rank)));
        Err(Self { problems })
    }

    /// Returns the problems in their order; there is at least one.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Returns the codes in their order.
    #[must_use]
    pub fn codes(&self) -> Vec<Code> {
        self.problems.iter().map(Problem::code).collect()
    }

    /// Tells whether some problem has this code.
    #[must_use]
    pub fn has(&self, code: Code) -> bool {
        self.problems.iter().any(|problem| problem.code == code)
    }
}

impl From<Problem> for ConfigurationError {
    fn from(problem: Problem) -> Self {
        Self { problems: vec![problem] }
    }
}

impl fmt::Display for ConfigurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            fmt::Display::fmt(problem, f)?;
        }
        Ok(())
    }
}

impl fmt::Debug for ConfigurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for ConfigurationError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(phase: Phase, destination: &str, rank: u16) -> Problem {
        Problem::new(phase, Code::new("C"), "m", "h").at_text(destination).ranked(rank)
    }

    #[test]
    fn problems_are_ordered_by_phase_then_destination_then_rule() {
        let mixed = vec![
            problem(Phase::Topology, "a", 0),
            problem(Phase::Rules, "b", 1),
            problem(Phase::Rules, "a", 9),
            problem(Phase::Rules, "a", 2),
        ];
        let error = ConfigurationError::check(mixed).unwrap_err();
        let order: Vec<_> =
            error.problems().iter().map(|p| (p.phase(), p.destination().unwrap(), p.rank())).collect();
        assert_eq!(
            order,
            [
                (Phase::Rules, "a", 2),
                (Phase::Rules, "a", 9),
                (Phase::Rules, "b", 1),
                (Phase::Topology, "a", 0)
            ]
        );
    }

    #[test]
    fn no_problem_is_no_error_and_debug_is_the_report() {
        assert!(ConfigurationError::check(Vec::new()).is_ok());
        let error = ConfigurationError::from(problem(Phase::Fields, "orders", 1).field("retry.max", "0s"));
        assert_eq!(format!("{error:?}"), "error[C]: destination \"orders\": m (retry.max = 0s)\n  help: h");
    }
}
