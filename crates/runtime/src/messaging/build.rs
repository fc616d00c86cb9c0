//! From a configuration to a running library, in two phases.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use consign_core_api::error::Phase;
use consign_core_api::spi::{
    CompletionSink, ConnectContext, Connection, Destination, PublishReply, Transport, TransportError,
};
use consign_core_api::time::Timeout;
use consign_core_api::{Code, ConfigurationError, DestinationName, Problem, TransportName};
use consign_policy::admission::Admission;
use consign_policy::plan::{Catalog, Plan, plan};
use consign_policy::profile::{DestinationProfile, KeySource};
use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use super::{Builder, Guard, Messaging};
use crate::clock::TokioClock;
use crate::codes;
use crate::core::{Core, KeyResolver, OpenDestination};
use crate::observer::Observers;
use crate::publisher::turns::Turns;
use crate::registry::Consumers;
use crate::shutdown::Shutdown;
use crate::slab::{PublishSlab, run_deadlines};

pub(super) async fn build(builder: Builder) -> Result<Messaging, ConfigurationError> {
    let Builder { transports, specs, resolvers, observers, connect_timeout } = builder;
    let mut problems = Vec::new();
    let transports = bind(transports, &mut problems);
    if let Err(error) = Timeout::new(connect_timeout) {
        problems.push(out_of_range(error.to_string()));
    }
    let mut catalog = Catalog::new();
    for (name, transport) in &transports {
        catalog = catalog.transport(name.clone(), Arc::clone(transport));
    }
    for name in resolvers.keys() {
        catalog = catalog.key_resolver(name);
    }
    let planned = plan(&specs, &catalog);
    let plan = match (planned, problems.is_empty()) {
        (Ok(plan), true) => plan,
        (Ok(_), false) => return Err(report(problems)),
        (Err(error), _) => {
            problems.extend(error.problems().iter().cloned());
            return Err(report(problems));
        }
    };
    start(plan, transports, resolvers, observers, connect_timeout).await
}

/// Phase two: connects, verifies, opens.
async fn start(
    plan: Plan,
    transports: BTreeMap<TransportName, Arc<dyn Transport>>,
    resolvers: BTreeMap<String, KeyResolver>,
    observers: Vec<Arc<dyn crate::observer::Observer>>,
    connect_timeout: Duration,
) -> Result<Messaging, ConfigurationError> {
    let clock = Arc::new(TokioClock::new());
    let opened = Opened::connect(transports, &clock, connect_timeout).await?;
    let handles = opened.open(&plan, connect_timeout).await?;
    let admission = Admission::new(*plan.admission());
    let observers = Observers::new(observers);
    let mut destinations = BTreeMap::new();
    for profile in plan.profiles() {
        let Some(handle) = handles.get(profile.name()) else { continue };
        let open = destination(&plan, profile, Arc::clone(handle), &admission, &resolvers);
        destinations.insert(profile.name().clone(), Arc::new(open));
    }
    // Verdicts may leave bytes with a client for a while; twice the publishes in flight is room for them. And outcomes
    // wait to be taken, in a window of each destination's own size.
    let windows = plan.profiles().map(|profile| profile.setup().publish.in_flight.get()).sum::<usize>();
    let in_flight = plan.admission().in_flight().get();
    let capacity = in_flight.saturating_mul(2).saturating_add(windows).saturating_add(1024);
    let slab = PublishSlab::new(capacity, observers.clone(), Arc::clone(&clock));
    let sink: Arc<dyn CompletionSink<PublishReply>> = slab.clone();
    let stop = CancellationToken::new();
    tokio::spawn(run_deadlines(Arc::clone(&slab), admission.clone(), stop.clone()));
    let core = Core {
        plan,
        destinations,
        connections: opened.disarm(),
        admission,
        slab,
        sink,
        observers,
        clock,
        consumers: Consumers::default(),
        stop,
    };
    Ok(Messaging { guard: Arc::new(Guard { core: Arc::new(core), shutdown: Shutdown::default() }) })
}

fn destination(
    plan: &Plan,
    profile: &DestinationProfile,
    handle: Arc<dyn Destination>,
    admission: &Admission,
    resolvers: &BTreeMap<String, KeyResolver>,
) -> OpenDestination {
    let setup = profile.setup();
    let capabilities = plan.capabilities(profile.name()).cloned().unwrap_or_else(unknown_capabilities);
    let pipelined = capabilities.pipelined_order() || !setup.ordering.is_ordered();
    let key_resolver = match profile.key() {
        KeySource::Custom(name) => resolvers.get(name.as_str()).cloned(),
        _ => None,
    };
    OpenDestination {
        gate: admission.destination(setup.publish.in_flight, setup.publish.max_payload),
        turns: (!pipelined).then(|| Turns::new(setup.ordering)),
        profile: profile.clone(),
        capabilities,
        handle,
        key_resolver,
    }
}

