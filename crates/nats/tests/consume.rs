//! Deliveries and settlements against a real server.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use consign_core_api::guarantee::OrderingScope;
use consign_core_api::name::GroupName;
use consign_core_api::position::MessagePosition;
use consign_core_api::settlement::SettlementLevel;
use consign_core_api::spi::{
    Connection, Destination, Event, NativeSettings, PublishReply, SettlementReply, Subscription,
    SubscriptionSpec, UnitId,
};
use support::*;

async fn open(server: &Server, ordering: OrderingScope) -> (Arc<dyn Connection>, Arc<dyn Destination>) {
    let connection = connect(server).await;
    let destination = connection.open(&setup("orders", ordering)).await.expect("opens");
    (connection, destination)
}

async fn fill(destination: &Arc<dyn Destination>, count: usize) {
    for i in 0..count {
        assert!(matches!(publish(destination, message(&i.to_string())).await, PublishReply::Accepted(_)));
    }
}

fn is_settled(reply: &SettlementReply) -> bool {
    matches!(reply, SettlementReply::Evidence(evidence) if evidence.level() == SettlementLevel::Processed)
}

fn unknown_code(reply: SettlementReply) -> String {
    match reply {
        SettlementReply::Unknown(failure) => failure.code().to_string(),
        SettlementReply::Evidence(_) => panic!("evidence where there is none"),
    }
}

/// Waits for nothing to come for as long as a delivery would take many times over.
async fn nothing_comes(subscription: &mut Box<dyn Subscription>) {
    let wait = tokio::time::timeout(Duration::from_millis(300), subscription.next(NonZeroUsize::MIN)).await;
    assert!(wait.is_err(), "something came: {wait:?}");
}

async fn pending(server: &Server, durable: &str) -> (usize, u64) {
    let stream = other(server).await.get_stream("orders").await.unwrap();
    let info = stream.consumer_info(durable).await.unwrap();
    (info.num_ack_pending, info.num_pending)
}

#[tokio::test]
async fn one_sequence_is_delivered_one_at_a_time_in_order() {
    let server = Server::start();
    let (_connection, destination) = open(&server, OrderingScope::Destination).await;
    fill(&destination, 50).await;
    let mut subscription = subscribe(&destination, "g", 8).await;
    let settler = subscription.settler();
    for i in 0..50 {
        let inbound = delivery(&mut subscription).await;
        assert_eq!(text(&inbound), i.to_string());
        assert_eq!((inbound.delivery_count, inbound.redelivered), (Some(1), Some(false)));
        let expected = MessagePosition::Sequence { stream: "orders".into(), sequence: i + 1 };
        assert_eq!(inbound.position, Some(expected));
        if i == 7 {
            nothing_comes(&mut subscription).await;
        }
        assert!(is_settled(&settle(&settler, &inbound).await));
    }
    assert_eq!(pending(&server, "g").await, (0, 0));
}

#[tokio::test]
async fn a_failed_message_of_a_sequence_comes_again_before_the_next_one_after_its_delay_and_counted() {
    let server = Server::start();
    let (_connection, destination) = open(&server, OrderingScope::Destination).await;
    fill(&destination, 2).await;
    let mut subscription = subscribe(&destination, "g", 4).await;
    let settler = subscription.settler();
    let first = delivery(&mut subscription).await;
    let (answers, started) = (Answers::new(), Instant::now());
    settler.redeliver(first.token, Duration::from_millis(400), answers.completion(1));
    assert!(is_settled(&soon("an answer", answers.of(1)).await));
    let again = delivery(&mut subscription).await;
    assert!(started.elapsed() >= Duration::from_millis(390), "{:?}", started.elapsed());
    assert_eq!((text(&again).as_str(), again.delivery_count, again.redelivered), ("0", Some(2), Some(true)));
    settler.redeliver(again.token, Duration::ZERO, answers.completion(2));
    let third = delivery(&mut subscription).await;
    assert_eq!((text(&third).as_str(), third.delivery_count), ("0", Some(3)));
    settler.release(third.token, answers.completion(3));
    let fourth = delivery(&mut subscription).await;
    assert_eq!((text(&fourth).as_str(), fourth.delivery_count), ("0", Some(4)));
    assert!(is_settled(&settle(&settler, &fourth).await));
    assert_eq!(text(&delivery(&mut subscription).await), "1");
}

#[tokio::test]
async fn no_more_is_out_than_may_be_and_settling_makes_room() {
    let server = Server::start();
    let (_connection, destination) = open(&server, OrderingScope::None).await;
    fill(&destination, 10).await;
    let mut subscription = subscribe(&destination, "g", 4).await;
    let settler = subscription.settler();
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(delivery(&mut subscription).await);
    }
    nothing_comes(&mut subscription).await;
    assert_eq!(pending(&server, "g").await, (4, 6));
    for inbound in held.drain(..) {
        assert!(is_settled(&settle(&settler, &inbound).await));
    }
    for _ in 4..10 {
        let inbound = delivery(&mut subscription).await;
        assert!(is_settled(&settle(&settler, &inbound).await));
    }
    assert_eq!(pending(&server, "g").await, (0, 0));
}

