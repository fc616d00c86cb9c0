//! A configuration that contradicts itself does not start.

use std::time::Duration;

use consign_core_api::error::Phase;
use consign_core_api::spi::{DestinationSetup, OrderImpact, RetryStrategy};
use consign_core_api::{
    Code, ConfigurationError, DestinationName, ErrorKind, ExternalSideEffectGuarantee, OrderingScope, Problem,
};
use consign_policy::{ConsumerSpec, ProfileSpec, ProfileSpecs, PublishSpec, RetrySpec};
use consign_runtime::Messaging;

use crate::case::{CaseError, CaseResult, Need};
use crate::ensure;
use crate::lab::{Lab, Number};
use crate::wrap::Meddle;

crate::cases! {
    every_contradiction_of_every_destination_is_reported_at_once:
        "one report holds every contradiction, ordered, with its fields and what to change";
    an_unknown_native_setting_is_refused_by_the_adapter:
        "the adapter's validator is wired into build, and refuses what it does not know";
    whatever_the_adapters_validator_says_stops_the_start:
        "a problem of the broker's own rules stops the start, with its own code";
    an_illegal_destination_name_is_refused:
        "names are legal or do not exist";
    an_unbound_transport_is_refused:
        "a profile names a transport that is bound";
    a_dead_letter_without_a_profile_is_refused:
        "no edge leads out of what is registered" [Need::AT_LEAST_ONCE];
    a_circle_of_dead_letters_is_refused_and_its_path_is_named:
        "no message goes round for ever" [Need::AT_LEAST_ONCE];
    a_retry_that_reorders_is_refused_where_an_order_is_asked_for:
        "retry and order never contradict each other" [Need::Ordered, Need::AT_LEAST_ONCE];
    a_retry_by_copies_is_refused_where_the_order_is_to_be_kept:
        "PRESERVE never republishes" [Need::AT_LEAST_ONCE];
    more_than_one_handler_for_one_sequence_is_refused:
        "a destination in one order has one handler"
        [Need::Ordering(OrderingScope::Destination)];
    retries_under_at_most_once_are_refused:
        "AT_MOST_ONCE handles a message once" [Need::AT_MOST_ONCE];
    a_destination_without_a_profile_is_a_typed_error:
        "publishing to and consuming from what is not registered is an error of its own kind";
    an_illegal_group_name_is_a_typed_error:
        "groups have legal names";
    consuming_without_the_inbox_that_is_promised_is_refused:
        "INBOX_TRANSACTIONAL is not consumed without an inbox" [Need::AT_LEAST_ONCE];
    consuming_with_a_handler_that_is_not_idempotent_is_refused:
        "IDEMPOTENCY_REQUIRED is consumed only by a handler that says it is";
    values_out_of_their_range_are_refused_and_never_panic:
        "zero, one nanosecond and the longest duration are refused or accepted, never a panic";
    one_destination_written_twice_is_refused:
        "two profiles never share a physical name";
}

async fn refusal(lab: &Lab, specs: ProfileSpecs) -> Result<ConfigurationError, CaseError> {
    match lab.within("building", lab.start(specs)).await? {
        Err(report) => Ok(report),
        Ok(_) => Err(CaseError::new("it contradicts itself, and it started")),
    }
}

async fn refused_with(lab: &Lab, specs: ProfileSpecs, code: &'static str) -> CaseResult {
    let report = refusal(lab, specs).await?;
    ensure!(report.has(Code::new(code)), "{code} is missing in: {report}");
    Ok(())
}

fn named(lab: &Lab, spec: ProfileSpec) -> ProfileSpecs {
    ProfileSpecs::new().with(lab.destination("d"), spec)
}

async fn every_contradiction_of_every_destination_is_reported_at_once(lab: &Lab) -> CaseResult {
    let attempts = lab.spec().retry(RetrySpec::default().max_attempts(3));
    let unused = lab.spec().retry(RetrySpec::default().destination("elsewhere"));
    let (one, two) = (lab.destination("a"), lab.destination("b"));
    let report = refusal(lab, ProfileSpecs::new().with(&two, unused).with(&one, attempts)).await?;
    let wanted = [(&one, "RETRY_ATTEMPTS_CONTRADICT_STRATEGY"), (&two, "RETRY_DESTINATION_UNUSED")];
    let mut last = 0;
    for (destination, code) in wanted {
        let found = report.problems().iter().position(|problem| {
            problem.destination() == Some(destination.as_str()) && problem.code() == code
        });
        let Some(place) = found else {
            return Err(CaseError::new(format!("{code} of {destination} is missing in: {report}")));
        };
        ensure!(place >= last, "the report is not in order: {report}");
        last = place;
        let problem = &report.problems()[place];
        ensure!(
            !problem.fields().is_empty() && !problem.help().is_empty(),
            "no fields or no help: {problem}"
        );
    }
    Ok(())
}

