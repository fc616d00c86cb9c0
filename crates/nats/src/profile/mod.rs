//! The native settings of a destination, and the validator.

mod duration;
mod names;

use std::num::NonZeroU32;
use std::time::Duration;

use consign_core_api::error::{Phase, Problem};
use consign_core_api::guarantee::OrderingScope;
use consign_core_api::outcome::Persistence;
use consign_core_api::spi::DestinationSetup;
use serde::Deserialize;

pub(crate) use names::Names;

use crate::codes;

/// The window in which JetStream recognises a message id, where nobody says otherwise.
pub(crate) const DEFAULT_DUPLICATE_WINDOW: Duration = Duration::from_secs(120);
const SHORTEST: Duration = Duration::from_millis(100);
const MOST_PARTITIONS: u32 = 256;
const MOST_REPLICAS: u32 = 5;

/// What a profile says under `native` for a destination on JetStream. Unknown fields are refused.
///
/// | setting | meaning | default |
/// |---|---|---|
/// | `stream` | the stream that stores the destination | the destination's name, if it has no dot |
/// | `durable` | what the durables of this destination begin with: `<durable>-<group>`. Needed where two destinations share a stream | the durable is the group |
/// | `partitions` | 1 to 256 subjects `<destination>.p<i>`, each with a durable of its own; needed for KEY and PARTITION | none |
/// | `replicas` | 1 to 5; declared, or compared where written | 1 |
/// | `storage` | `file` or `memory`; declared, and compared | `file` |
/// | `persistence` | `page_cache` or `flushed`: how the server is run (`sync_interval: always`), which no client can read | `page_cache` |
/// | `retention` | `limits` or `workqueue`; declared, or compared where written | `limits` |
/// | `discard` | `old` or `new`; declared, or compared where written | `old` |
/// | `max_messages`, `max_bytes`, `max_messages_per_subject`, `max_age` | limits that drop confirmed messages (the first two only with `discard = "old"`): declared, and compared; unwritten means that the stream must have none | none |
/// | `max_message_size` | bytes; declared, or compared where written | none |
/// | `duplicate_window` | declared, and the least that is accepted | `2m` |
/// | `max_ack_pending` | how many deliveries of a group may be out over all its processes, where no order is asked for | 1000 |
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NativeProfile {
    pub(crate) stream: Option<String>,
    pub(crate) durable: Option<String>,
    pub(crate) partitions: Option<u32>,
    pub(crate) replicas: Option<u32>,
    pub(crate) storage: Option<Storage>,
    pub(crate) persistence: Option<Persistence>,
    pub(crate) retention: Option<Retention>,
    pub(crate) discard: Option<Discard>,
    pub(crate) max_messages: Option<NonZeroU32>,
    pub(crate) max_bytes: Option<std::num::NonZeroU64>,
    pub(crate) max_messages_per_subject: Option<NonZeroU32>,
    #[serde(default, deserialize_with = "duration::read")]
    pub(crate) max_age: Option<Duration>,
    pub(crate) max_message_size: Option<NonZeroU32>,
    #[serde(default, deserialize_with = "duration::read")]
    pub(crate) duplicate_window: Option<Duration>,
    pub(crate) max_ack_pending: Option<NonZeroU32>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Storage {
    #[default]
    File,
    Memory,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Retention {
    #[default]
    Limits,
    WorkQueue,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Discard {
    #[default]
    Old,
    New,
}

impl NativeProfile {
    /// Reads and checks the native settings of a destination, with the names that follow from them.
    ///
    /// # Errors
    /// Every problem, with the phase [`Phase::Broker`].
    pub(crate) fn read(setup: &DestinationSetup) -> Result<(Self, Names), Vec<Problem>> {
        let native = setup.native.parse::<Self>().map_err(|text| {
            let problem = Problem::new(
                Phase::Broker,
                codes::NATIVE_SETTINGS_INVALID,
                format!("the native settings cannot be read: {text}"),
                "correct or remove the setting",
            );
            vec![problem.at(&setup.name)]
        })?;
        let mut problems = native.problems(setup);
        let names = Names::of(setup, &native).map_err(|problem| problems.push(problem)).ok();
        match names {
            Some(names) if problems.is_empty() => Ok((native, names)),
            _ => Err(problems.into_iter().enumerate().map(ranked(setup)).collect()),
        }
    }

    /// Returns what each copy survives. File storage never proves a flush by itself.
    pub(crate) fn persistence(&self) -> Persistence {
        match self.storage.unwrap_or_default() {
            Storage::Memory => Persistence::Memory,
            Storage::File => self.persistence.unwrap_or(Persistence::PageCache),
        }
    }

    /// Returns for how long an id is recognised; the server never keeps ids longer than messages.
    pub(crate) fn window(&self) -> Duration {
        let window = self.duplicate_window.unwrap_or(DEFAULT_DUPLICATE_WINDOW);
        self.max_age.map_or(window, |age| window.min(age))
    }

    fn problems(&self, setup: &DestinationSetup) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut refuse = |field: &str, value: String, range: &str| {
            let text = format!("native.{field} is out of its range");
            problems.push(
                Problem::new(Phase::Broker, codes::NATS_SETTING_OUT_OF_RANGE, text, range)
                    .field(format!("native.{field}"), value),
            );
        };
        let within = |value: Option<u32>, most: u32| value.is_none_or(|n| (1..=most).contains(&n));
        if !within(self.partitions, MOST_PARTITIONS) {
            refuse("partitions", shown(&self.partitions), "use 1 to 256");
        }
        if !within(self.replicas, MOST_REPLICAS) {
            refuse("replicas", shown(&self.replicas), "use 1 to 5");
        }
        let long_enough =
            |value: Option<Duration>| value.is_none_or(|d| (SHORTEST..=LONGEST_AGE).contains(&d));
        if !long_enough(self.max_age) {
            refuse("max_age", shown(&self.max_age), "use 100 ms to 100 years");
        }
        if !long_enough(self.duplicate_window) {
            refuse("duplicate_window", shown(&self.duplicate_window), "use 100 ms to 100 years");
        }
        if self.duplicate_window.zip(self.max_age).is_some_and(|(window, age)| window > age) {
            refuse("duplicate_window", shown(&self.duplicate_window), "use at most native.max_age");
        }
        if self.max_message_size.is_some_and(|n| i32::try_from(n.get()).is_err()) {
            refuse("max_message_size", shown(&self.max_message_size), "use at most 2 GiB");
        }
        if self.max_bytes.is_some_and(|n| i64::try_from(n.get()).is_err()) {
            refuse("max_bytes", shown(&self.max_bytes), "use at most 8 EiB");
        }
        let memory = self.storage == Some(Storage::Memory);
        let contradicts = match self.persistence {
            Some(Persistence::Memory) => !memory,
            Some(_) => memory,
            None => false,
        };
        if contradicts {
            refuse("persistence", shown(&self.persistence), "page_cache or flushed, with storage = \"file\"");
        }
        let several = self.max_ack_pending.is_some_and(|n| n.get() != 1);
        if several && setup.ordering != OrderingScope::None {
            refuse(
                "max_ack_pending",
                shown(&self.max_ack_pending),
                "an order is kept by one delivery at a time",
            );
        }
        problems
    }
}

/// 100 years: longer than any stream lives, and far from overflowing what the server counts in nanoseconds.
const LONGEST_AGE: Duration = Duration::from_secs(100 * 365 * 86_400);

fn shown<T: std::fmt::Debug>(value: &Option<T>) -> String {
    value.as_ref().map_or_else(String::new, |value| format!("{value:?}"))
}

fn ranked(setup: &DestinationSetup) -> impl FnMut((usize, Problem)) -> Problem {
    |(rank, problem)| problem.at(&setup.name).ranked(u16::try_from(rank).unwrap_or(u16::MAX))
}

#[cfg(test)]
mod tests {
    use consign_core_api::guarantee::DeliveryGuarantee;
    use consign_core_api::name::DestinationName;
    use consign_core_api::spi::NativeSettings;

    use super::*;

    fn setup(native: NativeSettings) -> DestinationSetup {
        let name = DestinationName::new("orders").unwrap();
        let mut setup = DestinationSetup::new(name, DeliveryGuarantee::AtLeastOnce, OrderingScope::None);
        setup.native = native;
        setup
    }

    fn codes_of(native: NativeSettings) -> Vec<consign_core_api::Code> {
        NativeProfile::read(&setup(native)).unwrap_err().iter().map(Problem::code).collect()
    }

    #[test]
    fn unknown_settings_are_refused_by_name() {
        let problems =
            NativeProfile::read(&setup(NativeSettings::default().with("straem", "x"))).unwrap_err();
        assert_eq!(problems[0].code(), codes::NATIVE_SETTINGS_INVALID);
        assert!(problems[0].message().contains("straem"), "{}", problems[0].message());
    }

    #[test]
    fn every_setting_out_of_range_is_reported() {
        let native = NativeSettings::default()
            .with("partitions", 0)
            .with("replicas", 6)
            .with("max_age", "1ms")
            .with("duplicate_window", "5m")
            .with("storage", "memory")
            .with("persistence", "flushed")
            .with("max_message_size", u32::MAX);
        let codes = codes_of(native);
        assert_eq!(codes, vec![codes::NATS_SETTING_OUT_OF_RANGE; 6]);
    }

    #[test]
    fn an_order_allows_one_delivery_at_a_time_only() {
        let mut ordered = setup(NativeSettings::default().with("max_ack_pending", 8));
        assert!(NativeProfile::read(&ordered).is_ok());
        ordered.ordering = OrderingScope::Destination;
        assert!(NativeProfile::read(&ordered).is_err());
    }

    #[test]
    fn file_storage_proves_no_flush_unless_it_is_declared() {
        let read = |native| NativeProfile::read(&setup(native)).unwrap().0.persistence();
        assert_eq!(read(NativeSettings::default()), Persistence::PageCache);
        assert_eq!(read(NativeSettings::default().with("persistence", "flushed")), Persistence::Flushed);
        assert_eq!(read(NativeSettings::default().with("storage", "memory")), Persistence::Memory);
    }
}
