//! Each of the twelve capabilities that is missing is refused by its type when it is asked for. Where nothing can ask
//! for it, what is declared as missing is shown to be missing.

use std::sync::Arc;
use std::time::Duration;

use consign_core_api::outcome::{Duplicate, Persistence};
use consign_core_api::spi::{
    Confirm, ConnectContext, Connection, DestinationSetup, RetryStrategy, Transport,
};
use consign_core_api::time::{Clock, Moment};
use consign_core_api::{
    Capabilities, Capability, ConfigurationError, DestinationName, MessageId, OrderingScope, SettlementLevel,
    TransportName, codes,
};
use consign_policy::{
    ConsumerSpec, EvidenceSpec, KeySpec, ProfileSpec, ProfileSpecs, PublishSpec, RetrySpec,
};

use crate::case::{CaseError, CaseResult, Need};
use crate::ensure;
use crate::lab::{Lab, Number, failing_for_good};
use crate::wrap::{Meddle, redeclare};

crate::cases! {
    every_capability_is_answered_with_a_note:
        "each of the twelve capabilities is answered, and a missing one says why";
    ordering_capabilities_never_disagree:
        "keyed ordering implies an ordered stream";
    missing_durable_storage_is_refused:
        "evidence that survives the process is refused where nothing does" [Need::Lacks(Capability::DurableStorage)];
    missing_publish_confirmation_is_refused:
        "required confirmation is refused where there is none";
    missing_explicit_refusal_is_never_claimed:
        "without explicit refusals no outcome says RefusedByBroker" [Need::Lacks(Capability::ExplicitRefusal)];
    missing_individual_settlement_is_refused:
        "concurrent handlers are refused where one delivery cannot be settled alone"
        [Need::AT_LEAST_ONCE];
    an_ordered_stream_is_given_or_refused:
        "the order of partitions is given where it is declared, and refused where it is not";
    keyed_ordering_is_given_or_refused:
        "the order of keys is given where it is declared, and refused where it is not";
    one_sequence_is_given_or_refused:
        "the order of a whole destination is given where it is declared, and refused where it is not";
    missing_redelivery_is_refused:
        "a retry by redelivery is refused where nothing is redelivered"
        [Need::AT_LEAST_ONCE];
    missing_delayed_redelivery_is_refused:
        "a delayed redelivery is refused where it cannot be delayed"
        [Need::AT_LEAST_ONCE];
    a_broker_transaction_is_given_or_refused:
        "a transaction begins where it is declared, and is CAPABILITY_UNAVAILABLE where it is not";
    missing_deduplication_is_never_claimed:
        "without deduplication a second publish under one id is a second message, and told as no duplicate"
        [Need::Lacks(Capability::PublishDeduplication)];
    a_missing_native_dead_letter_loses_nothing:
        "without a broker's own dead letter a message that failed for good stays or goes where its profile says"
        [Need::Lacks(Capability::NativeDeadLetter), Need::AT_LEAST_ONCE];
    missing_flow_control_is_refused:
        "consuming is refused where it cannot be bounded";
    a_settlement_level_is_given_or_refused:
        "a demanded settlement level is given where it is declared, and refused where it is not";
}

async fn every_capability_is_answered_with_a_note(lab: &Lab) -> CaseResult {
    for capability in Capability::ALL {
        let support = lab.capabilities().support(capability);
        let answered =
            support.is_available() || !support.note().is_empty() && support.note() != "not declared";
        ensure!(answered, "{capability}: {support}");
    }
    Ok(())
}

async fn ordering_capabilities_never_disagree(lab: &Lab) -> CaseResult {
    for ordering in
        [OrderingScope::None, OrderingScope::Destination, OrderingScope::Partition, OrderingScope::Key]
    {
        let declared = declared(lab, ordering)?;
        let (keyed, stream) =
            (declared.has(Capability::KeyedOrdering), declared.has(Capability::OrderedStream));
        ensure!(!keyed || stream, "{ordering}: keyed ordering without an ordered stream");
        ensure!(
            !declared.ordering().keeps(ordering) || !ordering.is_ordered() || stream,
            "{ordering}: kept without a stream"
        );
    }
    Ok(())
}

