//! What adapters and runtimes build on and no call site shows: every trait of the seam can be used behind a pointer,
//! every value may move to another thread, and every future may be awaited on one.

use std::sync::Arc;
use std::time::Duration;

use consign_core_api::outcome::AttemptLog;
use consign_core_api::settlement::state::{
    Decoding, Failed, HandlerSucceeded, Processing, Received, SettlePermit, SettlementSending,
};
use consign_core_api::spi::{
    Completion, CompletionSink, ConnectContext, Connection, Destination, DestinationSetup, Event, Inbound,
    PublishReply, PublishRequest, SettlementReply, Settler, Subscription, SubscriptionSpec, Transaction,
    Transport,
};
use consign_core_api::time::Clock;
use consign_core_api::{
    Capabilities, CapabilityUnavailable, Codec, ConfigurationError, EncodedMessage, Error, Failure, Message,
    MessageId, NotConfirmed, PublishOutcome, Rejection, SettlementOutcome,
};

fn send<T: Send + 'static + ?Sized>() {}
fn sync<T: Send + Sync + 'static + ?Sized>() {}
fn sync_error<T: std::error::Error + Send + Sync + 'static>() {}

/// Compiles only for a future that may be awaited on another thread than the one that made it.
fn send_future<F: Future + Send>(future: F) {
    drop(future);
}

#[test]
fn every_trait_of_the_seam_is_used_behind_a_pointer_and_across_threads() {
    sync::<Arc<dyn Transport>>();
    sync::<Arc<dyn Connection>>();
    sync::<Arc<dyn Destination>>();
    sync::<Arc<dyn Settler>>();
    sync::<Arc<dyn CompletionSink<PublishReply>>>();
    sync::<Arc<dyn CompletionSink<SettlementReply>>>();
    sync::<Arc<dyn Clock>>();
    sync::<Arc<dyn Codec<String>>>();
    // Owned by one task at a time, so they need not be shared.
    send::<Box<dyn Subscription>>();
    send::<Box<dyn Transaction>>();
}

#[test]
fn a_shared_transport_is_a_transport_again() {
    fn transport<T: Transport + ?Sized>() {}
    transport::<dyn Transport>();
    transport::<Arc<dyn Transport>>();
    transport::<Arc<Arc<dyn Transport>>>();
}

#[test]
fn everything_that_crosses_the_seam_may_cross_threads() {
    sync::<Completion<PublishReply>>();
    sync::<Completion<SettlementReply>>();
    sync::<PublishRequest>();
    sync::<PublishReply>();
    sync::<SettlementReply>();
    sync::<Inbound>();
    sync::<Event>();
    sync::<ConnectContext>();
    sync::<DestinationSetup>();
    sync::<SubscriptionSpec>();
    sync::<Capabilities>();
    sync::<EncodedMessage>();
    sync::<Message<String>>();
    sync::<MessageId>();
}

#[test]
fn outcomes_and_states_may_cross_threads() {
    sync::<PublishOutcome>();
    sync::<SettlementOutcome>();
    sync::<AttemptLog>();
    sync::<Received>();
    sync::<Decoding>();
    sync::<Processing>();
    sync::<HandlerSucceeded>();
    sync::<Failed>();
    sync::<SettlementSending>();
    sync::<SettlePermit>();
}

#[test]
fn every_error_fits_into_a_boxed_one() {
    sync_error::<Failure>();
    sync_error::<Error>();
    sync_error::<ConfigurationError>();
    sync_error::<CapabilityUnavailable>();
    sync_error::<NotConfirmed>();
    sync_error::<Rejection>();
}

#[test]
fn every_future_of_the_seam_may_be_awaited_on_any_thread() {
    // Never called: that it compiles, through the pointers that a runtime holds, is the proof.
    fn transport(it: &dyn Transport, context: ConnectContext) {
        send_future(it.connect(context));
    }
    fn connection(it: &dyn Connection, setup: &DestinationSetup) {
        send_future(it.open(setup));
        send_future(it.health());
        send_future(it.begin());
        send_future(it.close(Duration::ZERO));
    }
    fn destination(it: &dyn Destination, id: &MessageId, spec: SubscriptionSpec) {
        send_future(it.lookup(id));
        send_future(it.subscribe(spec));
    }
    fn subscription(it: &mut dyn Subscription) {
        send_future(it.next(std::num::NonZeroUsize::MIN));
        send_future(it.close());
    }
    fn transaction(one: Box<dyn Transaction>, two: Box<dyn Transaction>) {
        send_future(one.commit());
        send_future(two.abort());
    }
    let _: fn(&dyn Transport, ConnectContext) = transport;
    let _: fn(&dyn Connection, &DestinationSetup) = connection;
    let _: fn(&dyn Destination, &MessageId, SubscriptionSpec) = destination;
    let _: fn(&mut dyn Subscription) = subscription;
    let _: fn(Box<dyn Transaction>, Box<dyn Transaction>) = transaction;
}
