//! A real server for each test, and the runtime's side of completions.
#![allow(dead_code, reason = "each test file uses a part of it")]

mod server;
mod sink;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use consign_core_api::guarantee::{DeliveryGuarantee, OrderingScope};
use consign_core_api::message::{EncodedMessage, Message, MessageId};
use consign_core_api::name::{DestinationName, GroupName, TransportName};
use consign_core_api::settlement::state::Received;
use consign_core_api::spi::{
    ConnectContext, Connection, Destination, DestinationSetup, Event, Inbound, NativeSettings, PublishReply,
    PublishRequest, SettlementReply, Settler, Subscription, SubscriptionSpec, TopologyMode, Transport as _,
};
use consign_core_api::time::{Clock, Moment};
use consign_nats::{NatsConfig, Transport};

pub(crate) use server::Server;
pub(crate) use sink::Answers;

/// Longer than anything here takes; a test that reaches it fails.
pub(crate) const LONG: Duration = Duration::from_secs(20);

pub(crate) async fn soon<T>(what: &str, wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, wait).await.unwrap_or_else(|_| panic!("waited too long for {what}"))
}

struct TestClock(std::time::Instant);

impl Clock for TestClock {
    fn now(&self) -> Moment {
        Moment::from_start(self.0.elapsed())
    }
    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }
}

pub(crate) fn context() -> ConnectContext {
    let clock = Arc::new(TestClock(std::time::Instant::now()));
    ConnectContext::new(TransportName::new("test").unwrap(), Duration::from_secs(5), clock)
}

pub(crate) async fn connect(server: &Server) -> Arc<dyn Connection> {
    connect_with(NatsConfig::new(server.url())).await
}

pub(crate) async fn connect_with(config: NatsConfig) -> Arc<dyn Connection> {
    let config = config.with_request_timeout(Duration::from_secs(2));
    Transport::new(config).connect(context()).await.expect("the server is there")
}

pub(crate) fn setup(name: &str, ordering: OrderingScope) -> DestinationSetup {
    let name = DestinationName::new(name).unwrap();
    let mut setup = DestinationSetup::new(name, DeliveryGuarantee::AtLeastOnce, ordering);
    setup.topology = TopologyMode::Declare;
    setup
}

pub(crate) fn with_native(mut setup: DestinationSetup, native: NativeSettings) -> DestinationSetup {
    setup.native = native;
    setup
}

pub(crate) fn message(payload: &str) -> EncodedMessage {
    let (_, parts) = Message::<()>::tombstone().into_parts();
    EncodedMessage::new(payload.to_owned(), parts)
}

pub(crate) fn message_with_id(payload: &str, id: &str) -> EncodedMessage {
    let mut message = message(payload);
    message.set_id(Some(MessageId::new(id).unwrap()));
    message
}

/// Publishes and waits for the answer.
pub(crate) async fn publish(destination: &Arc<dyn Destination>, message: EncodedMessage) -> PublishReply {
    let answers = Answers::new();
    destination.publish(PublishRequest::new(message, Moment::NEVER), answers.completion(1));
    soon("an answer to a publish", answers.of(1)).await
}

/// The code of a reply that is no acceptance, after `R` or `U`.
pub(crate) fn verdict(reply: PublishReply) -> String {
    match reply {
        PublishReply::Accepted(_) => "A".to_owned(),
        PublishReply::Refused(refusal) => {
            let (transmission, failure) = refusal.into_parts();
            format!("R {} {transmission:?}", failure.code())
        }
        PublishReply::Unknown(failure) => format!("U {}", failure.code()),
    }
}

pub(crate) async fn subscribe(
    destination: &Arc<dyn Destination>,
    group: &str,
    outstanding: usize,
) -> Box<dyn Subscription> {
    let spec = SubscriptionSpec::new(GroupName::new(group).unwrap(), NonZeroUsize::new(outstanding).unwrap());
    destination.subscribe(spec).await.expect("subscribes")
}

/// Waits for the next delivery and skips other events.
pub(crate) async fn delivery(subscription: &mut Box<dyn Subscription>) -> Inbound {
    loop {
        for event in soon("a delivery", subscription.next(NonZeroUsize::MIN)).await {
            if let Event::Delivery(inbound) = event {
                return *inbound;
            }
        }
    }
}

pub(crate) fn text(inbound: &Inbound) -> String {
    let bytes = inbound.message.payload().as_bytes().expect("bytes");
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// Settles and waits for the answer.
pub(crate) async fn settle(settler: &Arc<dyn Settler>, inbound: &Inbound) -> SettlementReply {
    let answers = Answers::new();
    let (_sending, permit) = Received::new(inbound.token).decode().decoded().succeed().settle();
    settler.settle(permit, answers.completion(1));
    soon("an answer to a settlement", answers.of(1)).await
}

/// An independent client.
pub(crate) async fn other(server: &Server) -> async_nats::jetstream::Context {
    async_nats::jetstream::new(async_nats::connect(server.url()).await.expect("connects"))
}
