//! What a publish is answered, against a real server, read back by an independent client.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::time::Duration;

use bytes::Bytes;
use consign_core_api::guarantee::OrderingScope;
use consign_core_api::message::{EncodedMessage, Message, Payload, Timestamp};
use consign_core_api::outcome::{Basis, Copies, Duplicate, Persistence};
use consign_core_api::position::MessagePosition;
use consign_core_api::spi::{
    Destination, NativeSettings, PublishReply, PublishRequest, TopologyMode, Withdrawal,
};
use consign_core_api::time::Moment;
use futures_util::StreamExt as _;
use std::sync::Arc;
use support::*;

async fn orders(server: &Server) -> (Arc<dyn consign_core_api::spi::Connection>, Arc<dyn Destination>) {
    let connection = connect(server).await;
    let destination = connection.open(&setup("orders", OrderingScope::None)).await.expect("opens");
    (connection, destination)
}

#[tokio::test]
async fn a_confirmed_message_stands_where_it_says_with_everything_it_carries() {
    let server = Server::start();
    let (_connection, destination) = orders(&server).await;
    let mut sent = message_with_id("hello", "m-1");
    sent.set_key(Some(Bytes::from_static(&[0, 255, b'\n'])));
    sent.set_timestamp(Some(Timestamp::from_millis(-5)));
    sent.headers_mut().push("trace", "one");
    sent.headers_mut().push("trace", "two");
    sent.headers_mut().push("empty", "");
    let PublishReply::Accepted(acceptance) = publish(&destination, sent.clone()).await else { panic!() };
    let (evidence, position, duplicate) = acceptance.into_parts();
    assert_eq!(position, Some(MessagePosition::Sequence { stream: "orders".into(), sequence: 1 }));
    assert_eq!((evidence.copies.value, evidence.copies.basis), (Copies::Leader, Basis::Observed));
    assert_eq!(evidence.persistence.value, Persistence::PageCache);
    assert_eq!(evidence.persistence.basis, Basis::Declared);
    assert_eq!(duplicate, Duplicate::No);

    let stored = other(&server).await.get_stream("orders").await.unwrap().get_raw_message(1).await.unwrap();
    assert_eq!((&stored.payload[..], stored.subject.as_str()), (&b"hello"[..], "orders"));
    assert_eq!(stored.headers.get("Nats-Msg-Id").unwrap().as_str(), "m-1");
    assert_eq!(stored.headers.get("consign-key").unwrap().as_str(), "AP8K");

    let mut subscription = subscribe(&destination, "g", 1).await;
    let mut received = delivery(&mut subscription).await.message;
    // Across different names the order is lost, as the capabilities say.
    assert_eq!(
        received.headers().all("trace").map(|h| h.text().unwrap()).collect::<Vec<_>>(),
        ["one", "two"]
    );
    assert_eq!(received.headers().first("empty").unwrap().value(), "");
    assert_eq!(received.headers().len(), 3);
    received.headers_mut().retain(|_| false);
    sent.headers_mut().retain(|_| false);
    assert_eq!(received, sent);
}

#[tokio::test]
async fn a_tombstone_is_not_an_empty_payload_on_the_other_side() {
    let server = Server::start();
    let (_connection, destination) = orders(&server).await;
    let parts = || Message::<()>::tombstone().into_parts().1;
    for payload in [Payload::Tombstone, Payload::from(Bytes::new())] {
        let reply = publish(&destination, EncodedMessage::new(payload, parts())).await;
        assert!(matches!(reply, PublishReply::Accepted(_)));
    }
    let mut subscription = subscribe(&destination, "g", 2).await;
    assert_eq!(delivery(&mut subscription).await.message.payload(), &Payload::Tombstone);
    assert_eq!(delivery(&mut subscription).await.message.payload(), &Payload::from(Bytes::new()));
}

#[tokio::test]
async fn a_second_publish_under_the_same_id_is_stored_once_and_says_so() {
    let server = Server::start();
    let (_connection, destination) = orders(&server).await;
    publish(&destination, message_with_id("a", "same")).await;
    let PublishReply::Accepted(again) = publish(&destination, message_with_id("a", "same")).await else {
        panic!()
    };
    let (_, position, duplicate) = again.into_parts();
    assert_eq!(duplicate, Duplicate::Deduplicated);
    assert_eq!(position, Some(MessagePosition::Sequence { stream: "orders".into(), sequence: 1 }));
    let mut stream = other(&server).await.get_stream("orders").await.unwrap();
    assert_eq!(stream.info().await.unwrap().state.messages, 1);
}

#[tokio::test]
async fn a_publish_that_no_stream_listens_to_is_unroutable() {
    let server = Server::start();
    let (_connection, destination) = orders(&server).await;
    other(&server).await.delete_stream("orders").await.unwrap();
    let reply = publish(&destination, message("x")).await;
    assert_eq!(verdict(reply), "R NATS_NO_STREAM Unroutable");
}

