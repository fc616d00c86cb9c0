//! The fifteen contradictions within one profile, in the order in which they are reported.

mod delivery;
mod hold;
mod ordering;
mod retry;

use std::fmt;

use consign_core_api::error::Phase;
use consign_core_api::{Code, Problem};
use serde::Serialize;

use super::ProfileSpec;
use super::fields::{Fields, Role};
use crate::codes;

pub(crate) use hold::{Hold, worst_hold};

/// A profile as rules see it: what is written, and which values are legal.
pub(crate) struct Subject<'a> {
    pub(crate) name: &'a str,
    pub(crate) spec: &'a ProfileSpec,
    pub(crate) fields: &'a Fields,
    pub(crate) role: Role<'a>,
}

/// A rule finds a contradiction, or nothing. It finds nothing where it reads a value that was refused.
type Rule = fn(&Subject<'_>) -> Option<Found>;

/// A rule's number is its place here, from 1.
const RULES: [(Code, Rule); 15] = [
    (codes::KEY_ORDERING_WITHOUT_KEY_RESOLVER, ordering::key_without_resolver),
    (codes::ORDERED_WITH_REORDERING_RETRY, ordering::reordering_retry),
    (codes::PRESERVE_WITH_REPUBLISHING_RETRY, retry::preserve_by_republishing),
    (codes::RETRY_DESTINATION_MISSING, retry::destination_missing),
    (codes::RETRY_DESTINATION_UNUSED, retry::destination_unused),
    (codes::RETRY_ATTEMPTS_CONTRADICT_STRATEGY, retry::attempts),
    (codes::BACKOFF_INVALID, retry::backoff),
    (codes::AT_MOST_ONCE_WITH_RETRY, delivery::at_most_once_with_retry),
    (codes::AT_MOST_ONCE_WITH_INBOX, delivery::at_most_once_with_inbox),
    (codes::AT_LEAST_ONCE_WITHOUT_CONFIRMATION, delivery::at_least_once_without_confirmation),
    (codes::DESTINATION_ORDERING_WITH_CONCURRENCY, ordering::destination_with_concurrency),
    (codes::ORDERED_WITH_UNIT_CONCURRENCY, ordering::unit_concurrency),
    (codes::IN_PLACE_HOLD_EXCEEDS_SETTLEMENT_DEADLINE, hold::exceeds_deadline),
    (codes::INBOX_WITHOUT_MESSAGE_IDENTITY, delivery::inbox_without_identity),
    (codes::AT_MOST_ONCE_WITH_DEAD_LETTER, delivery::at_most_once_with_dead_letter),
];

/// Reports every contradiction of a profile. Each rule takes constant time.
pub(crate) fn check(subject: &Subject<'_>, problems: &mut Vec<Problem>) {
    for (number, (code, rule)) in (1..).zip(RULES) {
        let Some(found) = rule(subject) else { continue };
        let mut problem = Problem::new(Phase::Rules, code, found.message, found.help);
        for (field, value) in found.fields {
            problem = problem.field(field, value);
        }
        problems.push(problem.at_text(subject.name).ranked(number));
    }
}

/// A contradiction: what is wrong, what to change, and the fields at fault.
struct Found {
    message: String,
    help: &'static str,
    fields: Vec<(&'static str, String)>,
}

impl Found {
    fn new(message: impl Into<String>, help: &'static str) -> Self {
        Self { message: message.into(), help, fields: Vec::new() }
    }

    fn field(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.fields.push((name, value.to_string()));
        self
    }
}

/// Returns a value as it is written in a profile.
fn written(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => text,
        other => other.map(|value| value.to_string()).unwrap_or_default(),
    }
}
