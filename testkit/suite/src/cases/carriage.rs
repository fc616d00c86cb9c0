//! What is carried arrives as it was, and what cannot be carried is refused, naming it.

use bytes::Bytes;
use consign_core_api::message::{Headers, Timestamp};
use consign_core_api::outcome::Transmission;
use consign_core_api::{EncodedMessage, Message, MessageId, Payload, PublishOutcome};
use consign_policy::{KeySpec, MessageIdSpec, PublishSpec};

use crate::case::{CaseError, CaseResult, Need};
use crate::ensure;
use crate::lab::{Lab, Number};

crate::cases! {
    a_binary_payload_arrives_byte_for_byte:
        "payloads are bytes, whatever they are";
    a_large_payload_arrives_whole:
        "a payload of 64 KiB arrives byte for byte";
    an_empty_payload_arrives_empty_and_is_no_tombstone:
        "an empty payload is a payload";
    a_tombstone_arrives_as_one_or_is_refused:
        "a tombstone stays distinct from an empty payload, or is refused before transmission";
    a_binary_key_arrives_byte_for_byte:
        "keys are bytes, whatever they are";
    an_absent_key_stays_absent:
        "no key is invented" [Need::KeyOptional];
    an_empty_key_stays_an_empty_key:
        "an empty key is a key, distinct from none";
    headers_arrive_in_their_order:
        "headers keep names, values and order";
    repeated_headers_arrive_in_their_order_or_are_refused:
        "nothing is merged or dropped silently";
    binary_header_values_arrive_or_are_refused:
        "nothing is re-encoded silently";
    empty_and_unicode_header_values_arrive:
        "a header value may be empty, or any text";
    a_reserved_header_is_refused_here:
        "names with the prefix consign- are refused before transmission, in any case";
    a_header_without_a_name_is_refused_here:
        "a header needs a name";
    a_given_message_id_arrives:
        "an id that the caller gave is the message's id, at the broker and at the handler";
    generated_message_ids_differ_and_arrive:
        "without an id each message gets one of its own, which the receipt tells";
    a_message_id_is_taken_from_a_header:
        "message_id = { header } uses that header, and refuses a message without it";
    a_timestamp_arrives:
        "a timestamp arrives to the millisecond";
    a_key_is_resolved_from_a_header:
        "key = { header } makes that header's value the key on the wire";
    a_key_is_resolved_from_the_payload:
        "key = { json_pointer } takes a text's bytes and a number's digits";
    a_conflicting_or_missing_key_is_refused_here:
        "an explicit key that differs from the resolved one is KEY_CONFLICT, no key is KEY_UNRESOLVED";
    key_ordering_demands_a_key:
        "with ordering KEY a message without a key is refused before transmission"
        [Need::Ordering(consign_core_api::OrderingScope::Key)];
    a_partition_that_does_not_exist_is_refused:
        "an explicit partition is kept to, or refused; no other is taken";
    names_are_told_apart_to_the_last_character:
        "destinations with similar names, dots, dashes and capitals are different destinations";
}

/// Publishes a message and returns it as the destination holds it and as a handler saw it.
async fn round_trip(lab: &Lab, message: Message<Bytes>) -> Result<[EncodedMessage; 2], CaseError> {
    let (messaging, name) = lab.one().await?;
    let publisher = messaging.bytes_publisher(&name)?;
    let _ = lab.confirmed(publisher.publish(message)).await?;
    let mut stored = lab.stored(&name).await?;
    ensure!(stored.len() == 1, "{} messages are stored", stored.len());
    let mut consuming = lab.consume(&messaging, &name, "g").await?;
    let seen = consuming.next(lab).await?.message;
    lab.end(&messaging).await?;
    let stored = stored.pop().ok_or_else(|| CaseError::new("nothing is stored"))?.message;
    Ok([stored, seen])
}

fn bytes(payload: impl Into<Bytes>) -> Message<Bytes> {
    Message::new(payload.into()).key("k")
}

