//! Redrive: out of a dead letter, back to its origin.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod consumer_support;

use std::num::NonZeroUsize;
use std::time::Duration;

use consign_core_api::GroupName;
use consign_core_api::settlement::SettledBecause::Copied;
use consign_core_api::spi::Inbound;
use consign_runtime::redrive::RedriveResult;
use consign_runtime::{RedriveOptions, RedriveReport};
use consumer_support::{
    Answer, Bench, Fake, Verb, id, inbound, profile, sequence_of, start, start_on, until,
};

fn dead(tag: u64, origin: &'static str, group: &'static str) -> Inbound {
    let mut inbound = inbound(tag);
    for (name, value) in [
        ("x", "kept"),
        ("consign-origin", origin),
        ("consign-group", group),
        ("consign-attempt", "5"),
        ("consign-failure-code", "DOWN"),
    ] {
        inbound.message.headers_mut().push(name, value);
    }
    inbound
}

async fn bench(ordering: &str) -> Bench {
    let dead_letter = profile("orders.dead", "NONE", "");
    start(&(profile("orders", ordering, "dead_letter = \"orders.dead\"") + &dead_letter)).await
}

async fn redrive(bench: &Bench, options: RedriveOptions, messages: Vec<Inbound>) -> RedriveReport {
    let deliver = async {
        until("it reads", || bench.fake.reads("orders.dead")).await;
        messages.into_iter().for_each(|message| bench.fake.deliver_on("orders.dead", message));
    };
    let (report, ()) = tokio::join!(bench.messaging.redrive("orders.dead", options), deliver);
    report.unwrap()
}

