//! A server that dies, freezes, or comes back while something is under way.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::time::Duration;

use consign_core_api::guarantee::OrderingScope;
use consign_core_api::spi::{Event, PublishReply, PublishRequest, SettlementReply};
use consign_core_api::time::Moment;
use futures_util::FutureExt as _;
use support::*;

async fn fill(destination: &std::sync::Arc<dyn consign_core_api::spi::Destination>, count: usize) {
    let answers = Answers::new();
    for i in 0..count {
        let request = PublishRequest::new(message(&i.to_string()), Moment::NEVER);
        destination.publish(request, answers.completion(i as u64 + 1));
    }
    for i in 0..count {
        let reply = soon("a confirmation", answers.of(i as u64 + 1)).await;
        assert!(matches!(reply, PublishReply::Accepted(_)), "{reply:?}");
    }
}

#[tokio::test]
async fn a_killed_server_interrupts_and_everything_confirmed_is_delivered_after_its_restart() {
    for ordering in [OrderingScope::None, OrderingScope::Destination] {
        let mut server = Server::start();
        let connection = connect(&server).await;
        // The state that the server restores may hold a delivery whose settlement it had answered and forgot; where one
        // is out at a time, it would block the rest until the settlement deadline, which is longer than this test waits.
        let destination = connection.open(&setup("orders", ordering)).await.unwrap();
        fill(&destination, 300).await;
        let mut subscription = subscribe(&destination, "g", 16).await;
        let settler = subscription.settler();
        let mut first_seen = Vec::new();
        let (mut seen, mut interrupted, mut killed) = (BTreeSet::new(), false, false);
        let mut last_epoch = None;
        while seen.len() < 300 {
            for event in soon("an event", subscription.next(NonZeroUsize::new(8).unwrap())).await {
                match event {
                    Event::Delivery(inbound) => {
                        let number: usize = text(&inbound).parse().unwrap();
                        if seen.insert(number) {
                            first_seen.push(number);
                        }
                        if killed && !interrupted {
                            continue;
                        }
                        let reply = settle(&settler, &inbound).await;
                        assert!(interrupted || matches!(reply, SettlementReply::Evidence(_)), "{reply:?}");
                    }
                    Event::Assigned(_, epoch) => {
                        assert!(Some(epoch) > last_epoch, "an epoch is never used again");
                        last_epoch = Some(epoch);
                    }
                    Event::Interrupted(failure) => {
                        assert!(interrupted || failure.code() == "NATS_DISCONNECTED", "{failure}");
                        interrupted = true;
                    }
                    _ => {}
                }
            }
            if seen.len() >= 100 && !killed {
                killed = true;
                server.kill();
                server.restart();
            }
        }
        assert!(interrupted, "a dead server is told");
        if ordering == OrderingScope::Destination {
            assert!(first_seen.is_sorted(), "first deliveries keep the order");
        }
    }
}

#[tokio::test]
async fn a_settlement_that_a_frozen_server_does_not_answer_is_unknown() {
    let server = Server::start();
    let connection = connect(&server).await;
    let destination = connection.open(&setup("orders", OrderingScope::None)).await.unwrap();
    fill(&destination, 1).await;
    let mut subscription = subscribe(&destination, "g", 4).await;
    let inbound = delivery(&mut subscription).await;
    server.freeze();
    let reply = settle(&subscription.settler(), &inbound).await;
    let SettlementReply::Unknown(failure) = reply else { panic!("evidence from a frozen server") };
    assert_eq!(failure.code(), "NATS_NO_ANSWER");
}

#[tokio::test]
async fn a_frozen_server_is_noticed_by_its_silence() {
    let server = Server::start();
    let connection = connect(&server).await;
    let destination = connection.open(&setup("orders", OrderingScope::Destination)).await.unwrap();
    let mut subscription = subscribe(&destination, "g", 4).await;
    soon("the assignment", subscription.next(NonZeroUsize::MIN)).await;
    assert!(subscription.next(NonZeroUsize::MIN).now_or_never().is_none(), "it is pulling");
    let stream = other(&server).await.get_stream("orders").await.unwrap();
    soon("the pull", async {
        while stream.consumer_info("g").await.unwrap().num_waiting == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    server.freeze();
    // The server reads this before it hears that nobody listens to the old pull any more.
    let answers = Answers::new();
    destination.publish(PublishRequest::new(message("0"), Moment::NEVER), answers.completion(1));
    let told = soon("the interruption", async {
        loop {
            for event in subscription.next(NonZeroUsize::MIN).await {
                if let Event::Interrupted(failure) = event {
                    return failure;
                }
            }
        }
    })
    .await;
    assert_eq!(told.code(), "NATS_HEARTBEAT_MISSED");
    server.thaw();
    assert_eq!(text(&delivery(&mut subscription).await), "0", "long before the settlement deadline");
}

#[tokio::test]
async fn heartbeats_come_while_an_order_holds_everything_back() {
    let server = Server::start();
    let connection = connect(&server).await;
    let destination = connection.open(&setup("orders", OrderingScope::Destination)).await.unwrap();
    fill(&destination, 2).await;
    let mut subscription = subscribe(&destination, "g", 4).await;
    let held = delivery(&mut subscription).await;
    // Longer than the silence that counts as an interruption.
    let quiet = tokio::time::timeout(Duration::from_secs(7), subscription.next(NonZeroUsize::MIN)).await;
    assert!(quiet.is_err(), "{quiet:?}");
    settle(&subscription.settler(), &held).await;
    assert_eq!(text(&delivery(&mut subscription).await), "1");
}

#[tokio::test]
async fn no_confirmed_message_is_missing_after_a_kill_while_publishing() {
    let mut server = Server::start();
    let connection = connect(&server).await;
    let destination = connection.open(&setup("orders", OrderingScope::None)).await.unwrap();
    let answers = Answers::new();
    for i in 1..=2000_u64 {
        let sent = message_with_id(&i.to_string(), &format!("m-{i}"));
        destination.publish(PublishRequest::new(sent, Moment::NEVER), answers.completion(i));
        if i % 64 == 0 {
            tokio::task::yield_now().await;
        }
        if i == 1000 {
            soon("some confirmation", answers.of(1)).await;
            server.kill();
            server.restart();
        }
    }
    // What was under way at the kill is never answered; the runtime would say so at its deadline.
    soon("the last one", answers.of(2000)).await;
    let mut confirmed = BTreeSet::new();
    for i in 2..2000_u64 {
        if answers.is_answered(i) && matches!(answers.of(i).await, PublishReply::Accepted(_)) {
            confirmed.insert(i);
        }
    }
    let stream = other(&server).await.get_stream("orders").await.unwrap();
    let last = stream.get_info().await.unwrap().state.last_sequence;
    let mut stored = BTreeSet::new();
    for sequence in 1..=last {
        let message = stream.get_raw_message(sequence).await.unwrap();
        stored.insert(std::str::from_utf8(&message.payload).unwrap().parse::<u64>().unwrap());
    }
    assert!(confirmed.is_subset(&stored), "{:?}", confirmed.difference(&stored).collect::<Vec<_>>());
}