/// Publishes a message that must be refused before transmission, and returns the refusal's text.
async fn refused_here(lab: &Lab, message: Message<Bytes>) -> Result<String, CaseError> {
    let (messaging, name) = lab.one().await?;
    let publisher = messaging.bytes_publisher(&name)?;
    let outcome = lab.within("publishing", publisher.publish(message)).await?;
    let PublishOutcome::Rejected(rejection) = outcome else {
        return Err(CaseError::new(format!("it cannot be carried, and ended {outcome}")));
    };
    ensure!(rejection.transmission() == Transmission::NotTransmitted, "{rejection:?}");
    ensure!(!rejection.is_transient(), "it fails the same way again, and is called transient");
    ensure!(lab.stored(&name).await?.is_empty(), "it was refused and is stored");
    lab.end(&messaging).await?;
    Ok(rejection.to_string())
}

async fn payload_arrives(lab: &Lab, payload: Bytes) -> CaseResult {
    for message in round_trip(lab, bytes(payload.clone())).await? {
        let same = message.payload().as_bytes() == Some(&payload);
        ensure!(same, "{} bytes went, {:?} came", payload.len(), message.payload());
    }
    Ok(())
}

async fn a_binary_payload_arrives_byte_for_byte(lab: &Lab) -> CaseResult {
    payload_arrives(lab, (0..=255).chain([0, 0xff, 0xfe, 0xc0, 0x80, b'\r', b'\n']).collect()).await
}

async fn a_large_payload_arrives_whole(lab: &Lab) -> CaseResult {
    let byte = |n: u32| n.wrapping_mul(2_654_435_761).to_be_bytes()[0];
    payload_arrives(lab, (0..64 * 1024).map(byte).collect()).await
}

async fn an_empty_payload_arrives_empty_and_is_no_tombstone(lab: &Lab) -> CaseResult {
    payload_arrives(lab, Bytes::new()).await
}

async fn a_tombstone_arrives_as_one_or_is_refused(lab: &Lab) -> CaseResult {
    if !lab.capabilities().tombstones() {
        refused_here(lab, Message::tombstone().key("k")).await?;
        return Ok(());
    }
    for message in round_trip(lab, Message::tombstone().key("k")).await? {
        ensure!(*message.payload() == Payload::Tombstone, "a tombstone went, {:?} came", message.payload());
    }
    Ok(())
}

async fn key_arrives(lab: &Lab, key: &[u8]) -> CaseResult {
    for message in round_trip(lab, bytes("x").key(key)).await? {
        ensure!(
            message.key().is_some_and(|came| came == key),
            "the key {key:?} went, {:?} came",
            message.key()
        );
    }
    Ok(())
}

async fn a_binary_key_arrives_byte_for_byte(lab: &Lab) -> CaseResult {
    key_arrives(lab, &[0, 255, b'/', b'+', b' ', 0xc3, 0x28, b'\n', b'=']).await
}

async fn an_absent_key_stays_absent(lab: &Lab) -> CaseResult {
    for message in round_trip(lab, Message::new(Bytes::from_static(b"x"))).await? {
        ensure!(message.key().is_none(), "no key went, {:?} came", message.key());
    }
    Ok(())
}

async fn an_empty_key_stays_an_empty_key(lab: &Lab) -> CaseResult {
    key_arrives(lab, b"").await
}

async fn headers_arrive(lab: &Lab, headers: &[(&str, &[u8])]) -> CaseResult {
    let message = headers.iter().fold(bytes("x"), |message, (name, value)| message.header(*name, value));
    let sent: Headers = headers.iter().map(|(name, value)| (*name, Bytes::copy_from_slice(value))).collect();
    for message in round_trip(lab, message).await? {
        let came = message.headers();
        let same = if lab.capabilities().headers().order {
            *came == sent
        } else {
            let all = |name: &str, of: &Headers| of.all(name).map(|h| h.value().clone()).collect::<Vec<_>>();
            came.len() == sent.len() && sent.iter().all(|h| all(h.name(), came) == all(h.name(), &sent))
        };
        let told = |headers: &Headers| {
            headers.iter().map(|h| format!("{}={:?}", h.name(), h.value())).collect::<Vec<_>>()
        };
        ensure!(same, "{:?} went, {:?} came", told(&sent), told(came));
    }
    Ok(())
}

async fn headers_arrive_in_their_order(lab: &Lab) -> CaseResult {
    headers_arrive(
        lab,
        &[("zeta", b"1"), ("Alpha", b"2"), ("traceparent", b"00-ab-cd-01"), ("mid-dle", b"3")],
    )
    .await
}