async fn an_unknown_native_setting_is_refused_by_the_adapter(lab: &Lab) -> CaseResult {
    let mut spec = lab.spec();
    spec.native = spec.native.clone().with("no_such_setting_anywhere", 1);
    let report = refusal(lab, named(lab, spec)).await?;
    let by_the_broker = report.problems().iter().any(|problem| problem.phase() == Phase::Broker);
    ensure!(by_the_broker, "no problem of the broker's own rules: {report}");
    Ok(())
}

/// A validator that refuses everything.
struct Refusing;

const FORBIDDEN: Code = Code::new("CASE_FORBIDS_IT");

impl Meddle for Refusing {
    fn validate(&self, setup: &DestinationSetup, mut problems: Vec<Problem>) -> Vec<Problem> {
        problems
            .push(Problem::new(Phase::Broker, FORBIDDEN, "the case forbids it", "nothing").at(&setup.name));
        problems
    }
}

async fn whatever_the_adapters_validator_says_stops_the_start(lab: &Lab) -> CaseResult {
    match lab.start_with(Refusing, named(lab, lab.spec())).await {
        Ok(_) => Err(CaseError::new("the adapter refused it, and it started")),
        Err(report) => {
            ensure!(report.has(FORBIDDEN), "{report}");
            Ok(())
        }
    }
}

async fn an_illegal_destination_name_is_refused(lab: &Lab) -> CaseResult {
    for name in ["", "a..b", ".a", "a b", "a/b", "*", "a>", "naïve"] {
        refused_with(lab, ProfileSpecs::new().with(name, lab.spec()), "FIELD_OUT_OF_RANGE").await?;
    }
    Ok(())
}

async fn an_unbound_transport_is_refused(lab: &Lab) -> CaseResult {
    let mut spec = lab.spec();
    spec.transport = "elsewhere".to_owned();
    refused_with(lab, named(lab, spec), "TRANSPORT_UNBOUND").await
}

async fn a_dead_letter_without_a_profile_is_refused(lab: &Lab) -> CaseResult {
    refused_with(lab, named(lab, lab.spec().dead_letter("nowhere")), "UNREGISTERED_DESTINATION").await
}

async fn a_circle_of_dead_letters_is_refused_and_its_path_is_named(lab: &Lab) -> CaseResult {
    let (a, b) = (lab.destination("a"), lab.destination("b"));
    let specs = ProfileSpecs::new().with(&a, lab.spec().dead_letter(&b)).with(&b, lab.spec().dead_letter(&a));
    let report = refusal(lab, specs).await?;
    ensure!(report.has(Code::new("DESTINATION_CYCLE")), "{report}");
    let text = report.to_string();
    ensure!(text.contains(&a) && text.contains(&b), "the path is not named: {text}");
    refused_with(lab, ProfileSpecs::new().with(&a, lab.spec().dead_letter(&a)), "DESTINATION_CYCLE").await
}

async fn a_retry_that_reorders_is_refused_where_an_order_is_asked_for(lab: &Lab) -> CaseResult {
    let retry = RetrySpec::new(RetryStrategy::InPlace).impact(OrderImpact::AllowReorder).max_attempts(3);
    refused_with(lab, named(lab, lab.spec().retry(retry)), "ORDERED_WITH_REORDERING_RETRY").await
}

async fn a_retry_by_copies_is_refused_where_the_order_is_to_be_kept(lab: &Lab) -> CaseResult {
    let (origin, rung) = (lab.destination("origin"), lab.destination("rung"));
    let retry = RetrySpec::to(&rung).impact(OrderImpact::Preserve).max_attempts(3);
    let specs = ProfileSpecs::new().with(&origin, lab.spec().retry(retry)).with(&rung, lab.spec());
    refused_with(lab, specs, "PRESERVE_WITH_REPUBLISHING_RETRY").await
}

async fn more_than_one_handler_for_one_sequence_is_refused(lab: &Lab) -> CaseResult {
    let spec = lab.spec().consumer(ConsumerSpec::default().concurrency(4));
    refused_with(lab, named(lab, spec), "DESTINATION_ORDERING_WITH_CONCURRENCY").await
}