#[tokio::test]
async fn a_terminated_message_does_not_come_again() {
    let server = Server::start();
    let (_connection, destination) = open(&server, OrderingScope::None).await;
    fill(&destination, 1).await;
    let mut subscription = subscribe(&destination, "g", 4).await;
    let inbound = delivery(&mut subscription).await;
    let (_sending, permit) = consign_core_api::settlement::state::Received::new(inbound.token)
        .decode()
        .decoded()
        .fail(consign_core_api::Failure::new(
            consign_core_api::FailureCategory::PermanentBusiness,
            consign_core_api::Code::new("TEST"),
            "test",
        ))
        .discard();
    let answers = Answers::new();
    subscription.settler().terminate(permit, answers.completion(1));
    assert!(is_settled(&soon("an answer", answers.of(1)).await));
    assert_eq!(pending(&server, "g").await, (0, 0));
    nothing_comes(&mut subscription).await;
}

#[tokio::test]
async fn a_settlement_after_the_consumer_was_deleted_is_unknown_and_the_message_comes_again() {
    let server = Server::start();
    let (_connection, destination) = open(&server, OrderingScope::None).await;
    fill(&destination, 2).await;
    let mut subscription = subscribe(&destination, "g", 4).await;
    let settler = subscription.settler();
    let (first, second) = (delivery(&mut subscription).await, delivery(&mut subscription).await);
    other(&server).await.get_stream("orders").await.unwrap().delete_consumer("g").await.unwrap();
    assert_eq!(unknown_code(settle(&settler, &first).await), "NATS_CONSUMER_GONE");
    let events = soon("the interruption", subscription.next(NonZeroUsize::MIN)).await;
    let old = first.token.epoch();
    assert!(matches!(events[0], Event::Lost(unit, epoch) if unit == UnitId::new(0) && epoch == old));
    assert!(matches!(events[1], Event::Interrupted(_)));
    // Of the old epoch: unknown without asking anybody.
    assert_eq!(unknown_code(settle(&settler, &second).await), "NATS_STALE_DELIVERY");
    let mut seen = vec![text(&delivery(&mut subscription).await), text(&delivery(&mut subscription).await)];
    seen.sort();
    assert_eq!(seen, ["0", "1"]);
    // What the old durable had handed out was not given back to the new one.
    nothing_comes(&mut subscription).await;
}

#[tokio::test]
async fn a_delivery_is_settled_once() {
    let server = Server::start();
    let (_connection, destination) = open(&server, OrderingScope::None).await;
    fill(&destination, 1).await;
    let mut subscription = subscribe(&destination, "g", 4).await;
    let inbound = delivery(&mut subscription).await;
    assert!(is_settled(&settle(&subscription.settler(), &inbound).await));
    assert_eq!(unknown_code(settle(&subscription.settler(), &inbound).await), "NATS_STALE_DELIVERY");
}

