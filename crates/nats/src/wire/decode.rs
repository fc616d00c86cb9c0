//! Headers and payload to a message. A malformed header of the library's own counts as absent.

use async_nats::header::{HeaderMap, NATS_MESSAGE_ID};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use consign_core_api::message::{EncodedMessage, Headers, Message, MessageId, Payload, Timestamp, reserved};

use super::is_servers;

/// The headers that this adapter writes for itself, beside the server's.
pub(super) const OWN: [&str; 4] = [reserved::ID, reserved::KEY, reserved::TOMBSTONE, reserved::TIMESTAMP];

/// Reads a message. The payload is not copied.
pub(crate) fn decode(headers: Option<&HeaderMap>, payload: Bytes) -> EncodedMessage {
    let (_, mut parts) = Message::<()>::tombstone().into_parts();
    let Some(native) = headers else { return EncodedMessage::new(payload, parts) };
    let text = |name: &str| native.get(name).map(async_nats::HeaderValue::as_str);
    parts.id = native.get(NATS_MESSAGE_ID).and_then(|id| MessageId::new(id.as_str()).ok());
    parts.key = text(reserved::KEY).and_then(|key| URL_SAFE_NO_PAD.decode(key).ok()).map(Bytes::from);
    parts.timestamp =
        text(reserved::TIMESTAMP).and_then(|millis| millis.parse().ok()).map(Timestamp::from_millis);
    let is_tombstone = text(reserved::TOMBSTONE).is_some() && payload.is_empty();
    parts.headers = users(native);
    if is_tombstone {
        EncodedMessage::new(Payload::Tombstone, parts)
    } else {
        EncodedMessage::new(payload, parts)
    }
}

/// The client keeps the order of equal names only; different names are sorted, so that reading twice gives the same.
fn users(native: &HeaderMap) -> Headers {
    let mut names: Vec<_> = native
        .iter()
        .map(|(name, values)| (AsRef::<[u8]>::as_ref(name), values))
        .filter_map(|(name, values)| Some((std::str::from_utf8(name).ok()?, values)))
        .filter(|(name, _)| !is_servers(name) && !OWN.contains(name))
        .collect();
    names.sort_unstable_by_key(|(name, _)| *name);
    let each = |(name, values): (&'_ str, &Vec<async_nats::HeaderValue>)| {
        let name = name.to_owned();
        values.iter().map(move |value| (name.clone(), value.as_str().to_owned())).collect::<Vec<_>>()
    };
    names.into_iter().flat_map(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_headers_of_the_library_count_as_absent_and_the_servers_are_left_out() {
        let mut headers = HeaderMap::new();
        headers.insert(NATS_MESSAGE_ID, "two words");
        headers.insert("Nats-Expected-Stream", "S");
        headers.insert(reserved::KEY, "not/base64url=");
        headers.insert(reserved::TIMESTAMP, "yesterday");
        headers.insert(reserved::TOMBSTONE, "1");
        headers.insert("b", "2");
        headers.append("a", "1");
        headers.append("a", "0");
        let message = decode(Some(&headers), Bytes::from_static(b"body"));
        assert_eq!((message.id(), message.key(), message.timestamp()), (None, None, None));
        assert_eq!(message.payload(), &Payload::from("body"), "a payload is not thrown away for a marker");
        let shown: Vec<_> = message.headers().iter().map(|h| (h.name(), h.text().unwrap())).collect();
        assert_eq!(shown, [("a", "1"), ("a", "0"), ("b", "2")]);
    }
}
