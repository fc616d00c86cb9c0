//! Which fault comes next in one destination.

use super::Behaviour;
use crate::chaos::Dice;
use crate::script::{Plan, PublishFault, SettleFault};

/// What may befall a first delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeliveryFault {
    /// It comes again although it is not answered, as if its lease had run out.
    Redelivered,
    /// The stream breaks right after it.
    Interrupted,
}

/// The faults of one destination.
#[derive(Debug)]
pub(crate) enum Faults {
    None,
    Planned { plan: Plan, publishes: u64, settlements: u64 },
    Random(Box<Dice>),
}

impl Faults {
    pub(crate) fn of(behaviour: &Behaviour, destination: &str) -> Self {
        match behaviour {
            Behaviour::Faithful => Self::None,
            Behaviour::Scripted(script) => script.plan_of(destination).map_or(Self::None, |plan| {
                Self::Planned { plan: plan.clone(), publishes: 0, settlements: 0 }
            }),
            Behaviour::Chaotic(chaos) => Self::Random(Box::new(chaos.dice(destination))),
        }
    }

    /// The fault of the next publish that reaches the broker.
    pub(crate) fn next_publish(&mut self) -> Option<PublishFault> {
        match self {
            Self::None => None,
            Self::Planned { plan, publishes, .. } => {
                *publishes += 1;
                plan.publish(*publishes)
            }
            Self::Random(dice) => dice.publish(),
        }
    }

    /// The fault of the next settlement of an outstanding delivery.
    pub(crate) fn next_settlement(&mut self) -> Option<SettleFault> {
        match self {
            Self::None => None,
            Self::Planned { plan, settlements, .. } => {
                *settlements += 1;
                plan.settle(*settlements)
            }
            Self::Random(dice) => dice.settlement(),
        }
    }

    /// The fault of the next first delivery of a message.
    pub(crate) fn next_delivery(&mut self) -> Option<DeliveryFault> {
        match self {
            Self::None | Self::Planned { .. } => None,
            Self::Random(dice) => dice.delivery(),
        }
    }
}