/// What the adapter declares of a destination of this profile with another ordering.
fn declared(lab: &Lab, ordering: OrderingScope) -> Result<Capabilities, CaseError> {
    let mut setup =
        DestinationSetup::new(DestinationName::new("declared")?, lab.profile().delivery, ordering);
    setup.native = lab.profile().native.clone();
    Ok(lab.transport().capabilities(&setup))
}

/// Takes a capability out of what the adapter declares, where it is there.
struct Without(Capability);

impl Meddle for Without {
    fn capabilities(&self, _: &DestinationSetup, declared: Capabilities) -> Capabilities {
        redeclare(&declared, declared.ordering().clone()).unsupported(self.0, "taken out by the case").build()
    }
}

/// Asks for a capability that is missing, whether of itself or because the case takes it out.
async fn unavailable_without(lab: &Lab, capability: Capability, spec: ProfileSpec) -> CaseResult {
    let specs = ProfileSpecs::new().with(lab.destination("d"), spec);
    refused(lab.within("building", lab.start_with(Without(capability), specs)).await?)
}

async fn unavailable(lab: &Lab, spec: ProfileSpec) -> CaseResult {
    refused(lab.within("building", lab.one_with(spec)).await?)
}

fn refused<T>(built: Result<T, ConfigurationError>) -> CaseResult {
    match built {
        Ok(_) => Err(CaseError::new("it is declared as missing, was asked for, and it started")),
        Err(report) => {
            ensure!(report.has(codes::CAPABILITY_UNAVAILABLE), "{report}");
            Ok(())
        }
    }
}

async fn missing_durable_storage_is_refused(lab: &Lab) -> CaseResult {
    let evidence = EvidenceSpec::default().persistence(Persistence::PageCache);
    unavailable(lab, lab.spec().publish(PublishSpec::default().evidence(evidence))).await
}

async fn missing_publish_confirmation_is_refused(lab: &Lab) -> CaseResult {
    let asking = lab.spec().publish(PublishSpec::default().confirmation(Confirm::Required));
    unavailable_without(lab, Capability::PublishConfirmation, asking).await
}

async fn missing_explicit_refusal_is_never_claimed(lab: &Lab) -> CaseResult {
    use consign_core_api::PublishOutcome;
    use consign_core_api::outcome::Transmission;
    let (messaging, name) = lab.one().await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    for n in 0..20 {
        if let PublishOutcome::Rejected(rejection) =
            lab.within("publishing", publisher.publish(Number::message(n, "k"))).await?
        {
            ensure!(rejection.transmission() == Transmission::NotTransmitted, "{rejection:?}");
        }
    }
    lab.end(&messaging).await
}

async fn missing_individual_settlement_is_refused(lab: &Lab) -> CaseResult {
    let mut spec = lab.spec().consumer(ConsumerSpec::default().concurrency(2));
    spec.ordering = if lab.profile().ordering == OrderingScope::Destination {
        OrderingScope::None
    } else {
        spec.ordering
    };
    unavailable_without(lab, Capability::IndividualSettlement, spec).await
}

async fn ordering(lab: &Lab, scope: OrderingScope) -> CaseResult {
    let mut spec = lab.spec().key(KeySpec::message());
    spec.ordering = scope;
    if !declared(lab, scope)?.ordering().keeps(scope) {
        return unavailable(lab, spec).await;
    }
    let (messaging, name) = lab.one_with(spec).await?;
    lab.publish(&messaging, &name, "k", 0..20).await?;
    let mut consuming = lab.consume(&messaging, &name, "g").await?;
    let seen: Vec<_> = consuming.total(lab, 20).await?.iter().map(|seen| seen.n).collect();
    ensure!(seen == (0..20).collect::<Vec<_>>(), "one key under the ordering {scope} started as {seen:?}");
    lab.end(&messaging).await
}

async fn an_ordered_stream_is_given_or_refused(lab: &Lab) -> CaseResult {
    ordering(lab, OrderingScope::Partition).await
}

async fn keyed_ordering_is_given_or_refused(lab: &Lab) -> CaseResult {
    ordering(lab, OrderingScope::Key).await
}

async fn one_sequence_is_given_or_refused(lab: &Lab) -> CaseResult {
    ordering(lab, OrderingScope::Destination).await
}

