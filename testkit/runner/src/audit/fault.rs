//! The kinds of faults.

use std::fmt;

use clap::ValueEnum;
use consign_testkit::audit::history::Expects;

use crate::adapters::Adapter;
use crate::{Error, Result};

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[non_exhaustive]
pub enum Fault {
    /// The broker's process is killed and started again on its data, again and again.
    Kill,
    /// The broker's process is stopped for longer than the deadline, and goes on.
    Freeze,
    /// The connection is closed after every byte of a publish and of a settlement, in both directions.
    CutEveryByte,
    /// The connection is reset after every byte of the same.
    Reset,
    /// Everything after every byte of the same is swallowed.
    #[value(name = "blackhole")]
    BlackHole,
    /// Every public future of the publish path is dropped after every number of polls.
    DropFutures,
    /// The embedded broker's own faults at random.
    Chaos,
}

impl Fault {
    const fn fits(self, broker: Adapter) -> bool {
        match broker {
            Adapter::Nats => !matches!(self, Self::Chaos),
            Adapter::InMemory => matches!(self, Self::Chaos | Self::DropFutures),
        }
    }

    /// Returns what a run has to show.
    pub(super) const fn expects(self) -> Expects {
        match self {
            Self::DropFutures => Expects::Dropped,
            _ => Expects::Ambiguous,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.to_possible_value().map(|value| value.get_name().to_owned());
        f.write_str(&name.unwrap_or_default())
    }
}

/// Returns the faults to run: those asked for, or all that the broker knows.
pub(super) fn chosen(broker: Adapter, asked: &[Fault]) -> Result<Vec<Fault>> {
    if let Some(odd) = asked.iter().find(|fault| !fault.fits(broker)) {
        return Err(Error::Adapter(format!("{broker} does not know the fault {odd}")));
    }
    let all = Fault::value_variants().iter().copied().filter(|fault| fault.fits(broker));
    Ok(if asked.is_empty() { all.collect() } else { asked.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_broker_knows_a_fault_and_every_fault_a_broker() {
        for broker in Adapter::ALL {
            assert!(!chosen(*broker, &[]).unwrap().is_empty(), "{broker}");
        }
        for fault in Fault::value_variants() {
            assert!(Adapter::ALL.iter().any(|broker| fault.fits(*broker)), "{fault}");
        }
    }

    #[test]
    fn a_fault_that_a_broker_does_not_know_is_refused_and_not_left_out() {
        assert!(chosen(Adapter::InMemory, &[Fault::Chaos, Fault::Kill]).is_err());
        assert_eq!(chosen(Adapter::Nats, &[Fault::Kill]).unwrap(), [Fault::Kill]);
    }
}