async fn repeated_headers_arrive_in_their_order_or_are_refused(lab: &Lab) -> CaseResult {
    let repeated: [(&str, &[u8]); 4] = [("x", b"1"), ("x", b"2"), ("y", b"3"), ("x", b"1")];
    if lab.capabilities().headers().duplicates {
        return headers_arrive(lab, &repeated).await;
    }
    let why = refused_here(lab, bytes("x").header("twice-sent", "1").header("twice-sent", "2")).await?;
    ensure!(why.contains("twice-sent"), "the refusal does not name the header: {why}");
    Ok(())
}

async fn binary_header_values_arrive_or_are_refused(lab: &Lab) -> CaseResult {
    let binary: &[u8] = &[0, 255, 13, 10, 0xc3, 0x28, 58, 32];
    if lab.capabilities().headers().binary_values {
        return headers_arrive(lab, &[("bin", binary), ("after", b"ok")]).await;
    }
    let why = refused_here(lab, bytes("x").header("in-binary", binary)).await?;
    ensure!(why.contains("in-binary"), "the refusal does not name the header: {why}");
    Ok(())
}

async fn empty_and_unicode_header_values_arrive(lab: &Lab) -> CaseResult {
    headers_arrive(lab, &[("empty", b""), ("text", "grüße, 你好".as_bytes()), ("spaces", b"a b")]).await
}

async fn a_reserved_header_is_refused_here(lab: &Lab) -> CaseResult {
    for name in ["consign-id", "consign-attempt", "Consign-Anything", "CONSIGN-"] {
        let why = refused_here(lab, bytes("x").header(name, "1")).await?;
        ensure!(why.contains("RESERVED_HEADER"), "{name}: {why}");
    }
    Ok(())
}

async fn a_header_without_a_name_is_refused_here(lab: &Lab) -> CaseResult {
    let why = refused_here(lab, bytes("x").header("", "1")).await?;
    ensure!(why.contains("HEADER_INVALID"), "{why}");
    Ok(())
}

async fn a_given_message_id_arrives(lab: &Lab) -> CaseResult {
    for id in [MessageId::generate(), MessageId::new("order:17/a+b=c")?] {
        for message in round_trip(lab, bytes("x").id(id.clone())).await? {
            ensure!(message.id() == Some(&id), "the id {id} went, {:?} came", message.id());
        }
    }
    Ok(())
}

async fn generated_message_ids_differ_and_arrive(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    let mut ids = Vec::new();
    for n in 0..5 {
        let submitted =
            lab.within("submitting", publisher.submit(Message::new(Number { n }).key("k"))).await?;
        let receipt = submitted?;
        ids.push(receipt.id().cloned().ok_or_else(|| CaseError::new("a receipt without an id"))?);
        let outcome = lab.within("the outcome", receipt).await?;
        ensure!(outcome.is_confirmed(), "{outcome}");
    }
    let stored: Vec<_> =
        lab.stored(&name).await?.iter().filter_map(|held| held.message.id().cloned()).collect();
    ensure!(
        stored.len() == 5 && ids.iter().all(|id| stored.contains(id)),
        "{ids:?} were told, {stored:?} are stored"
    );
    ids.sort();
    ids.dedup();
    ensure!(ids.len() == 5, "an id came twice");
    lab.end(&messaging).await
}

async fn a_message_id_is_taken_from_a_header(lab: &Lab) -> CaseResult {
    let (messaging, name) =
        lab.one_with(lab.spec().message_id(MessageIdSpec::Header("event-id".into()))).await?;
    let publisher = messaging.bytes_publisher(&name)?;
    let _ = lab.confirmed(publisher.publish(bytes("x").header("event-id", "e-17"))).await?;
    for message in [bytes("x"), bytes("x").header("event-id", "not a legal id")] {
        let outcome = lab.within("publishing", publisher.publish(message)).await?;
        let code = outcome.failure().map(consign_core_api::Failure::code);
        ensure!(
            outcome.is_rejected() && code.is_some_and(|code| code == "MESSAGE_ID_UNRESOLVED"),
            "{outcome}"
        );
    }
    let stored = lab.stored(&name).await?;
    ensure!(stored.len() == 1, "{} are stored", stored.len());
    ensure!(stored[0].message.id() == Some(&MessageId::new("e-17")?), "{:?}", stored[0].message.id());
    lab.end(&messaging).await
}

