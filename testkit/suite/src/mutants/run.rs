//! Runs the cases on mutants until some notice.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};

use super::{Caught, Mutant, MutantReport, all};
use crate::case::Case;
use crate::contract::Contract;
use crate::harness::Harness;
use crate::profile::Profile;

/// How many cases are named that noticed a mutant.
const ENOUGH: usize = 3;
/// How long a case waits on a mutant. Short: many mutants answer never, and the broker beneath is quick.
const PATIENCE: Duration = Duration::from_secs(3);
/// How many mutants run at once.
const AT_ONCE: usize = 4;

/// Runs the contract on every mutant of a broker that keeps it, each on a broker of its own, in the profiles in which
/// the fault can matter, until a few cases noticed it.
///
/// The broker must be quick to answer, as one in the same process is.
pub async fn run<H: Harness>(start: impl Fn() -> H, profiles: Vec<Profile>) -> MutantReport {
    let tried: Vec<_> =
        all().into_iter().map(|mutant| (Arc::new(start()) as Arc<dyn Harness>, mutant)).collect();
    let mut running =
        stream::iter(tried).map(|(harness, mutant)| one(harness, mutant, &profiles)).buffered(AT_ONCE);
    let mut report = MutantReport::default();
    while let Some(caught) = running.next().await {
        report.push(caught);
    }
    report
}

async fn one(harness: Arc<dyn Harness>, mutant: Mutant, profiles: &[Profile]) -> Caught {
    let mut caught = Caught { mutant: mutant.name, breaks: mutant.breaks, profile: None, by: Vec::new() };
    for profile in
        profiles.iter().filter(|profile| mutant.suits.matches(profile, remembers_ids(&harness, profile)))
    {
        caught.profile = Some(profile.name.clone());
        let report = Contract::shared(Arc::clone(&harness))
            .profile(profile.clone())
            .cases(ordered(mutant.suspects))
            .wrapped(mutant.wrapper.clone())
            .parallel(16)
            .patience(PATIENCE)
            .enough(ENOUGH)
            .run()
            .await;
        caught.by = report.failures().map(|entry| entry.case.clone()).collect();
        if !caught.by.is_empty() {
            break;
        }
    }
    caught
}

fn remembers_ids(harness: &Arc<dyn Harness>, profile: &Profile) -> bool {
    crate::contract::capabilities(harness.transport(), profile)
        .is_ok_and(|capabilities| capabilities.deduplication_window().is_some())
}

/// All cases, those that should notice first.
fn ordered(suspects: &[&str]) -> Vec<Case> {
    let mut cases = crate::cases::all();
    cases.sort_by_key(|case| !suspects.iter().any(|part| case.name.contains(part)));
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suspicion_names_a_case_and_names_are_used_once() {
        let cases = crate::cases::all();
        let mut names = std::collections::BTreeSet::new();
        for mutant in all() {
            assert!(names.insert(mutant.name), "two mutants are called {:?}", mutant.name);
            for part in mutant.suspects {
                assert!(cases.iter().any(|case| case.name.contains(part)), "{}: {part:?}", mutant.name);
            }
        }
        assert!(names.len() >= 30, "{} mutants", names.len());
    }

    #[test]
    fn cases_have_names_of_their_own() {
        let mut names = std::collections::BTreeSet::new();
        for case in crate::cases::all() {
            assert!(names.insert(case.name), "two cases are called {}", case.name);
            assert!(!case.promise.is_empty());
        }
    }
}