#[tokio::test]
async fn another_stream_behind_the_subject_refuses_by_the_expected_name() {
    let server = Server::start();
    let (_connection, destination) = orders(&server).await;
    let native = other(&server).await;
    native.delete_stream("orders").await.unwrap();
    let usurper = async_nats::jetstream::stream::Config {
        name: "usurper".into(),
        subjects: vec!["orders".into()],
        ..Default::default()
    };
    let mut usurper = native.create_stream(usurper).await.unwrap();
    let reply = publish(&destination, message("x")).await;
    assert_eq!(verdict(reply), "R NATS_WRONG_STREAM RefusedByBroker");
    assert_eq!(usurper.info().await.unwrap().state.messages, 0);
}

#[tokio::test]
async fn an_acknowledgement_forged_by_a_core_service_proves_nothing() {
    let server = Server::start();
    let connection = connect(&server).await;
    let mut trusting = setup("orders", OrderingScope::None);
    trusting.topology = TopologyMode::Trust;
    let destination = connection.open(&trusting).await.unwrap();
    let forger = async_nats::connect(server.url()).await.unwrap();
    let mut heard = forger.subscribe("orders").await.unwrap();
    forger.flush().await.unwrap();
    // The server knows the subscription once it answers something that came after it.
    forger.request("$JS.API.INFO", Bytes::new()).await.unwrap();
    let answers = ["{\"stream\":\"FAKE\",\"seq\":7}", "+OK", "{\"seq\":7}", ""];
    tokio::spawn(async move {
        for answer in answers {
            let reply = heard.next().await.unwrap().reply.unwrap();
            forger.publish(reply, answer.into()).await.unwrap();
            forger.flush().await.unwrap();
        }
    });
    let verdicts = ["U NATS_FOREIGN_ACKNOWLEDGEMENT"].into_iter().chain(["U NATS_ANSWER_UNREADABLE"; 3]);
    for expected in verdicts {
        assert_eq!(verdict(publish(&destination, message("x")).await), expected);
    }
}

#[tokio::test]
async fn a_message_above_the_servers_limit_is_refused_before_transmission() {
    let server = Server::start();
    let (_connection, destination) = orders(&server).await;
    let limit = async_nats::connect(server.url()).await.unwrap().server_info().max_payload;
    // The payload alone fits; its headers do not any more.
    let reply = publish(&destination, message(&"x".repeat(limit))).await;
    assert_eq!(verdict(reply), "R PAYLOAD_ABOVE_SERVER_LIMIT NotTransmitted");
    assert!(matches!(publish(&destination, message("small")).await, PublishReply::Accepted(_)));
    let mut stream = other(&server).await.get_stream("orders").await.unwrap();
    assert_eq!(stream.info().await.unwrap().state.messages, 1);
}

#[tokio::test]
async fn what_cannot_be_carried_is_refused_before_transmission_and_named() {
    let server = Server::start();
    let (_connection, destination) = orders(&server).await;
    for (name, value, expected) in [
        ("x-bin", &b"\xff\xfe"[..], "HEADER_NOT_CARRIED"),
        ("x-crlf", b"a\r\nEvil: 1", "HEADER_NOT_CARRIED"),
        ("Nats-Rollup", b"all", "HEADER_NOT_CARRIED"),
        ("", b"1", "HEADER_INVALID"),
        ("consign-key", b"1", "RESERVED_HEADER"),
    ] {
        let mut odd = message("x");
        odd.headers_mut().push(name, value.to_vec());
        let reply = publish(&destination, odd).await;
        let PublishReply::Refused(refusal) = reply.clone() else { panic!() };
        assert!(refusal.into_parts().1.message().contains(name), "{name}");
        assert_eq!(verdict(reply), format!("R {expected} NotTransmitted"), "{name}");
    }
    let mut spread = message("x");
    spread.set_partition(Some(0));
    assert_eq!(verdict(publish(&destination, spread).await), "R PARTITION_NOT_CARRIED NotTransmitted");
    let mut stream = other(&server).await.get_stream("orders").await.unwrap();
    assert_eq!(stream.info().await.unwrap().state.messages, 0);
}

#[tokio::test]
async fn a_full_stream_that_discards_new_messages_refuses_and_keeps_what_it_has() {
    let server = Server::start();
    let connection = connect(&server).await;
    for (limit, most) in [("max_messages", 3), ("max_messages_per_subject", 3), ("max_bytes", 600)] {
        let name = limit.replace('_', "-");
        let native = NativeSettings::default().with("discard", "new").with(limit, most);
        let destination =
            connection.open(&with_native(setup(&name, OrderingScope::None), native)).await.unwrap();
        let mut confirmed = 0;
        for _ in 0..20 {
            match publish(&destination, message("0123456789")).await {
                PublishReply::Accepted(_) => confirmed += 1,
                refused => assert_eq!(verdict(refused), "R NATS_STREAM_FULL RefusedByBroker"),
            }
        }
        let mut stream = other(&server).await.get_stream(&name).await.unwrap();
        assert_eq!(stream.info().await.unwrap().state.messages, confirmed, "{limit}");
        assert!(confirmed > 0 && confirmed < 20, "{limit}");
    }
}