async fn missing_redelivery_is_refused(lab: &Lab) -> CaseResult {
    let spec = lab.spec().retry(RetrySpec::new(RetryStrategy::Redelivery).max_attempts(3));
    unavailable_without(lab, Capability::Redelivery, spec).await
}

async fn missing_delayed_redelivery_is_refused(lab: &Lab) -> CaseResult {
    let retry = RetrySpec::new(RetryStrategy::Redelivery).max_attempts(3).first(Duration::from_secs(1));
    unavailable_without(lab, Capability::DelayedRedelivery, lab.spec().retry(retry)).await
}

struct TokioClock(tokio::time::Instant);

impl Clock for TokioClock {
    fn now(&self) -> Moment {
        Moment::from_start(self.0.elapsed())
    }
    fn wall(&self) -> std::time::SystemTime {
        std::time::SystemTime::now()
    }
}

async fn a_broker_transaction_is_given_or_refused(lab: &Lab) -> CaseResult {
    let clock = Arc::new(TokioClock(tokio::time::Instant::now()));
    let context = ConnectContext::new(TransportName::new("main")?, Duration::from_secs(10), clock);
    let transport: Arc<dyn Transport> = lab.transport();
    let connection: Arc<dyn Connection> = lab.within("connecting", transport.connect(context)).await??;
    let begun = lab.within("beginning", connection.begin()).await?;
    let result = match (lab.capabilities().has(Capability::BrokerTransaction), begun) {
        (true, Ok(transaction)) => {
            transaction.abort().await.map_err(|failure| CaseError::new(failure.to_string()))
        }
        (true, Err(refusal)) => Err(CaseError::new(format!("declared, and refused: {refusal}"))),
        (false, Ok(_)) => Err(CaseError::new("declared as missing, and begun")),
        // An adapter may have a code of its own; the type is the promise.
        (false, Err(refusal)) if !refusal.why().is_empty() => Ok(()),
        (false, Err(refusal)) => Err(CaseError::new(format!("refused without a reason: {refusal}"))),
    };
    lab.within("closing", connection.close(Duration::from_secs(5))).await?;
    result
}

async fn missing_deduplication_is_never_claimed(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    let id = MessageId::generate();
    for n in 0..2 {
        let confirmation = lab.confirmed(publisher.publish(Number::message(n, "k").id(id.clone()))).await?;
        ensure!(
            confirmation.duplicate() != Duplicate::Deduplicated,
            "deduplicated, although it is declared as missing"
        );
    }
    let stored = lab.stored_numbers(&name).await?;
    ensure!(stored == [0, 1], "two messages were CONFIRMED under one id, and {stored:?} are stored");
    lab.end(&messaging).await
}

async fn a_missing_native_dead_letter_loses_nothing(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let mut failing =
        lab.consume_by(&messaging, &name, "g", |_, _| async { Err(failing_for_good()) }).await?;
    failing.next(lab).await?;
    lab.happened("the halt", 1, |event| matches!(event.what, crate::history::What::Halted(_))).await?;
    lab.end(&messaging).await?;
    let again = lab.start(ProfileSpecs::new().with(&name, lab.spec())).await?;
    let mut consuming = lab.consume(&again, &name, "g").await?;
    consuming.every(lab, [1]).await?;
    lab.end(&again).await
}

async fn missing_flow_control_is_refused(lab: &Lab) -> CaseResult {
    unavailable_without(lab, Capability::ConsumerFlowControl, lab.spec()).await
}

async fn a_settlement_level_is_given_or_refused(lab: &Lab) -> CaseResult {
    let spec = lab.spec().consumer(ConsumerSpec::default().settlement(SettlementLevel::Committed));
    if lab.capabilities().settlement_level() < Some(SettlementLevel::Committed) {
        return unavailable(lab, spec).await;
    }
    let (messaging, name) = lab.one_with(spec).await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let _consuming = lab.consume(&messaging, &name, "g").await?;
    let committed = crate::history::What::Settled(SettlementLevel::Committed);
    lab.happened("a committed settlement", 1, |event| event.is(committed)).await?;
    lab.end(&messaging).await
}
