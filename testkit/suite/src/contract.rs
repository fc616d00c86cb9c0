//! Runs the cases.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use consign_core_api::spi::Transport;
use consign_core_api::{Capabilities, DestinationName, TransportName};
use consign_policy::{Catalog, ProfileSpecs, plan};
use futures_util::FutureExt;
use futures_util::stream::{self, StreamExt};

use crate::case::Case;
use crate::cases;
use crate::harness::Harness;
use crate::lab::{Lab, PATIENCE};
use crate::profile::Profile;
use crate::report::{Entry, Report, Verdict};
use crate::wrap::Wrapper;

/// The longest that one case may take.
const CASE_BOUND: Duration = Duration::from_secs(90);

/// Starts a run of the contract on a broker.
pub fn contract(harness: impl Harness) -> Contract {
    Contract::shared(Arc::new(harness))
}

/// A run to be: a broker, its profiles, and a choice of cases.
#[must_use = "a contract proves nothing until it runs"]
pub struct Contract {
    harness: Arc<dyn Harness>,
    profiles: Vec<Profile>,
    only: Option<String>,
    cases: Vec<Case>,
    wrapper: Option<Wrapper>,
    parallel: usize,
    patience: Duration,
    enough: usize,
}

impl Contract {
    /// Starts a run on a broker that is used elsewhere too.
    pub fn shared(harness: Arc<dyn Harness>) -> Self {
        Self {
            harness,
            profiles: Vec::new(),
            only: None,
            cases: cases::all(),
            wrapper: None,
            parallel: 4,
            patience: PATIENCE,
            enough: usize::MAX,
        }
    }

    /// Adds a configuration.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profiles.push(profile);
        self
    }

    /// Runs only the cases whose name contains this.
    pub fn only(mut self, part: impl Into<String>) -> Self {
        self.only = Some(part.into());
        self
    }

    /// Runs these cases instead of all.
    pub fn cases(mut self, cases: Vec<Case>) -> Self {
        self.cases = cases;
        self
    }

    /// Puts something between the runtime and the transport, such as a mutant.
    pub fn wrapped(mut self, wrapper: Wrapper) -> Self {
        self.wrapper = Some(wrapper);
        self
    }

    /// Sets how many cases run at once; the default is 4. Cases that do something to the whole broker run alone.
    pub const fn parallel(mut self, cases: usize) -> Self {
        self.parallel = if cases == 0 { 1 } else { cases };
        self
    }

    /// Sets the longest that a case waits for anything; the default is 20 s. A broker far away may need more.
    pub const fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Ends the run after so many failures. What runs then is given up and not in the report.
    pub(crate) const fn enough(mut self, failures: usize) -> Self {
        self.enough = failures;
        self
    }

    /// Runs every case in every profile.
    pub async fn run(self) -> Report {
        let version = self.harness.version().await;
        let mut report = Report::default();
        for profile in &self.profiles {
            let capabilities = match capabilities(self.transport(), profile) {
                Ok(capabilities) => capabilities,
                Err(why) => {
                    report.push(self.entry(
                        &version,
                        profile,
                        "profile",
                        Verdict::Failed(why),
                        Duration::ZERO,
                    ));
                    continue;
                }
            };
            let chosen =
                |case: &&Case| self.only.as_ref().is_none_or(|part| case.name.contains(part.as_str()));
            let mut alone = Vec::new();
            let mut together = Vec::new();
            for case in self.cases.iter().filter(chosen) {
                let unmet = case
                    .needs
                    .iter()
                    .find_map(|need| need.unmet(self.harness.as_ref(), profile, &capabilities));
                match unmet {
                    Some(why) => report.push(self.entry(
                        &version,
                        profile,
                        case.name,
                        Verdict::NotApplicable(why),
                        Duration::ZERO,
                    )),
                    None if case.touches_the_whole_broker() => alone.push(*case),
                    None => together.push(*case),
                }
            }
            let mut running = stream::iter(together)
                .map(|case| self.one(&version, profile, &capabilities, case))
                .buffer_unordered(self.parallel);
            while let Some(entry) = running.next().await {
                report.push(entry);
                if report.failures().count() >= self.enough {
                    return report;
                }
            }
            drop(running);
            for case in alone {
                report.push(self.one(&version, profile, &capabilities, case).await);
                if report.failures().count() >= self.enough {
                    return report;
                }
            }
        }
        report
    }

    /// What a case will see: the transport with whatever is put in front of it.
    fn transport(&self) -> Arc<dyn Transport> {
        let transport = self.harness.transport();
        match &self.wrapper {
            Some(wrap) => wrap(transport),
            None => transport,
        }
    }

    async fn one(&self, version: &str, profile: &Profile, capabilities: &Capabilities, case: Case) -> Entry {
        let lab = Arc::new(Lab::new(
            Arc::clone(&self.harness),
            profile.clone(),
            capabilities.clone(),
            unique(),
            self.wrapper.clone(),
            self.patience,
        ));
        let started = Instant::now();
        let task = {
            let lab = Arc::clone(&lab);
            // A task of its own, so that a case that blocks or panics takes nothing with it.
            tokio::spawn(async move { AssertUnwindSafe((case.run)(&lab)).catch_unwind().await })
        };
        // A run that is given up takes its cases with it.
        let abort = AbortOnDrop(task.abort_handle());
        let verdict = match tokio::time::timeout(CASE_BOUND, task).await {
            Ok(Ok(Ok(Ok(())))) => Verdict::Passed,
            Ok(Ok(Ok(Err(error)))) => Verdict::Failed(format!("{error:?}")),
            Ok(Ok(Err(panic))) => Verdict::Failed(format!("panicked: {}", panic_text(panic.as_ref()))),
            Ok(Err(error)) => Verdict::Failed(error.to_string()),
            Err(_) => Verdict::Failed(format!("no end within {CASE_BOUND:?}")),
        };
        drop(abort);
        let mut entry = self.entry(version, profile, case.name, verdict, started.elapsed());
        if matches!(entry.verdict, Verdict::Failed(_)) {
            entry.history = lab.history().lines();
        }
        entry
    }

    fn entry(&self, version: &str, profile: &Profile, case: &str, verdict: Verdict, took: Duration) -> Entry {
        Entry {
            adapter: self.harness.adapter().to_owned(),
            version: version.to_owned(),
            profile: profile.name.clone(),
            case: case.to_owned(),
            verdict,
            millis: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            history: Vec::new(),
        }
    }
}

impl std::fmt::Debug for Contract {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contract").field("adapter", &self.harness.adapter()).finish_non_exhaustive()
    }
}

/// Ends a task that nobody waits for any more.
struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Asks the transport what it declares of a destination of this profile, which must be free of contradictions.
pub(crate) fn capabilities(transport: Arc<dyn Transport>, profile: &Profile) -> Result<Capabilities, String> {
    let name = TransportName::new("main").map_err(|error| error.to_string())?;
    let specs = ProfileSpecs::new().with("contract", profile.spec());
    let plan = plan(&specs, &Catalog::new().transport(name, transport))
        .map_err(|report| format!("the profile is refused: {report}"))?;
    let name = DestinationName::new("contract").map_err(|error| error.to_string())?;
    plan.capabilities(&name).cloned().ok_or_else(|| "nothing is declared".to_owned())
}

/// Makes a prefix that no other case and no other run uses.
fn unique() -> String {
    let id = consign_core_api::MessageId::generate().to_string();
    let random: String = id.chars().rev().filter(char::is_ascii_alphanumeric).take(12).collect();
    format!("c{random}")
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a text".to_owned())
}