#[tokio::test]
async fn an_extension_keeps_a_delivery_from_coming_again() {
    let server = Server::start();
    let connection = connect(&server).await;
    let mut short = setup("orders", OrderingScope::None);
    short.consumer.settlement_deadline = Duration::from_secs(1);
    let destination = connection.open(&short).await.unwrap();
    fill(&destination, 2).await;
    let mut subscription = subscribe(&destination, "g", 4).await;
    let settler = subscription.settler();
    let (kept, left) = (delivery(&mut subscription).await, delivery(&mut subscription).await);
    let until = Instant::now() + Duration::from_secs(3);
    while Instant::now() < until {
        settler.extend(&[kept.token]);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let again = delivery(&mut subscription).await;
    assert_eq!(text(&again), text(&left), "the one that was not extended");
    assert!(again.delivery_count > Some(1));
    assert!(is_settled(&settle(&settler, &kept).await));
}

#[tokio::test]
async fn dropping_a_wait_loses_nothing() {
    let server = Server::start();
    let (_connection, destination) = open(&server, OrderingScope::None).await;
    let mut subscription = subscribe(&destination, "g", 16).await;
    let settler = subscription.settler();
    let publishing = tokio::spawn({
        let destination = Arc::clone(&destination);
        async move { fill(&destination, 200).await }
    });
    let mut seen = Vec::new();
    let until = Instant::now() + LONG;
    while seen.len() < 200 && Instant::now() < until {
        // Polled once and dropped: the harshest way.
        let polled = futures_util::FutureExt::now_or_never(subscription.next(NonZeroUsize::MIN));
        for event in polled.unwrap_or_default() {
            if let Event::Delivery(inbound) = event {
                seen.push(text(&inbound).parse::<usize>().unwrap());
                let answers = Answers::new();
                let state = consign_core_api::settlement::state::Received::new(inbound.token);
                settler.settle(state.decode().decoded().succeed().settle().1, answers.completion(1));
            }
        }
        tokio::task::yield_now().await;
    }
    publishing.await.unwrap();
    assert_eq!(seen, (0..200).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_unit_is_built_anew_although_every_wait_for_it_is_dropped() {
    let server = Server::start();
    let (_connection, destination) = open(&server, OrderingScope::None).await;
    fill(&destination, 1).await;
    let mut subscription = subscribe(&destination, "g", 4).await;
    delivery(&mut subscription).await;
    other(&server).await.get_stream("orders").await.unwrap().delete_consumer("g").await.unwrap();
    let came = soon("the delivery", async {
        loop {
            let polled = futures_util::FutureExt::now_or_never(subscription.next(NonZeroUsize::MIN));
            let deliveries = |event: &Event| matches!(event, Event::Delivery(_));
            if polled.unwrap_or_default().iter().any(deliveries) {
                break;
            }
            tokio::task::yield_now().await;
        }
    });
    came.await;
}

#[tokio::test]
async fn closing_gives_back_what_was_not_settled() {
    let server = Server::start();
    let (_connection, destination) = open(&server, OrderingScope::None).await;
    fill(&destination, 6).await;
    let mut subscription = subscribe(&destination, "g", 6).await;
    let settled = delivery(&mut subscription).await;
    assert!(is_settled(&settle(&subscription.settler(), &settled).await));
    delivery(&mut subscription).await;
    subscription.close().await;
    // Long before the settlement deadline of 60 s.
    let mut next = subscribe(&destination, "g", 6).await;
    let mut seen = Vec::new();
    for _ in 1..6 {
        seen.push(text(&delivery(&mut next).await));
    }
    seen.sort();
    assert_eq!(seen, ["1", "2", "3", "4", "5"]);
}

#[tokio::test]
async fn closing_in_full_flight_loses_nothing_to_the_settlement_deadline() {
    const ALL: usize = 3000;
    for ordering in [OrderingScope::None, OrderingScope::Destination] {
        let server = Server::start();
        let (_connection, destination) = open(&server, ordering).await;
        let publishing = tokio::spawn({
            let destination = Arc::clone(&destination);
            async move { fill(&destination, ALL).await }
        });
        let mut settled = std::collections::BTreeSet::new();
        // Each time a few are settled, one is given back, and the rest is on its way when the subscription ends. What is
        // lost comes after the deadline of 60 s, longer than this test waits.
        for round in 0.. {
            let mut subscription = subscribe(&destination, "g", 64).await;
            let settler = subscription.settler();
            let rest = if round < 20 { 20 } else { ALL };
            for _ in 0..rest {
                if settled.len() == ALL {
                    break;
                }
                let inbound = delivery(&mut subscription).await;
                assert!(is_settled(&settle(&settler, &inbound).await));
                settled.insert(inbound.position.unwrap().to_string());
            }
            if settled.len() == ALL {
                break;
            }
            let answers = Answers::new();
            settler.release(delivery(&mut subscription).await.token, answers.completion(1));
            if round % 2 == 0 {
                soon("the release", answers.of(1)).await;
            }
            subscription.close().await;
        }
        publishing.await.unwrap();
    }
}

#[tokio::test]
async fn a_user_who_may_not_publish_to_inboxes_consumes_and_closes_all_the_same() {
    let rights = tempfile::NamedTempFile::new().unwrap();
    let user = r#"{ user: "u", password: "p", permissions: { publish: { deny: "_INBOX.>" } } }"#;
    std::fs::write(rights.path(), format!("authorization {{ users: [ {user} ] }}")).unwrap();
    let server = Server::start_with(&["-c", rights.path().to_str().unwrap()]);
    let credentials = consign_nats::Credentials::UserPassword { user: "u".into(), password: "p".into() };
    let config = consign_nats::NatsConfig::new(server.url()).with_credentials(credentials);
    let connection = connect_with(config).await;
    let destination = connection.open(&setup("orders", OrderingScope::None)).await.unwrap();
    fill(&destination, 2).await;
    let mut subscription = subscribe(&destination, "g", 2).await;
    let settler = subscription.settler();
    let first = delivery(&mut subscription).await;
    assert!(is_settled(&settle(&settler, &first).await));
    soon("the close", subscription.close()).await;
    let mut next = subscribe(&destination, "g", 2).await;
    assert_eq!(text(&delivery(&mut next).await), "1");
}

#[tokio::test]
async fn settlements_of_two_subscriptions_get_their_own_answers() {
    let server = Server::start();
    let (_connection, destination) = open(&server, OrderingScope::None).await;
    fill(&destination, 20).await;
    let mut one = subscribe(&destination, "one", 1).await;
    let mut two = subscribe(&destination, "two", 1).await;
    for _ in 0..20 {
        let (first, second) = (delivery(&mut one).await, delivery(&mut two).await);
        let (settlers, answers) = ([one.settler(), two.settler()], [Answers::new(), Answers::new()]);
        for ((settler, inbound), answers) in settlers.iter().zip([first, second]).zip(&answers) {
            let received = consign_core_api::settlement::state::Received::new(inbound.token);
            // The same key, as two consumers of one library have it.
            settler.settle(received.decode().decoded().succeed().settle().1, answers.completion(1));
        }
        for answers in answers {
            let reply: SettlementReply = soon("an answer", answers.of(1)).await;
            assert!(is_settled(&reply), "{reply:?}");
        }
    }
}

#[tokio::test]
async fn a_reader_that_asks_for_no_order_sees_what_is_behind_what_it_holds() {
    let server = Server::start();
    let (_connection, destination) = open(&server, OrderingScope::Destination).await;
    fill(&destination, 3).await;
    let spec = SubscriptionSpec::new(GroupName::new("looker").unwrap(), NonZeroUsize::new(3).unwrap());
    let mut subscription = destination.subscribe(spec.in_any_order()).await.unwrap();
    for i in 0..3 {
        assert_eq!(text(&delivery(&mut subscription).await), i.to_string());
    }
}

#[tokio::test]
async fn a_paused_unit_gets_nothing_until_it_is_resumed() {
    let server = Server::start();
    let (_connection, destination) = open(&server, OrderingScope::None).await;
    let mut subscription = subscribe(&destination, "g", 4).await;
    let settler = subscription.settler();
    settler.pause(UnitId::new(0));
    fill(&destination, 1).await;
    let assigned = soon("the assignment", subscription.next(NonZeroUsize::MIN)).await;
    assert!(matches!(assigned[..], [Event::Assigned(..)]));
    nothing_comes(&mut subscription).await;
    settler.resume(UnitId::new(0));
    assert_eq!(text(&delivery(&mut subscription).await), "0");
}

#[tokio::test]
async fn groups_each_get_all_and_one_group_shares() {
    let server = Server::start();
    let (_connection, destination) = open(&server, OrderingScope::None).await;
    fill(&destination, 4).await;
    for group in ["a", "b"] {
        let mut one = subscribe(&destination, group, 2).await;
        let mut two = subscribe(&destination, group, 2).await;
        let mut seen = Vec::new();
        for _ in 0..2 {
            seen.push(text(&delivery(&mut one).await));
            seen.push(text(&delivery(&mut two).await));
        }
        seen.sort();
        assert_eq!(seen, ["0", "1", "2", "3"], "group {group}");
    }
}

#[tokio::test]
async fn each_partition_keeps_its_order_and_hands_out_one_at_a_time() {
    let server = Server::start();
    let connection = connect(&server).await;
    let native = NativeSettings::default().with("partitions", 3);
    let keyed = with_native(setup("orders", OrderingScope::Key), native);
    let destination = connection.open(&keyed).await.unwrap();
    let keys = ["a", "b", "c", "d", "e"];
    for i in 0..60 {
        let mut message = message(&i.to_string());
        message.set_key(Some(Bytes::from_static(keys[i % keys.len()].as_bytes())));
        assert!(matches!(publish(&destination, message).await, PublishReply::Accepted(_)));
    }
    let mut subscription = subscribe(&destination, "g", 8).await;
    let settler = subscription.settler();
    let mut last = std::collections::HashMap::new();
    for _ in 0..60 {
        let inbound = delivery(&mut subscription).await;
        let number: usize = text(&inbound).parse().unwrap();
        let before = last.insert(inbound.message.key().unwrap().clone(), number);
        assert!(before < Some(number), "{before:?} before {number}");
        assert!(is_settled(&settle(&settler, &inbound).await));
    }
    assert!(last.len() == keys.len());
}

#[tokio::test]
async fn a_group_that_starts_with_the_latest_does_not_see_what_was_there() {
    let server = Server::start();
    let connection = connect(&server).await;
    let mut latest = setup("orders", OrderingScope::None);
    latest.consumer.start = consign_core_api::spi::Start::Latest;
    let destination = connection.open(&latest).await.unwrap();
    fill(&destination, 3).await;
    let mut subscription = subscribe(&destination, "g", 4).await;
    publish(&destination, message("new")).await;
    assert_eq!(text(&delivery(&mut subscription).await), "new");
}
