//! How values are checked and refused.

use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use consign_core_api::error::Phase;
use consign_core_api::time::{Delay, Timeout};
use consign_core_api::{Code, Problem};

use crate::codes;
use crate::profile::Limit;

/// The largest count of things that run or wait at once. It keeps whatever is sized by a count from being absurd.
const LARGEST_COUNT: u64 = 1 << 20;

/// Collects what is wrong with the values of one destination, in the order in which they are checked.
#[derive(Debug)]
pub(crate) struct Checks<'a> {
    destination: Option<&'a str>,
    rank: u16,
    problems: &'a mut Vec<Problem>,
}

impl<'a> Checks<'a> {
    /// Checks values of a destination.
    pub(crate) const fn new(destination: &'a str, problems: &'a mut Vec<Problem>) -> Self {
        Self { destination: Some(destination), rank: 0, problems }
    }

    /// Checks values that all destinations share.
    pub(crate) const fn shared(problems: &'a mut Vec<Problem>) -> Self {
        Self { destination: None, rank: 0, problems }
    }

    /// Takes a checked value, or refuses it with the range that it should be in.
    pub(crate) fn take<T>(
        &mut self,
        field: &'static str,
        written: impl fmt::Display,
        checked: Result<T, &'static str>,
    ) -> Option<T> {
        match checked {
            Ok(value) => Some(value),
            Err(range) => {
                self.refuse(field, written, range);
                None
            }
        }
    }

    /// Refuses a value.
    pub(crate) fn refuse(&mut self, field: &'static str, written: impl fmt::Display, range: &'static str) {
        let message = format!("{field} is not legal");
        self.report(codes::FIELD_OUT_OF_RANGE, message, field, written, format!("legal is: {range}"));
    }

    /// Reports a value with a code of its own.
    pub(crate) fn report(
        &mut self,
        code: Code,
        message: impl Into<String>,
        field: &'static str,
        written: impl fmt::Display,
        help: impl Into<String>,
    ) {
        let problem =
            Problem::new(Phase::Fields, code, message, help).field(field, written).ranked(self.rank);
        self.rank = self.rank.saturating_add(1);
        self.problems.push(match self.destination {
            Some(destination) => problem.at_text(destination),
            None => problem,
        });
    }

    pub(super) fn timeout(&mut self, field: &'static str, written: Duration) -> Option<Duration> {
        let checked = Timeout::new(written).map(Timeout::get).map_err(|refused| refused.range());
        self.take(field, humantime::format_duration(written), checked)
    }

    pub(super) fn delay(&mut self, field: &'static str, written: Duration) -> Option<Duration> {
        let checked = Delay::new(written).map(Delay::get).map_err(|refused| refused.range());
        self.take(field, humantime::format_duration(written), checked)
    }

    pub(crate) fn count(&mut self, field: &'static str, written: u64) -> Option<NonZeroUsize> {
        let checked = Some(written).filter(|count| *count <= LARGEST_COUNT);
        let checked = checked.and_then(|count| usize::try_from(count).ok()).and_then(NonZeroUsize::new);
        self.take(field, written, checked.ok_or("1 to 1048576"))
    }

    /// The outer `None` is a refused limit, the inner one no limit.
    pub(super) fn limit(&mut self, field: &'static str, written: Limit) -> Option<Option<NonZeroU32>> {
        let checked = match written {
            Limit::Unlimited => Ok(None),
            Limit::At(count) => u32::try_from(count)
                .ok()
                .and_then(NonZeroU32::new)
                .map(Some)
                .ok_or("1 to 4294967295, or \"unlimited\""),
        };
        self.take(field, written, checked)
    }
}
