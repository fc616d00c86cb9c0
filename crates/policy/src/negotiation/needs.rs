//! The needs of a profile.

use std::fmt;

use consign_core_api::capability::{DeliveryCount, Ordering};
use consign_core_api::error::Phase;
use consign_core_api::outcome::EvidenceDemand;
use consign_core_api::spi::{Confirm, RetryStrategy};
use consign_core_api::{Capability, DeliveryGuarantee, OrderingScope, Problem, SettlementLevel};
use humantime::format_duration;

use super::{Match, Unmet};
use crate::codes;
use crate::profile::{Hold, Size, worst_hold};

/// A need, which is met or not.
type Need = fn(&Match<'_>) -> Option<Unmet>;

/// In the order in which they are reported.
pub(super) const ALL: [Need; 10] = [
    ordering,
    confirmation,
    evidence,
    settlement,
    individual_settlement,
    redelivery,
    delayed_redelivery,
    at_most_once,
    flow_control,
    payload,
];

impl Unmet {
    fn new(asks: impl Into<String>, lacks: impl Into<String>, help: impl Into<String>) -> Self {
        Self { asks: asks.into(), lacks: lacks.into(), help: help.into(), fields: Vec::new() }
    }

    fn field(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.fields.push((name, value.to_string()));
        self
    }
}

/// Finds a capability missing.
fn missing(matched: &Match<'_>, capability: Capability, help: &str) -> Option<Unmet> {
    let support = matched.capabilities.support(capability);
    (!support.is_available())
        .then(|| Unmet::new(capability.as_str(), format!("has none{}", Note(support.note())), help))
}

/// A note in words, where there is one.
struct Note<'a>(&'a str);

impl fmt::Display for Note<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

fn ordering(matched: &Match<'_>) -> Option<Unmet> {
    let (asked, kept) = (matched.profile.setup().ordering, matched.capabilities.ordering());
    if kept.keeps(asked) {
        return None;
    }
    let stream = kept.ordered_stream();
    let lacks = match kept {
        Ordering::Destination(_) if stream.is_available() => "keeps the destination as one order".to_owned(),
        Ordering::Partition(_) if stream.is_available() => "orders each partition, and no more".to_owned(),
        Ordering::Key(_) if stream.is_available() => "orders each key, and no more".to_owned(),
        _ => format!("orders nothing{}", Note(stream.note())),
    };
    let scopes =
        [OrderingScope::Destination, OrderingScope::Partition, OrderingScope::Key, OrderingScope::None];
    let possible: Vec<_> =
        scopes.iter().filter(|scope| kept.keeps(**scope)).map(ToString::to_string).collect();
    let help =
        format!("use ordering = {}, or another configuration of the destination", possible.join(" or "));
    Some(Unmet::new(format!("the ordering {asked}"), lacks, help).field("ordering", asked))
}

fn confirmation(matched: &Match<'_>) -> Option<Unmet> {
    if matched.profile.setup().publish.confirm != Confirm::Required {
        return None;
    }
    let help =
        "use another configuration of the destination; without confirmation only AT_MOST_ONCE is possible";
    Some(missing(matched, Capability::PublishConfirmation, help)?.field("publish.confirmation", "required"))
}

fn evidence(matched: &Match<'_>) -> Option<Unmet> {
    let demand = &matched.profile.setup().publish.evidence;
    if *demand == EvidenceDemand::default() {
        return None;
    }
    let lacks = match matched.capabilities.strongest_evidence() {
        Some(strongest) if strongest.satisfies(demand) => return None,
        Some(strongest) => format!("proves at most {strongest}"),
        None => "proves nothing".to_owned(),
    };
    let help = "demand less, or use a configuration of the destination with more copies or flushes";
    Some(Unmet::new(format!("evidence of {demand}"), lacks, help).field("publish.evidence", demand))
}

fn settlement(matched: &Match<'_>) -> Option<Unmet> {
    let asked = matched.profile.setup().consumer.settlement;
    let lacks = match matched.capabilities.settlement_level() {
        Some(level) if level >= asked => return None,
        Some(level) => format!("settles at most {level}"),
        None => "gives no evidence of a settlement".to_owned(),
    };
    let help = match matched.capabilities.settlement_level() {
        Some(level) => {
            format!("use consumer.settlement = {level}, or another configuration of the destination")
        }
        None => "use another configuration of the destination".to_owned(),
    };
    Some(Unmet::new(format!("{asked} settlement"), lacks, help).field("consumer.settlement", asked))
}

