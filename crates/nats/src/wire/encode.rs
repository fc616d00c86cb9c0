//! A message to headers and payload. Nothing is altered: what cannot be carried is refused.

use std::str::FromStr;

use async_nats::header::{HeaderMap, HeaderName, HeaderValue, NATS_EXPECTED_STREAM, NATS_MESSAGE_ID};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use consign_core_api::message::{EncodedMessage, Header, Payload, reserved};

use super::is_servers;

/// The header that cannot be carried.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Uncarried {
    /// Its name is empty.
    Nameless,
    /// Its name is one that this adapter writes itself.
    Reserved(String),
    /// Its name or value is no text that NATS carries unchanged, or its name is the server's.
    Header(String),
}

/// Turns a message into headers and payload. The payload is not copied.
pub(crate) fn encode(message: &EncodedMessage, stream: &str) -> Result<(HeaderMap, Bytes), Uncarried> {
    let mut headers = HeaderMap::new();
    headers.insert(NATS_EXPECTED_STREAM, text(stream).ok_or_else(|| Uncarried::Header("stream".into()))?);
    if let Some(id) = message.id() {
        // A message id is visible ASCII.
        let id = id.with_str(text).ok_or_else(|| Uncarried::Header(reserved::ID.into()))?;
        headers.insert(NATS_MESSAGE_ID, id);
    }
    if let Some(key) = message.key() {
        headers.insert(KEY, URL_SAFE_NO_PAD.encode(key));
    }
    if let Some(timestamp) = message.timestamp() {
        headers.insert(TIMESTAMP, HeaderValue::from(timestamp.millis()));
    }
    for header in message.headers() {
        let (name, value) = carried(header)?;
        headers.append(name, value);
    }
    let payload = match message.payload() {
        Payload::Bytes(bytes) => bytes.clone(),
        Payload::Tombstone => {
            headers.insert(TOMBSTONE, "1");
            Bytes::new()
        }
    };
    Ok((headers, payload))
}

const KEY: HeaderName = HeaderName::from_static(reserved::KEY);
const TIMESTAMP: HeaderName = HeaderName::from_static(reserved::TIMESTAMP);
const TOMBSTONE: HeaderName = HeaderName::from_static(reserved::TOMBSTONE);

fn carried(header: &Header) -> Result<(HeaderName, HeaderValue), Uncarried> {
    let name = header.name();
    if name.is_empty() {
        return Err(Uncarried::Nameless);
    }
    if super::decode::OWN.iter().any(|own| own.eq_ignore_ascii_case(name)) {
        return Err(Uncarried::Reserved(name.to_owned()));
    }
    let refuse = || Uncarried::Header(name.to_owned());
    if is_servers(name) {
        return Err(refuse());
    }
    let value = std::str::from_utf8(header.value()).ok().and_then(text).ok_or_else(refuse)?;
    let name = HeaderName::from_str(name).map_err(|_| refuse())?;
    Ok((name, value))
}

/// A value that comes out as it went in: the client refuses line breaks and trims outer blanks when reading.
fn text(value: &str) -> Option<HeaderValue> {
    if value.trim().len() != value.len() {
        return None;
    }
    HeaderValue::from_str(value).ok()
}

#[cfg(test)]
mod tests {
    use consign_core_api::message::{Message, MessageId, Timestamp};
    use proptest::prelude::*;

    use super::super::decode;
    use super::*;

    fn with_header(name: &str, value: &[u8]) -> EncodedMessage {
        let (_, parts) = Message::<()>::tombstone().header(name, value).into_parts();
        EncodedMessage::new("x", parts)
    }

    #[test]
    fn what_nats_cannot_carry_unchanged_is_refused_by_name() {
        for value in [&b"a\r\nb"[..], b"a\nb", b"\xff\xfe", b" a", b"a\t", "a\u{2003}".as_bytes()] {
            let refused = encode(&with_header("x-user", value), "S").unwrap_err();
            assert_eq!(refused, Uncarried::Header("x-user".into()), "{value:?}");
        }
        for name in ["a b", "a:b", "ü", "a\r\n", "Nats-Msg-Id", "nats-rollup", "NATS-TTL"] {
            let refused = encode(&with_header(name, b"1"), "S").unwrap_err();
            assert_eq!(refused, Uncarried::Header(name.into()));
        }
        assert_eq!(encode(&with_header("", b"1"), "S").unwrap_err(), Uncarried::Nameless);
        let own = encode(&with_header("Consign-Key", b"1"), "S").unwrap_err();
        assert_eq!(own, Uncarried::Reserved("Consign-Key".into()));
    }

    #[test]
    fn a_payload_is_not_copied() {
        let bytes = Bytes::from(vec![7_u8; 64]);
        let message = EncodedMessage::new(bytes.clone(), Message::<()>::tombstone().into_parts().1);
        let (_, payload) = encode(&message, "S").unwrap();
        assert_eq!(payload.as_ptr(), bytes.as_ptr());
    }

    proptest! {
        #[test]
        fn every_carried_message_reads_back(
            payload in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..20)),
            key in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..20)),
            millis in proptest::option::of(any::<i64>()),
            id in proptest::option::of("[!-~]{1,30}"),
            values in proptest::collection::vec("[ -~é]{0,8}", 0..4),
        ) {
            let mut message = payload.map_or_else(
                || EncodedMessage::new(Payload::Tombstone, Message::<()>::tombstone().into_parts().1),
                |bytes| EncodedMessage::new(bytes, Message::<()>::tombstone().into_parts().1),
            );
            message.set_key(key.map(Bytes::from));
            message.set_timestamp(millis.map(Timestamp::from_millis));
            message.set_id(id.map(|id| MessageId::new(id).unwrap()));
            for value in &values {
                message.headers_mut().push("x", value.clone());
            }
            match encode(&message, "S") {
                Ok((headers, payload)) => prop_assert_eq!(decode(Some(&headers), payload), message),
                Err(refused) => {
                    prop_assert_eq!(refused, Uncarried::Header("x".into()));
                    prop_assert!(values.iter().any(|value| value.trim() != value));
                }
            }
        }
    }
}
