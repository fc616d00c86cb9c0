//! What happens to a message before admission: key, id, headers.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    unreachable_pub,
    reason = "a test ends by panicking"
)]

mod support;

use bytes::Bytes;
use consign_core_api::{Message, PublishOutcome};
use serde_json::{Value, json};
use support::{Manual, PLAIN, accepted, id, start};

/// Publishes on a destination whose profile has these extra lines; returns the key and id on the wire, or the code.
async fn publish(extra: &str, message: Message<Value>) -> Result<(Option<Bytes>, Option<String>), String> {
    let bench = start(Manual::default(), &format!("{PLAIN}\n{extra}")).await;
    let publisher = bench.messaging.publisher::<Value>("d").unwrap();
    match publisher.submit(message).await {
        Ok(receipt) => {
            let (request, completion) = bench.manual.next();
            assert!(completion.hand_over());
            completion.resolve(accepted());
            assert!(receipt.await.is_confirmed());
            Ok((request.message.key().cloned(), request.message.id().map(ToString::to_string)))
        }
        Err(rejection) => {
            assert_eq!(bench.manual.waiting(), 0, "it was transmitted");
            Err(rejection.failure().code().to_string())
        }
    }
}

const POINTER: &str = "key = { json_pointer = \"/id\" }";

#[tokio::test]
async fn a_json_pointer_takes_strings_numbers_and_truth_values_and_nothing_else() {
    for (payload, key) in [
        (json!({"id": "a\"b"}), Ok("a\"b")),
        (json!({"id": ""}), Ok("")),
        (json!({"id": 1.50}), Ok("1.5")),
        (json!({"id": 12_345_678_901_u64}), Ok("12345678901")),
        (json!({"id": true}), Ok("true")),
        (json!({"id": null}), Err("KEY_UNRESOLVED")),
        (json!({"id": [1]}), Err("KEY_UNRESOLVED")),
        (json!({"other": 1}), Err("KEY_UNRESOLVED")),
    ] {
        let shown = payload.to_string();
        let found = publish(POINTER, Message::new(payload)).await.map(|(key, _)| key.unwrap());
        assert_eq!(found.as_deref().map_err(String::as_str), key.map(str::as_bytes), "{shown}");
    }
    let tombstone = publish(POINTER, Message::tombstone()).await;
    assert_eq!(tombstone.unwrap_err(), "KEY_UNRESOLVED");
}

#[tokio::test]
async fn an_explicit_key_that_differs_from_the_resolved_one_is_a_conflict() {
    let same = publish(POINTER, Message::new(json!({"id": "a"})).key("a")).await;
    assert_eq!(same.unwrap().0.unwrap(), "a");
    let other = publish(POINTER, Message::new(json!({"id": "a"})).key("b")).await;
    assert_eq!(other.unwrap_err(), "KEY_CONFLICT");
}

#[tokio::test]
async fn a_key_comes_from_a_header_or_a_resolver_of_the_application() {
    let message = || Message::new(json!(1)).header("tenant", "t-1");
    for extra in ["key = { header = \"tenant\" }", "key = { custom = \"first-header\" }"] {
        assert_eq!(publish(extra, message()).await.unwrap().0.unwrap(), "t-1");
        assert_eq!(publish(extra, Message::new(json!(1))).await.unwrap_err(), "KEY_UNRESOLVED");
    }
}

#[tokio::test]
async fn key_ordering_needs_a_key_and_an_empty_key_is_one() {
    let keyed = PLAIN.replace("\"NONE\"", "\"KEY\"\nkey = { from = \"message\" }");
    let bench = start(Manual::default(), &keyed).await;
    let publisher = bench.messaging.publisher::<Value>("d").unwrap();
    let refused = publisher.publish(Message::new(json!(1))).await;
    assert_eq!(refused.failure().unwrap().code(), "KEY_UNRESOLVED");
    let _receipt = publisher.submit(Message::new(json!(1)).key("")).await.unwrap();
    assert_eq!(bench.manual.next().0.message.key().unwrap(), "");
}

#[tokio::test]
async fn ids_are_generated_kept_or_taken_from_a_header_as_the_profile_says() {
    assert_eq!(publish("", Message::new(json!(1))).await.unwrap().1.unwrap().len(), 36);
    assert_eq!(publish("", Message::new(json!(1)).id(id("mine"))).await.unwrap().1.unwrap(), "mine");
    assert_eq!(publish("message_id = \"none\"", Message::new(json!(1))).await.unwrap().1, None);
    let extra = "message_id = { header = \"event\" }";
    let message = Message::new(json!(1)).header("event", "e-9");
    assert_eq!(publish(extra, message).await.unwrap().1.unwrap(), "e-9");
    for wrong in [Message::new(json!(1)), Message::new(json!(1)).header("event", "a b")] {
        assert_eq!(publish(extra, wrong).await.unwrap_err(), "MESSAGE_ID_UNRESOLVED");
    }
}

#[tokio::test]
async fn reserved_and_nameless_headers_are_refused_and_the_message_is_handed_back() {
    let bench = start(Manual::default(), PLAIN).await;
    let publisher = bench.messaging.publisher::<Value>("d").unwrap();
    for (name, code) in
        [("consign-id", "RESERVED_HEADER"), ("Consign-Anything", "RESERVED_HEADER"), ("", "HEADER_INVALID")]
    {
        let outcome = publisher.publish(Message::new(json!(7)).header(name, "v")).await;
        let PublishOutcome::Rejected(rejection) = outcome else { panic!("{outcome}") };
        assert_eq!(rejection.failure().code(), code);
        assert!(!rejection.is_transient());
        assert_eq!(rejection.into_message().unwrap().payload().as_bytes().unwrap(), "7");
    }
    assert_eq!(bench.manual.waiting(), 0);
}