fn individual_settlement(matched: &Match<'_>) -> Option<Unmet> {
    let setup = matched.profile.setup();
    let concurrency = setup.consumer.concurrency.get();
    if setup.delivery != DeliveryGuarantee::AtLeastOnce || concurrency == 1 {
        return None;
    }
    let help = "use consumer.concurrency = 1, or another configuration of the destination";
    Some(missing(matched, Capability::IndividualSettlement, help)?.field("consumer.concurrency", concurrency))
}

const OTHER_RETRY: &str = "retry IN_PLACE, or use another configuration of the destination";

fn redelivery(matched: &Match<'_>) -> Option<Unmet> {
    let strategy = matched.profile.setup().retry.strategy;
    if strategy != RetryStrategy::Redelivery {
        return None;
    }
    Some(missing(matched, Capability::Redelivery, OTHER_RETRY)?.field("retry.strategy", "REDELIVERY"))
}

fn delayed_redelivery(matched: &Match<'_>) -> Option<Unmet> {
    let retry = &matched.profile.setup().retry;
    let strategy = match retry.strategy {
        RetryStrategy::BrokerDelayed => "BROKER_DELAYED",
        RetryStrategy::Redelivery if !retry.first.is_zero() => "REDELIVERY",
        _ => return None,
    };
    let unmet = missing(matched, Capability::DelayedRedelivery, OTHER_RETRY)?;
    Some(unmet.field("retry.strategy", strategy).field("retry.first", format_duration(retry.first)))
}

/// A message is handled once at most only if it cannot come again after its settlement, or if it says that it came
/// again.
fn at_most_once(matched: &Match<'_>) -> Option<Unmet> {
    let capabilities = matched.capabilities;
    let told = capabilities.delivery_count() != DeliveryCount::None;
    let firm = capabilities.settlement_level() >= Some(SettlementLevel::Committed);
    if matched.profile.setup().delivery != DeliveryGuarantee::AtMostOnce || told || firm {
        return None;
    }
    let lacks = "neither commits a settlement nor marks what it delivers again";
    let help = "use delivery = AT_LEAST_ONCE, or another configuration of the destination";
    Some(Unmet::new("at most one delivery", lacks, help).field("delivery", "AT_MOST_ONCE"))
}

fn flow_control(matched: &Match<'_>) -> Option<Unmet> {
    let concurrency = matched.profile.setup().consumer.concurrency;
    let help = "use another configuration of the destination: what is taken must be bounded";
    Some(missing(matched, Capability::ConsumerFlowControl, help)?.field("consumer.concurrency", concurrency))
}

fn payload(matched: &Match<'_>) -> Option<Unmet> {
    let asked = matched.profile.setup().publish.max_payload;
    let limit = matched.capabilities.payload_limit().filter(|limit| *limit < asked)?;
    let (asked, limit) = (Size(asked.get() as u64), Size(limit.get() as u64));
    let help = format!(
        "use publish.max_payload = {limit} at most, here and with every destination whose copies come here, or raise \
         the broker's limit"
    );
    let unmet = Unmet::new(format!("messages of {asked}"), format!("takes {limit} at most"), help);
    Some(unmet.field("publish.max_payload", asked))
}

/// Where the order matters and a redelivery does not keep it, a message is retried in place instead: rule 13 then
/// holds for it too.
pub(super) fn hold_of_redelivery(matched: &Match<'_>) -> Option<Problem> {
    let setup = matched.profile.setup();
    let in_place = setup.retry.strategy == RetryStrategy::Redelivery
        && setup.ordering.is_ordered()
        && !matched.capabilities.redelivery_keeps_order();
    if !in_place || setup.consumer.extend {
        return None;
    }
    let handler_timeout = setup.consumer.handler_timeout;
    let attempts = setup.retry.max_attempts;
    let held = worst_hold(&Hold { retry: &setup.retry, from: 1, attempts, handler_timeout });
    let deadline = setup.consumer.settlement_deadline;
    (held >= deadline).then(|| {
        Problem::new(
            Phase::Negotiation,
            codes::IN_PLACE_HOLD_EXCEEDS_SETTLEMENT_DEADLINE,
            format!(
                "a redelivery by transport {:?} ({}) does not keep the order, so that a message is retried in place \
                 and may be held too long",
                matched.profile.transport().as_str(),
                matched.kind
            ),
            "use consumer.extend = true, a longer settlement_deadline, or fewer or shorter attempts",
        )
        .at(matched.profile.name())
        .field("ordering", setup.ordering)
        .field("retry.strategy", "REDELIVERY")
        .field("consumer.settlement_deadline", format_duration(deadline))
    })
}