#[tokio::test]
async fn publishes_reach_the_stream_in_call_order() {
    let server = Server::start();
    let (_connection, destination) = orders(&server).await;
    let answers = Answers::new();
    for i in 1..=500_u64 {
        let request = PublishRequest::new(message(&i.to_string()), Moment::NEVER);
        destination.publish(request, answers.completion(i));
    }
    for i in 1..=500_u64 {
        let PublishReply::Accepted(acceptance) = soon("an answer", answers.of(i)).await else { panic!() };
        let expected = MessagePosition::Sequence { stream: "orders".into(), sequence: i };
        assert_eq!(acceptance.into_parts().1, Some(expected));
    }
}

#[tokio::test]
async fn keys_choose_their_partition_as_kafkas_client_would() {
    let server = Server::start();
    let connection = connect(&server).await;
    let native = NativeSettings::default().with("partitions", 10);
    let destination =
        connection.open(&with_native(setup("orders", OrderingScope::Key), native)).await.unwrap();
    let mut keyed = message("x");
    keyed.set_key(Some(Bytes::from_static(b"wu")));
    publish(&destination, keyed).await;
    let mut explicit = message("y");
    explicit.set_partition(Some(9));
    publish(&destination, explicit).await;
    let mut outside = message("z");
    outside.set_partition(Some(10));
    assert_eq!(verdict(publish(&destination, outside).await), "R PARTITION_NOT_CARRIED NotTransmitted");
    let stream = other(&server).await.get_stream("orders").await.unwrap();
    assert_eq!(stream.get_raw_message(1).await.unwrap().subject.as_str(), "orders.p0");
    assert_eq!(stream.get_raw_message(2).await.unwrap().subject.as_str(), "orders.p9");
}

#[tokio::test]
async fn a_publish_to_a_frozen_server_stays_open_and_is_answered_late() {
    let server = Server::start();
    let (_connection, destination) = orders(&server).await;
    publish(&destination, message("warm")).await;
    server.freeze();
    let answers = Answers::new();
    destination.publish(PublishRequest::new(message("late"), Moment::NEVER), answers.completion(7));
    soon("the hand-over", answers.handed_over(7)).await;
    assert!(!answers.give_up(7), "it was handed over");
    // The runtime's deadline: it cannot be taken back, and the answer still counts.
    assert_eq!(destination.withdraw(Answers::<PublishReply>::key(7)), Withdrawal::TooLate);
    assert!(!answers.is_answered(7));
    server.thaw();
    let late = soon("the late answer", answers.of(7)).await;
    assert_eq!(verdict(late), "A");
}

#[tokio::test]
async fn what_waits_for_a_dead_server_is_not_handed_over_and_can_be_taken_back() {
    let mut server = Server::start();
    let (connection, destination) = orders(&server).await;
    publish(&destination, message("warm")).await;
    server.kill();
    soon("the connection to go down", async {
        while connection.health().await.is_up() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let answers = Answers::new();
    destination.publish(PublishRequest::new(message("given up"), Moment::NEVER), answers.completion(1));
    destination.publish(PublishRequest::new(message("kept"), Moment::NEVER), answers.completion(2));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(answers.give_up(1), "it was not handed over");
    server.restart();
    assert_eq!(verdict(soon("the kept one", answers.of(2)).await), "A");
    assert!(!answers.is_handed_over(1));
    let mut stream = other(&server).await.get_stream("orders").await.unwrap();
    assert_eq!(stream.info().await.unwrap().state.messages, 2);
}

#[tokio::test]
async fn a_full_queue_refuses_and_a_close_answers_everything() {
    let mut server = Server::start();
    let connection = connect(&server).await;
    let mut small = setup("orders", OrderingScope::None);
    small.publish.in_flight = std::num::NonZeroUsize::new(2).unwrap();
    let destination = connection.open(&small).await.unwrap();
    server.kill();
    soon("the connection to go down", async {
        while connection.health().await.is_up() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let answers = Answers::new();
    for i in 1..=10 {
        destination.publish(PublishRequest::new(message("x"), Moment::NEVER), answers.completion(i));
        tokio::task::yield_now().await;
    }
    assert_eq!(verdict(soon("the refusal", answers.of(10)).await), "R PUBLISH_QUEUE_FULL NotTransmitted");
    soon("the close", connection.close(Duration::from_millis(50))).await;
    for i in 1..=9 {
        assert!(
            verdict(soon("an answer", answers.of(i)).await).starts_with("R "),
            "{i} was never handed over"
        );
    }
    assert_eq!(verdict(publish(&destination, message("x")).await), "R TRANSPORT_CLOSED NotTransmitted");
    soon("a second close", connection.close(Duration::from_millis(50))).await;
}

#[tokio::test]
async fn a_close_waits_for_the_answers_that_come() {
    let server = Server::start();
    let (connection, destination) = orders(&server).await;
    let answers = Answers::new();
    for i in 1..=200 {
        destination.publish(PublishRequest::new(message("x"), Moment::NEVER), answers.completion(i));
    }
    soon("the close", connection.close(Duration::from_secs(10))).await;
    for i in 1..=200 {
        assert!(answers.is_answered(i));
        assert_eq!(verdict(answers.of(i).await), "A");
    }
}