#[tokio::test(start_paused = true)]
async fn messages_go_back_under_their_id_and_are_settled_after_the_confirmation() {
    let bench = bench("NONE").await;
    let report = redrive(&bench, RedriveOptions::new(), vec![dead(1, "orders", "billing")]).await;
    assert_eq!((report.returned(), report.is_clean(), report.limited), (1, true, false), "{report}");
    assert_eq!(bench.fake.verbs(), [Verb::Terminate(1, Copied)]);
    assert_eq!(bench.fake.spec("orders.dead").group.as_str(), RedriveOptions::READER);
    let (to, back) = bench.fake.published().remove(0);
    assert_eq!((to.as_str(), back.id()), ("orders", Some(&id(1))));
    let headers: Vec<_> = back
        .headers()
        .iter()
        .map(|header| (header.name().to_owned(), header.text().unwrap().to_owned()))
        .collect();
    let expected =
        [("x", "kept"), ("consign-origin", "orders"), ("consign-group", "billing"), ("consign-redrive", "1")];
    assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(bench.fake.closed(), ["orders.dead"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_confirmed_or_has_no_way_back_stays_in_the_dead_letter() {
    let bench = bench("NONE").await;
    bench.fake.answer_publishes([Answer::Unknown, Answer::Yes]);
    bench.fake.answer_settlements([Answer::Unknown]);
    let messages = vec![
        dead(1, "orders", "billing"),
        dead(2, "orders", "billing"),
        dead(3, "invoices", "billing"),
        inbound(4),
    ];
    let report = redrive(&bench, RedriveOptions::new(), messages).await;
    let results: Vec<_> = report.messages.iter().map(|message| &message.result).collect();
    assert!(matches!(
        results[..],
        [
            RedriveResult::NotConfirmed(_),
            RedriveResult::ReturnedUnsettled(_),
            RedriveResult::Skipped(_),
            RedriveResult::Skipped(_)
        ]
    ));
    assert!(!report.is_clean());
    assert_eq!(
        bench.fake.verbs(),
        [Verb::Terminate(2, Copied), Verb::Release(1), Verb::Release(3), Verb::Release(4)],
        "what stays goes back only at the end, or it would come again"
    );
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_sends_nothing_and_gives_everything_back() {
    let bench = bench("KEY").await;
    let messages = (1..=3).map(|tag| dead(tag, "orders", "billing")).collect();
    let options = RedriveOptions::dry_run().limit(NonZeroUsize::new(2).unwrap());
    let report = redrive(&bench, options, messages).await;
    assert_eq!((report.messages.len(), report.limited, report.dry_run), (2, true, true));
    assert!(report.messages.iter().all(|message| matches!(message.result, RedriveResult::WouldReturn)));
    assert!(bench.fake.published().is_empty());
    assert_eq!(bench.fake.verbs(), [Verb::Release(1), Verb::Release(2)]);
}

#[tokio::test(start_paused = true)]
async fn an_ordered_origin_needs_leave_and_other_destinations_are_refused() {
    let bench = bench("KEY").await;
    let refused = |name: &'static str| bench.messaging.redrive(name, RedriveOptions::new());
    assert_eq!(refused("orders.dead").await.unwrap_err().code(), "REDRIVE_REORDERS");
    assert_eq!(refused("orders").await.unwrap_err().code(), "NOT_A_DEAD_LETTER");
    assert_eq!(refused("nowhere").await.unwrap_err().code(), "DESTINATION_UNKNOWN");
    let report =
        redrive(&bench, RedriveOptions::new().allow_reorder(), vec![dead(1, "orders", "billing")]).await;
    assert_eq!(report.returned(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_group_can_be_chosen_and_held_messages_keep_their_deadline() {
    let bench = bench("NONE").await;
    let options = RedriveOptions::new()
        .only_group(GroupName::new("billing").unwrap())
        .read_as("ops")
        .unwrap()
        .quiet(Duration::from_secs(45));
    let messages = vec![dead(1, "orders", "audit"), dead(2, "orders", "billing")];
    let report = redrive(&bench, options, messages).await;
    assert_eq!(report.returned(), 1);
    assert_eq!(bench.fake.spec("orders.dead").group.as_str(), "ops");
    assert_eq!(bench.fake.verbs(), [Verb::Terminate(2, Copied), Verb::Release(1)]);
    assert!(bench.fake.extended().contains(&vec![1]));
}

#[tokio::test(start_paused = true)]
async fn a_redrive_ends_when_nothing_is_confirmed_any_more() {
    let bench = bench("NONE").await;
    bench.fake.answer_publishes([Answer::No; 9]);
    let messages = (1..=9).map(|tag| dead(tag, "orders", "billing")).collect();
    let report = redrive(&bench, RedriveOptions::new(), messages).await;
    assert_eq!(report.messages.len(), 5);
    assert_eq!(report.interrupted.map(|failure| failure.code().as_str()), Some("REFUSED"));
    let released = bench.fake.verbs().iter().filter(|verb| matches!(verb, Verb::Release(_))).count();
    assert_eq!(released, 9);
}

#[tokio::test(start_paused = true)]
async fn evidence_below_what_the_dead_letter_demands_does_not_count_as_settled() {
    let dead_letter = profile("orders.dead", "NONE", "consumer = { settlement = \"committed\" }");
    let bench = start(&(profile("orders", "NONE", "dead_letter = \"orders.dead\"") + &dead_letter)).await;
    bench.fake.answer_settlements([Answer::Processed]);
    let report = redrive(&bench, RedriveOptions::new(), vec![dead(1, "orders", "billing")]).await;
    let RedriveResult::ReturnedUnsettled(failure) = &report.messages[0].result else { panic!("{report}") };
    assert_eq!(failure.code(), "SETTLEMENT_BELOW_DEMAND");
}

#[tokio::test(start_paused = true)]
async fn what_does_not_stand_behind_the_dead_letter_is_not_what_was_sent_back() {
    for (found, returned) in [(7, 0), (8, 0), (9, 1)] {
        let profiles = profile("orders", "NONE", "dead_letter = \"orders.dead\"");
        let profiles = profiles + &profile("orders.dead", "NONE", "");
        let bench = start_on(Fake::deduplicating(Duration::from_secs(60)), &profiles).await;
        // Both share a stream. The first sending has no answer, and the second one is taken for an earlier message.
        bench.fake.answer_publishes([Answer::Unknown, Answer::DeduplicatedAs(found)]);
        let mut message = dead(1, "orders", "billing");
        message.position = Some(sequence_of(8));
        let report = redrive(&bench, RedriveOptions::new(), vec![message]).await;
        assert_eq!(bench.fake.published().len(), 2);
        assert_eq!(report.returned(), returned, "{found}: {report}");
        let verb = if returned == 1 { Verb::Terminate(1, Copied) } else { Verb::Release(1) };
        assert_eq!(bench.fake.verbs(), [verb]);
    }
}
