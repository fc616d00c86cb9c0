//! Everything that happens to a message before admission: encoding, key, id, headers.

use std::borrow::Borrow;

use bytes::Bytes;
use consign_core_api::message::reserved;
use consign_core_api::time::Clock;
use consign_core_api::{
    Code, Codec, EncodedMessage, Failure, FailureCategory, Message, MessageId, OrderingScope, Payload,
    Rejection, Timestamp,
};
use consign_policy::profile::{KeySource, MessageIdSource};

use crate::codes;
use crate::core::{Core, OpenDestination};

/// Encodes the value; a tombstone never meets the codec.
pub(super) fn encode<T: 'static, V: Borrow<T>>(
    codec: &dyn Codec<T>,
    message: Message<V>,
) -> Result<EncodedMessage, Rejection> {
    let (value, parts) = message.into_parts();
    let payload = match value {
        None => Payload::Tombstone,
        Some(value) => match codec.encode(value.borrow()) {
            Ok(bytes) => Payload::Bytes(bytes),
            Err(error) => {
                let failure = Failure::new(
                    FailureCategory::PermanentBusiness,
                    consign_core_api::codes::ENCODE_FAILED,
                    "the codec could not encode the value",
                );
                return Err(Rejection::not_transmitted(failure.with_source(error), None));
            }
        },
    };
    Ok(EncodedMessage::new(payload, parts))
}

/// Checks headers, and resolves key, id and timestamp as the profile says.
pub(super) fn complete(
    destination: &OpenDestination,
    mut message: EncodedMessage,
    core: &Core,
) -> Result<EncodedMessage, Rejection> {
    let resolved = check_headers(&message)
        .and_then(|()| resolve_key(destination, &mut message))
        .and_then(|()| resolve_id(destination, &mut message));
    if let Err(failure) = resolved {
        return Err(Rejection::not_transmitted(failure, Some(message)));
    }
    if message.timestamp().is_none() {
        message.set_timestamp(Some(Timestamp::from(core.clock.wall())));
    }
    Ok(message)
}

fn permanent(code: Code, text: String) -> Failure {
    Failure::new(FailureCategory::PermanentBusiness, code, text)
}

fn check_headers(message: &EncodedMessage) -> Result<(), Failure> {
    for header in message.headers() {
        if header.name().is_empty() {
            let text = "a header has an empty name".to_owned();
            return Err(permanent(consign_core_api::codes::HEADER_INVALID, text));
        }
        if reserved::is_reserved(header.name()) {
            let text = format!("the header name {:?} belongs to the library", shown(header.name()));
            return Err(permanent(consign_core_api::codes::RESERVED_HEADER, text));
        }
    }
    Ok(())
}

fn resolve_key(destination: &OpenDestination, message: &mut EncodedMessage) -> Result<(), Failure> {
    let resolved = match destination.profile().key() {
        KeySource::Message => {
            let needed = destination.profile().setup().ordering == OrderingScope::Key;
            return if needed && message.key().is_none() {
                Err(permanent(
                    codes::KEY_UNRESOLVED,
                    "key ordering, and the message carries no key".to_owned(),
                ))
            } else {
                Ok(())
            };
        }
        KeySource::None => return Ok(()),
        KeySource::Header(name) => {
            let header = message.headers().first(name.as_str());
            header.map(|header| header.value().clone()).ok_or_else(|| {
                permanent(codes::KEY_UNRESOLVED, format!("no header {name:?} to take the key from"))
            })?
        }
        KeySource::JsonPointer(pointer) => from_json(message.payload(), pointer.as_str())?,
        KeySource::Custom(name) => {
            let resolver = destination.key_resolver.as_ref();
            resolver.and_then(|resolve| resolve(message)).ok_or_else(|| {
                permanent(codes::KEY_UNRESOLVED, format!("the key resolver {name:?} found no key"))
            })?
        }
        _ => return Err(permanent(codes::KEY_UNRESOLVED, "an unknown source of keys".to_owned())),
    };
    if message.key().is_some_and(|explicit| *explicit != resolved) {
        let text = "the explicit key differs from the one that the profile's resolver found".to_owned();
        return Err(permanent(codes::KEY_CONFLICT, text));
    }
    message.set_key(Some(resolved));
    Ok(())
}

/// Takes a string's bytes, or the JSON text of a number or a truth value.
fn from_json(payload: &Payload, pointer: &str) -> Result<Bytes, Failure> {
    use serde_json::Value;
    let unresolved = |why: &str| permanent(codes::KEY_UNRESOLVED, format!("JSON pointer {pointer:?}: {why}"));
    let bytes = payload.as_bytes().ok_or_else(|| unresolved("the message is a tombstone"))?;
    let value: Value = serde_json::from_slice(bytes).map_err(|_| unresolved("the payload is no JSON"))?;
    match value.pointer(pointer) {
        Some(Value::String(text)) => Ok(Bytes::copy_from_slice(text.as_bytes())),
        Some(scalar @ (Value::Number(_) | Value::Bool(_))) => Ok(scalar.to_string().into()),
        Some(_) => Err(unresolved("it points at no string, number or truth value")),
        None => Err(unresolved("it points at nothing")),
    }
}

fn resolve_id(destination: &OpenDestination, message: &mut EncodedMessage) -> Result<(), Failure> {
    match destination.profile().message_id() {
        MessageIdSource::Generate if message.id().is_none() => message.set_id(Some(MessageId::generate())),
        MessageIdSource::Header(name) => {
            let text = message.headers().first(name.as_str()).and_then(|header| header.text());
            let id = text.and_then(|text| MessageId::new(text).ok()).ok_or_else(|| {
                permanent(codes::MESSAGE_ID_UNRESOLVED, format!("no legal message id in a header {name:?}"))
            })?;
            message.set_id(Some(id));
        }
        _ => {}
    }
    Ok(())
}

fn shown(name: &str) -> String {
    name.chars().take(64).collect()
}