async fn retries_under_at_most_once_are_refused(lab: &Lab) -> CaseResult {
    let retry = RetrySpec::new(RetryStrategy::InPlace).max_attempts(3);
    refused_with(lab, named(lab, lab.spec().retry(retry)), "AT_MOST_ONCE_WITH_RETRY").await
}

async fn a_destination_without_a_profile_is_a_typed_error(lab: &Lab) -> CaseResult {
    let (messaging, _) = lab.one().await?;
    for name in ["nowhere", "", "a..b"] {
        let Err(error) = messaging.publisher::<Number>(name) else {
            return Err(CaseError::new(format!("a publisher of {name:?}")));
        };
        ensure!(error.kind() == ErrorKind::Usage && error.code() == "DESTINATION_UNKNOWN", "{error:?}");
        ensure!(refused_consume(lab, &messaging, name, "g").await? == "DESTINATION_UNKNOWN", "{name:?}");
    }
    lab.end(&messaging).await
}

async fn an_illegal_group_name_is_a_typed_error(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one().await?;
    for group in ["", "a.b", "a b", "ü"] {
        // Which code it has is the runtime's affair; that it is one is the promise.
        let code = refused_consume(lab, &messaging, &name, group).await?;
        ensure!(!code.as_str().is_empty(), "an error without a code");
    }
    lab.end(&messaging).await
}

/// Consumes what must not be consumed, and returns the code of the refusal.
async fn refused_consume(
    lab: &Lab,
    messaging: &Messaging,
    name: &str,
    group: &str,
) -> Result<Code, CaseError> {
    let handler = |_: consign_runtime::consumer::Delivery<Number>, _| async { Ok(()) };
    match lab.within("starting to consume", messaging.consume(name, group, handler)).await? {
        Err(error) => Ok(error.code()),
        Ok(_) => Err(CaseError::new(format!("{group:?} consumes {name:?}"))),
    }
}

async fn consuming_without_the_inbox_that_is_promised_is_refused(lab: &Lab) -> CaseResult {
    let spec = lab.spec().side_effects(ExternalSideEffectGuarantee::InboxTransactional);
    let (messaging, name) = lab.one_with(spec).await?;
    let code = refused_consume(lab, &messaging, &name, "g").await?;
    ensure!(code == "INBOX_NOT_CONFIGURED", "the code is {code}");
    lab.end(&messaging).await
}

async fn consuming_with_a_handler_that_is_not_idempotent_is_refused(lab: &Lab) -> CaseResult {
    let spec = lab.spec().side_effects(ExternalSideEffectGuarantee::IdempotencyRequired);
    let (messaging, name) = lab.one_with(spec).await?;
    let code = refused_consume(lab, &messaging, &name, "g").await?;
    ensure!(code == "HANDLER_NOT_IDEMPOTENT", "the code is {code}");
    let handler = |_: consign_runtime::consumer::Delivery<Number>, _| async { Ok(()) };
    let idempotent = consign_runtime::consumer::idempotent(handler);
    let _ = lab.within("starting to consume", messaging.consume(&name, "g", idempotent)).await??;
    lab.end(&messaging).await
}

async fn values_out_of_their_range_are_refused_and_never_panic(lab: &Lab) -> CaseResult {
    for odd in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
        let publish = lab.spec().publish(PublishSpec::default().deadline(odd));
        refused_with(lab, named(lab, publish), "FIELD_OUT_OF_RANGE").await?;
        let consume =
            lab.spec().consumer(ConsumerSpec::default().handler_timeout(odd).settlement_deadline(odd));
        refused_with(lab, named(lab, consume), "FIELD_OUT_OF_RANGE").await?;
    }
    for odd in [0, u64::MAX] {
        let publish = lab.spec().publish(PublishSpec::default().in_flight(odd));
        let report = refusal(lab, named(lab, publish)).await?;
        ensure!(report.has(Code::new("FIELD_OUT_OF_RANGE")), "{report}");
        let consume = lab.spec().consumer(ConsumerSpec::default().concurrency(odd));
        let report = refusal(lab, named(lab, consume)).await?;
        ensure!(report.has(Code::new("FIELD_OUT_OF_RANGE")), "{report}");
    }
    Ok(())
}

async fn one_destination_written_twice_is_refused(lab: &Lab) -> CaseResult {
    let name = lab.destination("d");
    ensure!(DestinationName::new(&name).is_ok(), "{name:?} is no legal name");
    let specs = ProfileSpecs::new().with(&name, lab.spec()).with(&name, lab.spec());
    refused_with(lab, specs, "PHYSICAL_NAME_COLLISION").await
}