/// A plan declares capabilities for each of its profiles; this is what would hold if it did not.
fn unknown_capabilities() -> consign_core_api::Capabilities {
    use consign_core_api::capability::Ordering;
    consign_core_api::Capabilities::builder(Ordering::Unordered("not declared".into())).build()
}

fn bind(
    transports: Vec<(String, Arc<dyn Transport>)>,
    problems: &mut Vec<Problem>,
) -> BTreeMap<TransportName, Arc<dyn Transport>> {
    let mut bound = BTreeMap::new();
    for (name, transport) in transports {
        match TransportName::new(&name) {
            Ok(name) => {
                if bound.insert(name.clone(), transport).is_some() {
                    let text = format!("the transport {:?} is bound twice", name.as_str());
                    problems.push(Problem::new(
                        Phase::Fields,
                        codes::TRANSPORT_BOUND_TWICE,
                        text,
                        "bind each name once",
                    ));
                }
            }
            Err(error) => problems.push(out_of_range(error.to_string())),
        }
    }
    bound
}

fn out_of_range(text: String) -> Problem {
    Problem::new(Phase::Fields, consign_policy::codes::FIELD_OUT_OF_RANGE, text, "choose a legal value")
}

fn report(problems: Vec<Problem>) -> ConfigurationError {
    match ConfigurationError::check(problems) {
        Err(error) => error,
        Ok(()) => out_of_range("the configuration is refused without a reason".to_owned()).into(),
    }
}

/// Connections that are closed again unless the whole start succeeds.
struct Opened {
    connections: Mutex<BTreeMap<TransportName, Arc<dyn Connection>>>,
    timeout: Duration,
}

impl Opened {
    async fn connect(
        transports: BTreeMap<TransportName, Arc<dyn Transport>>,
        clock: &Arc<TokioClock>,
        timeout: Duration,
    ) -> Result<Self, ConfigurationError> {
        let opened = Self { connections: Mutex::default(), timeout };
        let attempts = transports.into_iter().map(|(name, transport)| {
            let context = ConnectContext::new(name.clone(), timeout, Arc::clone(clock) as Arc<_>);
            let opened = &opened;
            async move {
                let result = tokio::time::timeout(timeout, transport.connect(context)).await;
                // At once, not when all are there: the future may be dropped while another still connects.
                let result = result.map(|result| result.map(|connection| opened.add(&name, connection)));
                (name, result)
            }
        });
        let mut problems = Vec::new();
        for (name, result) in join_all(attempts).await {
            match result {
                Ok(Ok(())) => {}
                Ok(Err(TransportError::Refused(found))) => problems.extend(found),
                Ok(Err(error)) => problems.push(unreachable(&name, &error.to_string())),
                Err(_) => problems.push(unreachable(&name, &format!("no answer within {timeout:?}"))),
            }
        }
        ConfigurationError::check(problems)?;
        Ok(opened)
    }

    async fn open(
        &self,
        plan: &Plan,
        timeout: Duration,
    ) -> Result<BTreeMap<DestinationName, Arc<dyn Destination>>, ConfigurationError> {
        let mut problems = Vec::new();
        let mut handles = BTreeMap::new();
        let connections = self.connections().clone();
        // One after another: topology commands of two destinations may touch the same object of the broker.
        for profile in plan.profiles() {
            let Some(connection) = connections.get(profile.transport()) else { continue };
            match tokio::time::timeout(timeout, connection.open(profile.setup())).await {
                Ok(Ok(handle)) => {
                    handles.insert(profile.name().clone(), handle);
                }
                Ok(Err(found)) => problems.extend(found),
                Err(_) => problems.push(
                    preflight(
                        codes::PREFLIGHT_TIMED_OUT,
                        format!("the broker did not answer within {timeout:?}"),
                    )
                    .at(profile.name()),
                ),
            }
        }
        ConfigurationError::check(problems)?;
        Ok(handles)
    }

    fn add(&self, name: &TransportName, connection: Arc<dyn Connection>) {
        self.connections().insert(name.clone(), connection);
    }

    fn connections(&self) -> MutexGuard<'_, BTreeMap<TransportName, Arc<dyn Connection>>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn disarm(self) -> BTreeMap<TransportName, Arc<dyn Connection>> {
        std::mem::take(&mut *self.connections())
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let connections = std::mem::take(&mut *self.connections());
        let timeout = self.timeout;
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            for connection in connections.into_values() {
                drop(runtime.spawn(async move { connection.close(timeout).await }));
            }
        }
    }
}

fn preflight(code: Code, text: String) -> Problem {
    Problem::new(Phase::Preflight, code, text, "look whether the broker is up and reachable")
}

fn unreachable(name: &TransportName, why: &str) -> Problem {
    preflight(
        codes::TRANSPORT_UNREACHABLE,
        format!("the transport {:?} could not connect: {why}", name.as_str()),
    )
}
