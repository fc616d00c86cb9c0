//! What does not start, against a real server.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::stream::{self, RetentionPolicy, StorageType};
use consign_core_api::Problem;
use consign_core_api::error::Phase;
use consign_core_api::guarantee::{DeliveryGuarantee, OrderingScope};
use consign_core_api::name::GroupName;
use consign_core_api::spi::{
    Connection, DestinationSetup, NativeSettings, SubscriptionSpec, TopologyMode, Transport as _,
    TransportError,
};
use consign_nats::{Credentials, NatsConfig, Transport};
use std::num::NonZeroUsize;
use std::sync::Arc;
use support::*;

fn verifying(native: NativeSettings) -> DestinationSetup {
    let mut setup = with_native(setup("orders", OrderingScope::None), native);
    setup.topology = TopologyMode::Verify;
    setup
}

async fn refusals(connection: &Arc<dyn Connection>, setup: &DestinationSetup) -> Vec<String> {
    let problems = connection.open(setup).await.err().unwrap_or_default();
    assert!(problems.iter().all(|problem| problem.phase() == Phase::Preflight));
    problems.iter().map(|problem| problem.code().to_string()).collect()
}

fn orders() -> stream::Config {
    stream::Config { name: "orders".into(), subjects: vec!["orders".into()], ..Default::default() }
}

