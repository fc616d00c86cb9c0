//! The values of the publishing side.

use std::num::{NonZeroU16, NonZeroUsize};
use std::time::Duration;

use consign_core_api::MaxPayload;
use consign_core_api::outcome::{Copies, EvidenceDemand};
use consign_core_api::spi::Confirm;

use super::{Checks, Role};
use crate::profile::{CopiesSpec, EvidenceSpec, PublishSpec, spec::Size};

#[derive(Debug)]
pub(crate) struct PublishFields {
    pub(crate) deadline: Option<Duration>,
    /// The inner `None` is a limit that is not written.
    pub(crate) max_payload: Option<Option<MaxPayload>>,
    pub(crate) in_flight: Option<NonZeroUsize>,
    pub(crate) evidence: Option<EvidenceDemand>,
}

impl PublishFields {
    pub(super) fn check(spec: &PublishSpec, role: Role<'_>, checks: &mut Checks<'_>) -> Self {
        let unconfirmed = spec.confirmation == Confirm::None;
        if unconfirmed && role.dead_letter {
            let range = "required: a source is settled only after its dead-letter copy is CONFIRMED";
            checks.refuse("publish.confirmation", "none", range);
        }
        let deadline = checks.timeout("publish.deadline", spec.deadline);
        let max_payload = match spec.max_payload {
            None => Some(None),
            Some(bytes) => {
                let checked = usize::try_from(bytes).unwrap_or(usize::MAX);
                let checked = MaxPayload::new(checked).map(Some).map_err(|refused| refused.range());
                checks.take("publish.max_payload", Size(bytes), checked)
            }
        };
        let in_flight = checks.count("publish.in_flight", spec.in_flight);
        if unconfirmed && spec.evidence != EvidenceSpec::default() {
            let range = "none where publish.confirmation is none: what is not confirmed has no evidence";
            checks.refuse("publish.evidence", "demanded", range);
        }
        Self { deadline, max_payload, in_flight, evidence: evidence(&spec.evidence, checks) }
    }
}

fn evidence(spec: &EvidenceSpec, checks: &mut Checks<'_>) -> Option<EvidenceDemand> {
    let copies = match spec.copies {
        None => None,
        Some(CopiesSpec::Leader) => Some(Copies::Leader),
        Some(written @ CopiesSpec::Quorum(least)) => {
            let least = u16::try_from(least).ok().filter(|least| *least >= 2).and_then(NonZeroU16::new);
            let range = "a quorum of 2 to 65535; one copy is \"leader\"";
            let copies = least.map(|min| Copies::Quorum { min }).ok_or(range);
            Some(checks.take("publish.evidence.copies", written, copies)?)
        }
    };
    Some(EvidenceDemand::new(copies, spec.persistence, spec.basis))
}