async fn a_timestamp_arrives(lab: &Lab) -> CaseResult {
    let at = Timestamp::from_millis(1_700_000_000_123);
    for message in round_trip(lab, bytes("x").timestamp(at)).await? {
        ensure!(message.timestamp() == Some(at), "{at:?} went, {:?} came", message.timestamp());
    }
    Ok(())
}

async fn a_key_is_resolved_from_a_header(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one_with(lab.spec().key(KeySpec::header("customer"))).await?;
    let publisher = messaging.bytes_publisher(&name)?;
    let message = Message::new(Bytes::from_static(b"x")).header("customer", "c-7");
    let _ = lab.confirmed(publisher.publish(message)).await?;
    let stored = lab.stored(&name).await?;
    ensure!(stored.len() == 1, "{} are stored", stored.len());
    ensure!(
        stored[0].message.key().is_some_and(|key| key == "c-7"),
        "the key is {:?}",
        stored[0].message.key()
    );
    lab.end(&messaging).await
}

async fn a_key_is_resolved_from_the_payload(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one_with(lab.spec().key(KeySpec::json_pointer("/who"))).await?;
    let publisher = messaging.publisher::<serde_json::Value>(&name)?;
    let values =
        [(serde_json::json!("c/7"), "c/7"), (serde_json::json!(42), "42"), (serde_json::json!(true), "true")];
    for (value, _) in &values {
        let message = Message::new(serde_json::json!({ "who": value }));
        let _ = lab.confirmed(publisher.publish(message)).await?;
    }
    let stored = lab.stored(&name).await?;
    for (_, key) in values {
        ensure!(
            stored.iter().any(|held| held.message.key().is_some_and(|held| held == key)),
            "no message is stored under the key {key:?}"
        );
    }
    lab.end(&messaging).await
}

async fn a_conflicting_or_missing_key_is_refused_here(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one_with(lab.spec().key(KeySpec::header("customer"))).await?;
    let publisher = messaging.bytes_publisher(&name)?;
    let conflicting = bytes("x").header("customer", "another");
    let missing = Message::new(Bytes::from_static(b"x"));
    for (message, code) in [(conflicting, "KEY_CONFLICT"), (missing, "KEY_UNRESOLVED")] {
        let outcome = lab.within("publishing", publisher.publish(message)).await?;
        let told = outcome.failure().map(consign_core_api::Failure::code);
        ensure!(outcome.is_rejected() && told.is_some_and(|told| told == code), "{code}: {outcome}");
    }
    let _ = lab.confirmed(publisher.publish(bytes("x").header("customer", "k"))).await?;
    ensure!(lab.stored(&name).await?.len() == 1, "a refused message is stored");
    lab.end(&messaging).await
}

async fn key_ordering_demands_a_key(lab: &Lab) -> CaseResult {
    let why = refused_here(lab, Message::new(Bytes::from_static(b"x"))).await?;
    ensure!(why.contains("KEY_UNRESOLVED"), "{why}");
    Ok(())
}

async fn names_are_told_apart_to_the_last_character(lab: &Lab) -> CaseResult {
    let base = lab.destination("n");
    let names: Vec<_> = ["", "A", "a", "-a", "_a"].iter().map(|end| format!("{base}{end}")).collect();
    let specs = names.iter().fold(consign_policy::ProfileSpecs::new(), |specs, name| {
        specs.with(name, lab.spec().publish(PublishSpec::default()))
    });
    let messaging = lab.start(specs).await?;
    for (n, name) in (0..).zip(&names) {
        lab.publish(&messaging, name, "k", [n]).await?;
    }
    for (n, name) in (0..).zip(&names) {
        let stored = lab.stored_numbers(name).await?;
        ensure!(stored == [n], "{name} holds {stored:?} and should hold {n}");
    }
    lab.end(&messaging).await
}

async fn a_partition_that_does_not_exist_is_refused(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    let publisher = messaging.bytes_publisher(&name)?;
    let outcome = lab.within("publishing", publisher.publish(bytes("x").partition(9_999_999))).await?;
    ensure!(outcome.is_rejected(), "a partition that does not exist ended {outcome}");
    ensure!(lab.stored(&name).await?.is_empty(), "it was REJECTED, and is stored");
    lab.end(&messaging).await
}
