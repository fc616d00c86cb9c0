//! Streams and durable consumers: declared, verified, or trusted, and compared with what a profile promises.

mod group;
mod preflight;
mod requests;

use consign_core_api::error::{Phase, Problem};
use consign_core_api::outcome::{ConfirmationEvidence, Evidenced};
use consign_core_api::spi::{DestinationSetup, TopologyMode};

pub(crate) use group::{Group, Recreate};

use self::requests::Refused;
use crate::connection::Shared;
use crate::profile::{Names, NativeProfile};
use crate::{capability, codes};

/// A destination whose stream was looked at.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) native: NativeProfile,
    pub(crate) names: Names,
    /// What an acknowledgement of the stream stands for.
    pub(crate) evidence: ConfirmationEvidence,
}

/// Declares or verifies the stream of a destination, and compares it with the profile. Each request is bounded by the
/// connection's request timeout.
pub(crate) async fn prepare(shared: &Shared, setup: &DestinationSetup) -> Result<Prepared, Vec<Problem>> {
    let (native, names) = NativeProfile::read(setup)?;
    let persistence = Evidenced::declared(native.persistence());
    if setup.topology == TopologyMode::Trust {
        let copies = Evidenced::declared(capability::copies(native.replicas.unwrap_or(1)));
        let evidence = ConfirmationEvidence::new(copies, persistence);
        return Ok(Prepared { native, names, evidence });
    }
    let found = match requests::stream(shared, names.stream()).await {
        Err(Refused::Missing) if setup.topology == TopologyMode::Declare => {
            requests::create_stream(shared, preflight::wanted(&native, &names)).await
        }
        found => found,
    };
    let info = found.map_err(|refused| vec![stream_problem(&refused, &names).at(&setup.name)])?;
    let interested = match preflight::needs_interest(&info.config) {
        false => true,
        true => {
            let consumers = requests::consumers(shared, names.stream()).await;
            let consumers =
                consumers.map_err(|refused| vec![stream_problem(&refused, &names).at(&setup.name)])?;
            preflight::interested(&names, &consumers)
        }
    };
    let problems = preflight::problems(setup, &native, &names, &info.config, interested);
    if !problems.is_empty() {
        return Err(problems);
    }
    let replicas = u32::try_from(info.config.num_replicas).unwrap_or(1);
    let evidence = ConfirmationEvidence::new(Evidenced::observed(capability::copies(replicas)), persistence);
    Ok(Prepared { native, names, evidence })
}

fn stream_problem(refused: &Refused, names: &Names) -> Problem {
    let problem = match refused {
        Refused::Missing => Problem::new(
            Phase::Preflight,
            codes::TOPOLOGY_MISSING,
            "the stream does not exist",
            "create it, or use topology = \"declare\"",
        ),
        other => Problem::new(
            Phase::Preflight,
            codes::NATS_REQUEST_FAILED,
            format!("the stream cannot be looked at or created: {other}"),
            "see the text; permissions on $JS.API, JetStream and its limits are the usual causes",
        ),
    };
    problem.field("native.stream", names.stream())
}