async fn subscribe_refused(connection: &Arc<dyn Connection>, setup: &DestinationSetup) -> Vec<String> {
    let destination = connection.open(setup).await.expect("opens");
    let spec = SubscriptionSpec::new(GroupName::new("g").unwrap(), NonZeroUsize::MIN);
    match destination.subscribe(spec).await {
        Ok(_) => Vec::new(),
        Err(TransportError::Refused(problems)) => problems.iter().map(|p| p.code().to_string()).collect(),
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_missing_stream_is_refused_unless_it_may_be_declared() {
    let server = Server::start();
    let connection = connect(&server).await;
    let verify = verifying(NativeSettings::default());
    assert_eq!(refusals(&connection, &verify).await, ["TOPOLOGY_MISSING"]);
    let mut declare = verify.clone();
    declare.topology = TopologyMode::Declare;
    assert!(refusals(&connection, &declare).await.is_empty());
    assert!(refusals(&connection, &declare).await.is_empty(), "declaring twice is harmless");
    assert!(refusals(&connection, &verify).await.is_empty());
    assert_eq!(subscribe_refused(&connection, &verify).await, ["TOPOLOGY_MISSING"]);
    assert!(subscribe_refused(&connection, &declare).await.is_empty());
    assert!(subscribe_refused(&connection, &verify).await.is_empty());
}

#[tokio::test]
async fn an_existing_stream_that_differs_is_refused_and_never_altered() {
    let server = Server::start();
    let connection = connect(&server).await;
    let native = other(&server).await;
    let memory = stream::Config { storage: StorageType::Memory, ..orders() };
    native.create_stream(memory).await.unwrap();
    let mut declare = verifying(NativeSettings::default());
    declare.topology = TopologyMode::Declare;
    assert_eq!(refusals(&connection, &declare).await, ["TOPOLOGY_MISMATCH"]);
    let info = native.get_stream("orders").await.unwrap().get_info().await.unwrap();
    assert_eq!(info.config.storage, StorageType::Memory);
    let written = verifying(NativeSettings::default().with("storage", "memory"));
    assert!(refusals(&connection, &written).await.is_empty());
}

#[tokio::test]
async fn what_makes_a_confirmation_false_is_refused() {
    let server = Server::start();
    let connection = connect(&server).await;
    let native = other(&server).await;
    let vanish = "NATS_CONFIRMED_MAY_VANISH";
    let interest = stream::Config { retention: RetentionPolicy::Interest, ..orders() };
    for (config, expected) in [
        (stream::Config { no_ack: true, ..orders() }, "NATS_STREAM_DOES_NOT_CONFIRM"),
        (interest.clone(), vanish),
        (stream::Config { max_age: Duration::from_secs(300), ..orders() }, vanish),
        (stream::Config { max_messages: 10, ..orders() }, vanish),
        (stream::Config { max_messages_per_subject: 10, ..orders() }, vanish),
        (stream::Config { subjects: vec!["other".into()], ..orders() }, "TOPOLOGY_MISMATCH"),
        (stream::Config { duplicate_window: Duration::from_secs(1), ..orders() }, "TOPOLOGY_MISMATCH"),
    ] {
        native.create_stream(config.clone()).await.unwrap();
        let found = refusals(&connection, &verifying(NativeSettings::default())).await;
        assert_eq!(found, [expected], "{config:?}");
        native.delete_stream("orders").await.unwrap();
    }
    // A consumer that is interested makes it true; one that is interested in something else does not.
    let wide = stream::Config { subjects: vec!["orders".into(), "other".into()], ..interest };
    let stream = native.create_stream(wide).await.unwrap();
    let interested = |subject: &str| pull::Config {
        durable_name: Some(format!("d-{subject}")),
        filter_subject: subject.into(),
        ..Default::default()
    };
    stream.create_consumer(interested("other")).await.unwrap();
    assert_eq!(refusals(&connection, &verifying(NativeSettings::default())).await, [vanish]);
    stream.create_consumer(interested("orders")).await.unwrap();
    assert!(refusals(&connection, &verifying(NativeSettings::default())).await.is_empty());
}

#[tokio::test]
async fn what_at_most_once_never_promised_is_not_refused() {
    let server = Server::start();
    let connection = connect(&server).await;
    let aging = stream::Config { max_age: Duration::from_secs(300), ..orders() };
    other(&server).await.create_stream(aging).await.unwrap();
    let mut setup = verifying(NativeSettings::default());
    setup.delivery = DeliveryGuarantee::AtMostOnce;
    assert!(refusals(&connection, &setup).await.is_empty());
}

#[tokio::test]
async fn a_durable_that_differs_from_the_profile_is_refused() {
    let server = Server::start();
    let connection = connect(&server).await;
    let native = other(&server).await;
    let both = stream::Config { subjects: vec!["orders".into(), "other".into()], ..orders() };
    let stream = native.create_stream(both).await.unwrap();
    let fits = || pull::Config {
        durable_name: Some("g".into()),
        filter_subject: "orders".into(),
        ack_policy: AckPolicy::Explicit,
        ack_wait: Duration::from_secs(60),
        max_ack_pending: 1000,
        ..Default::default()
    };
    let setup = verifying(NativeSettings::default());
    let mut ordered = setup.clone();
    ordered.ordering = OrderingScope::Destination;
    let written = verifying(NativeSettings::default().with("max_ack_pending", 7));
    for (config, setup, differs) in [
        (fits(), &setup, false),
        (pull::Config { max_ack_pending: 1, ..fits() }, &ordered, false),
        (fits(), &ordered, true),
        (fits(), &written, true),
        (pull::Config { filter_subject: "other".into(), ..fits() }, &setup, true),
        (pull::Config { ack_policy: AckPolicy::All, ..fits() }, &setup, true),
        (pull::Config { ack_wait: Duration::from_secs(30), ..fits() }, &setup, true),
        (pull::Config { max_deliver: 5, ..fits() }, &setup, true),
        (pull::Config { headers_only: true, ..fits() }, &setup, true),
        (pull::Config { max_batch: 1, ..fits() }, &setup, true),
        (pull::Config { inactive_threshold: Duration::from_secs(99), ..fits() }, &setup, true),
    ] {
        stream.create_consumer(config.clone()).await.unwrap();
        let found = subscribe_refused(&connection, setup).await;
        assert_eq!(found.iter().any(|code| code == "TOPOLOGY_MISMATCH"), differs, "{config:?} {found:?}");
        stream.delete_consumer("g").await.unwrap();
    }
}

#[tokio::test]
async fn two_destinations_in_one_stream_need_durables_of_their_own() {
    let server = Server::start();
    let connection = connect(&server).await;
    let both = stream::Config { subjects: vec!["orders".into(), "bills".into()], ..orders() };
    other(&server).await.create_stream(both).await.unwrap();
    let of = |name: &str, native| with_native(setup(name, OrderingScope::None), native);
    let native = || NativeSettings::default().with("stream", "orders");
    assert!(subscribe_refused(&connection, &of("orders", native())).await.is_empty());
    let clash = subscribe_refused(&connection, &of("bills", native())).await;
    assert_eq!(clash, ["TOPOLOGY_MISMATCH"]);
    let own = of("bills", native().with("durable", "bills"));
    assert!(subscribe_refused(&connection, &own).await.is_empty());
}

#[tokio::test]
async fn every_problem_of_a_destination_is_reported_at_once() {
    let server = Server::start();
    let connection = connect(&server).await;
    let bad = stream::Config {
        subjects: vec!["other".into()],
        no_ack: true,
        max_messages: 5,
        max_age: Duration::from_secs(300),
        ..orders()
    };
    other(&server).await.create_stream(bad).await.unwrap();
    let problems = connection.open(&verifying(NativeSettings::default())).await.err().unwrap();
    assert_eq!(problems.len(), 4, "{problems:?}");
    let mut ranks: Vec<_> = problems.iter().map(Problem::rank).collect();
    ranks.dedup();
    assert_eq!(ranks, [0, 1, 2, 3]);
}

#[tokio::test]
async fn wrong_credentials_are_refused_and_no_error_shows_a_secret() {
    let server = Server::start_with(&["--user", "bob", "--pass", "right-hunter2"]);
    let wrong = |config: NatsConfig| async move {
        Transport::new(config).connect(context()).await.err().expect("refused")
    };
    let config = NatsConfig::new(server.url());
    let password =
        |password: &str| Credentials::UserPassword { user: "bob".into(), password: password.into() };
    let in_address = format!("nats://bob:wrong-hunter2@127.0.0.1:{}", server.port());
    for config in [
        config.clone().with_credentials(password("wrong-hunter2")),
        config.clone().with_credentials(Credentials::Token("wrong-hunter2".into())),
        NatsConfig::new(in_address),
        config.clone(),
        NatsConfig::new("nats://bob:wrong-hunter2@:::"),
        config.clone().with_credentials(Credentials::NkeySeed("wrong-hunter2".into())),
        config.clone().with_credentials(Credentials::File("/nowhere/hunter".into())),
    ] {
        let error = wrong(config.clone()).await;
        let text = format!("{error} {error:?} {config:?} {:?}", Transport::new(config.clone()));
        assert!(!text.contains("hunter2"), "{text}");
        let TransportError::Failed(failure) = error else { panic!() };
        assert!(!failure.category().is_transient(), "{failure}");
    }
    let right = NatsConfig::new(server.url()).with_credentials(password("right-hunter2"));
    assert!(connect_with(right).await.health().await.is_up());
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_within_the_bound() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("nats://{}", free.local_addr().unwrap());
    // Accepts and says nothing.
    let silent = Transport::new(NatsConfig::new(&url));
    let mut context = context();
    context.timeout = Duration::from_millis(300);
    let Err(TransportError::Failed(failure)) = soon("the bound", silent.connect(context.clone())).await
    else {
        panic!()
    };
    assert_eq!(failure.code(), "NATS_CONNECT_FAILED");
    drop(free);
    let Err(TransportError::Failed(failure)) = soon("the refusal", silent.connect(context)).await else {
        panic!()
    };
    assert_eq!(failure.code(), "NATS_CONNECT_FAILED");
}

#[tokio::test]
async fn the_native_client_is_there_once_connected() {
    let server = Server::start();
    let transport = Transport::new(NatsConfig::new(server.url()));
    let native = transport.native();
    assert!(native.client().is_none());
    let _connection = transport.connect(context()).await.unwrap();
    assert!(native.client().expect("connected").server_info().jetstream);
}
