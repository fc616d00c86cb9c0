//! Where things come from: transport, key, message id.

use consign_core_api::TransportName;

use super::Checks;
use crate::codes;
use crate::plan::Catalog;
use crate::profile::{
    HeaderName, JsonPointer, KeySource, KeySpec, MessageIdSource, MessageIdSpec, ProfileSpec,
};

pub(super) fn transport(
    spec: &ProfileSpec,
    catalog: &Catalog,
    checks: &mut Checks<'_>,
) -> Option<TransportName> {
    let written = spec.transport.as_str();
    if let Some((name, _)) = catalog.bound(written) {
        return Some(name.clone());
    }
    if let Err(illegal) = TransportName::new(written) {
        checks.refuse("transport", format_args!("{written:?}"), illegal.reason());
        return None;
    }
    let known: Vec<&str> = catalog.names().collect();
    let help = match known.as_slice() {
        [] => format!("bind a transport under the name {written:?}; none is bound"),
        known => format!("bind a transport under this name, or name one that is bound: {}", known.join(", ")),
    };
    let message = format!("no transport is bound as {written:?}");
    checks.report(codes::TRANSPORT_UNBOUND, message, "transport", written, help);
    None
}

pub(super) fn key(spec: Option<&KeySpec>, catalog: &Catalog, checks: &mut Checks<'_>) -> Option<KeySource> {
    match spec {
        None => Some(KeySource::None),
        Some(KeySpec::From(_)) => Some(KeySource::Message),
        Some(KeySpec::Header(name)) => {
            checks.take("key.header", format_args!("{name:?}"), HeaderName::new(name).map(KeySource::Header))
        }
        Some(KeySpec::JsonPointer(pointer)) => {
            let checked = JsonPointer::new(pointer).map(KeySource::JsonPointer);
            checks.take("key.json_pointer", format_args!("{pointer:?}"), checked)
        }
        Some(KeySpec::Custom(name)) if catalog.resolves(name) => Some(KeySource::Custom(name.clone())),
        Some(KeySpec::Custom(name)) => {
            let message = format!("no key resolver is registered as {name:?}");
            let help = "register it on the builder, or take the key from elsewhere";
            checks.report(codes::KEY_RESOLVER_UNREGISTERED, message, "key.custom", name, help);
            None
        }
    }
}

pub(super) fn message_id(spec: &MessageIdSpec, checks: &mut Checks<'_>) -> Option<MessageIdSource> {
    match spec {
        MessageIdSpec::Generate => Some(MessageIdSource::Generate),
        MessageIdSpec::Native => Some(MessageIdSource::Native),
        MessageIdSpec::None => Some(MessageIdSource::None),
        MessageIdSpec::Header(name) => {
            let checked = HeaderName::new(name).map(MessageIdSource::Header);
            checks.take("message_id.header", format_args!("{name:?}"), checked)
        }
    }
}
