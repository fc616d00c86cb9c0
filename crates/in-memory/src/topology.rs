//! Opening: a destination of an embedded broker is part of the process, so it springs into existence when it is first
//! opened, whatever the mode. Opening it again with other settings is refused.

use std::sync::Arc;

use consign_core_api::error::{Phase, Problem};
use consign_core_api::spi::{Destination, DestinationSetup};

use crate::broker::ConnectionState;
use crate::codes::TOPOLOGY_MISMATCH;
use crate::config::Settings;
use crate::publisher::InMemoryDestination;

/// Opens a destination, or reports every setting that differs from what is there.
pub(crate) fn open(
    connection: &Arc<ConnectionState>,
    setup: &DestinationSetup,
) -> Result<Arc<dyn Destination>, Vec<Problem>> {
    let wanted = Settings::read(setup)?;
    let state = connection.shared.open(&setup.name, wanted);
    let there = state.settings;
    let problems: Vec<_> = [
        ("partitions", wanted.partitions.to_string(), there.partitions.to_string()),
        ("capacity", wanted.capacity.to_string(), there.capacity.to_string()),
        (
            "deduplication_window",
            format!("{:?}", wanted.deduplication_window),
            format!("{:?}", there.deduplication_window),
        ),
    ]
    .into_iter()
    .filter(|(_, wanted, there)| wanted != there)
    .map(|(field, wanted, there)| mismatch(setup, &format!("native.{field}"), &wanted, &there))
    .collect();
    if problems.is_empty() {
        Ok(Arc::new(InMemoryDestination::new(Arc::clone(connection), state, setup)))
    } else {
        Err(problems)
    }
}

/// Something is there already, and differs.
pub(crate) fn mismatch(setup: &DestinationSetup, field: &str, wanted: &str, there: &str) -> Problem {
    let message = format!("the destination exists in this broker with {field} = {there}");
    let help = "give every set-up of this destination on this broker the same settings";
    Problem::new(Phase::Preflight, TOPOLOGY_MISMATCH, message, help).at(&setup.name).field(field, wanted)
}
