//! Faults at chosen places, for tests that know what should happen.

use std::collections::BTreeMap;
use std::time::Duration;

use consign_core_api::DestinationName;
use consign_core_api::error::{Phase, Problem};
use consign_core_api::time::LONGEST;

use crate::codes::SCRIPT_INVALID;

/// What happens to one publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PublishFault {
    /// The message is stored and the reply is lost: AMBIGUOUS, and it is there.
    AmbiguousStored,
    /// The message is lost and so is the reply: AMBIGUOUS, and it is not there.
    AmbiguousLost,
    /// The broker refuses: REJECTED, TransientInfrastructure.
    Refused,
    /// The broker finds nowhere to put the message: REJECTED, Configuration.
    Unroutable,
    /// The message is stored at once and confirmed after this long; at most 30 days. The confirmation needs the tokio
    /// runtime in which the transport was connected; without one it comes at once.
    ConfirmedLate(Duration),
    /// The message is stored and no reply ever comes: the deadline decides, and it is there.
    NoReplyStored,
    /// The message is lost and no reply ever comes: the deadline decides, and it is not there.
    NoReplyLost,
}

/// What happens to one settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettleFault {
    /// The settlement is lost and so is the reply: SETTLEMENT_UNKNOWN, and the message comes again at once.
    ReplyLost,
    /// The message is settled and the reply is lost: SETTLEMENT_UNKNOWN, and the message does not come again.
    ReplyLostSettled,
    /// The settlement is lost and no reply ever comes; the message comes again at once.
    NoReply,
}

/// Faults by destination and index.
///
/// Indices count from 1, per destination, over all connections: publishes that reach the broker (neither held nor given
/// up before), and settlements of outstanding deliveries over all groups. An index beyond what happens is harmless.
///
/// What cannot be meant is no panic and is not ignored either: an index zero, a second fault for one index, a delay
/// above 30 days or an illegal destination name is reported as `SCRIPT_INVALID` when the configuration is validated
/// and when the transport connects, so that nothing starts.
///
/// ```
/// use consign_in_memory::{Broker, PublishFault, Script, SettleFault};
/// let broker = Broker::scripted(
///     Script::on("orders")
///         .publish(3, PublishFault::AmbiguousStored)
///         .settle(1, SettleFault::ReplyLost)
///         .and_on("receipts")
///         .publish(1, PublishFault::Refused),
/// );
/// # drop(broker);
/// ```
#[derive(Debug, Clone)]
#[must_use = "a script does nothing until a broker is made of it"]
pub struct Script {
    current: String,
    plans: BTreeMap<String, Plan>,
}

/// The faults of one destination.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    publishes: BTreeMap<u64, PublishFault>,
    settlements: BTreeMap<u64, SettleFault>,
    mistakes: Vec<String>,
}

impl Script {
    /// Starts a script with the faults of a destination.
    pub fn on(destination: impl Into<String>) -> Self {
        Self { current: String::new(), plans: BTreeMap::new() }.and_on(destination)
    }

    /// Goes on with the faults of another destination, or of one named before.
    pub fn and_on(mut self, destination: impl Into<String>) -> Self {
        self.current = destination.into();
        let plan = self.plans.entry(self.current.clone()).or_default();
        if let Err(error) = DestinationName::new(&self.current)
            && plan.mistakes.is_empty()
        {
            plan.mistakes.push(error.to_string());
        }
        self
    }

    /// Sets what happens to the publish of this index.
    pub fn publish(mut self, index: u64, fault: PublishFault) -> Self {
        let plan = self.plans.entry(self.current.clone()).or_default();
        if matches!(fault, PublishFault::ConfirmedLate(delay) if delay > LONGEST) {
            plan.mistakes.push(format!("publish {index} is confirmed after more than 30 days"));
        }
        plan.mistakes.extend(put(&mut plan.publishes, "publish", index, fault));
        self
    }

    /// Sets what happens to the settlement of this index.
    pub fn settle(mut self, index: u64, fault: SettleFault) -> Self {
        let plan = self.plans.entry(self.current.clone()).or_default();
        plan.mistakes.extend(put(&mut plan.settlements, "settlement", index, fault));
        self
    }

    pub(crate) fn plan_of(&self, destination: &str) -> Option<&Plan> {
        self.plans.get(destination)
    }

    /// What is wrong with the faults of one destination.
    pub(crate) fn problems_of(&self, destination: &DestinationName) -> Vec<Problem> {
        self.plan_of(destination.as_str()).map_or_else(Vec::new, |plan| plan.problems(destination.as_str()))
    }

    /// What is wrong with the faults of any destination.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        self.plans.iter().flat_map(|(destination, plan)| plan.problems(destination)).collect()
    }
}

/// Keeps the first fault of an index, or says why it cannot.
fn put<F>(faults: &mut BTreeMap<u64, F>, what: &str, index: u64, fault: F) -> Option<String> {
    if index == 0 {
        return Some(format!("{what} 0 does not exist"));
    }
    if faults.contains_key(&index) {
        return Some(format!("{what} {index} has two faults"));
    }
    faults.insert(index, fault);
    None
}

impl Plan {
    pub(crate) fn publish(&self, index: u64) -> Option<PublishFault> {
        self.publishes.get(&index).copied()
    }

    pub(crate) fn settle(&self, index: u64) -> Option<SettleFault> {
        self.settlements.get(&index).copied()
    }

    fn problems(&self, destination: &str) -> Vec<Problem> {
        let problem = |mistake: &String| {
            let help = "indices count from 1, and each has one fault";
            Problem::new(Phase::Broker, SCRIPT_INVALID, format!("script: {mistake}"), help)
                .at_text(destination)
        };
        self.mistakes.iter().map(problem).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_meant_is_a_problem_and_never_a_panic() {
        let script = Script::on("orders")
            .publish(0, PublishFault::Refused)
            .publish(1, PublishFault::Refused)
            .publish(1, PublishFault::Unroutable)
            .publish(2, PublishFault::ConfirmedLate(Duration::MAX))
            .settle(0, SettleFault::ReplyLost)
            .and_on("a..b")
            .settle(u64::MAX, SettleFault::NoReply)
            .and_on("fine")
            .publish(u64::MAX, PublishFault::AmbiguousLost);
        let name = |text: &str| DestinationName::new(text).unwrap();
        assert_eq!(script.problems_of(&name("orders")).len(), 4);
        assert!(
            script.problems_of(&name("fine")).is_empty() && script.problems_of(&name("other")).is_empty()
        );
        assert_eq!(script.problems().len(), 5);
        assert!(script.problems().iter().all(|p| p.code() == SCRIPT_INVALID));
        assert_eq!(script.plan_of("orders").unwrap().publish(1), Some(PublishFault::Refused));
    }

    #[test]
    fn publishes_and_settlements_of_each_destination_are_counted_apart() {
        let script = Script::on("a").publish(1, PublishFault::Refused).and_on("b").and_on("a");
        let script = script.settle(1, SettleFault::ReplyLost);
        let plan = script.plan_of("a").unwrap();
        assert_eq!(
            (plan.publish(1), plan.settle(1)),
            (Some(PublishFault::Refused), Some(SettleFault::ReplyLost))
        );
        assert_eq!(script.plan_of("b").unwrap().publish(1), None);
    }
}
