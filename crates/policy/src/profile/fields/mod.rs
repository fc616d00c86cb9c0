//! Single values: each is in its range, or reported.

mod checks;
mod consumer;
mod ends;
mod publish;
mod retry;
mod source;

use consign_core_api::{DestinationName, Problem, TransportName};

use super::{KeySource, MessageIdSource, OnExhausted, ProfileSpec};
use crate::plan::Catalog;

pub(crate) use checks::Checks;
pub(crate) use consumer::ConsumerFields;
pub(crate) use publish::PublishFields;
pub(crate) use retry::RetryFields;

/// What other profiles make of a destination.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Role<'a> {
    /// The origin whose retry destination it is.
    pub(crate) origin: Option<&'a str>,
    /// Its place among the origin's retry destinations, from 1; 0 for any other destination.
    pub(crate) place: u32,
    /// Whether it takes dead letters.
    pub(crate) dead_letter: bool,
}

/// The values of one profile. `None` is a value that was refused; rules that read it are skipped.
#[derive(Debug)]
pub(crate) struct Fields {
    pub(crate) transport: Option<TransportName>,
    pub(crate) key: Option<KeySource>,
    pub(crate) message_id: Option<MessageIdSource>,
    pub(crate) publish: PublishFields,
    pub(crate) consumer: ConsumerFields,
    pub(crate) retry: RetryFields,
    pub(crate) on_exhausted: Option<OnExhausted>,
    /// Whether nothing at all was refused.
    pub(crate) legal: bool,
}

impl Fields {
    /// Checks every value by itself, in the order in which profiles are written. Linear in the size of the profile.
    pub(crate) fn check(
        name: &str,
        spec: &ProfileSpec,
        role: Role<'_>,
        catalog: &Catalog,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let before = problems.len();
        let mut checks = Checks::new(name, problems);
        if let Err(illegal) = DestinationName::new(name) {
            checks.refuse("name", format_args!("{name:?}"), illegal.reason());
        }
        let transport = source::transport(spec, catalog, &mut checks);
        ends::delivery(spec, role, &mut checks);
        let key = source::key(spec.key.as_ref(), catalog, &mut checks);
        let message_id = source::message_id(&spec.message_id, &mut checks);
        let publish = PublishFields::check(&spec.publish, role, &mut checks);
        let consumer = ConsumerFields::check(&spec.consumer, spec.ordering, &mut checks);
        let retry = RetryFields::check(&spec.retry, role, &mut checks);
        let on_exhausted = ends::on_exhausted(spec, role, &mut checks);
        let legal = problems.len() == before;
        Self { transport, key, message_id, publish, consumer, retry, on_exhausted, legal }
    }
}
