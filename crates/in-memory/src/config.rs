//! The native settings of a destination: `partitions`, `capacity` and `deduplication_window`.

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use consign_core_api::error::{Phase, Problem};
use consign_core_api::spi::DestinationSetup;
use consign_core_api::time::{LONGEST, Timeout};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::codes::NATIVE_SETTINGS_INVALID;

const MOST_PARTITIONS: u32 = 1024;
const LARGEST_CAPACITY: usize = 100_000_000;
const DEFAULT_CAPACITY: usize = 100_000;

/// What a destination is made of. Two set-ups of one destination must agree in all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) partitions: NonZeroU32,
    pub(crate) capacity: NonZeroUsize,
    pub(crate) deduplication_window: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        let capacity = NonZeroUsize::MIN.saturating_add(DEFAULT_CAPACITY - 1);
        Self { partitions: NonZeroU32::MIN, capacity, deduplication_window: None }
    }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Raw {
    partitions: Option<Given>,
    capacity: Option<Given>,
    deduplication_window: Option<Given>,
}

/// Any value, so that a wrong one is reported by its field and beside the other wrong ones.
#[derive(Deserialize)]
#[serde(untagged)]
enum Given {
    Number(u64),
    Text(String),
    Other(IgnoredAny),
}

impl Given {
    fn shown(&self) -> String {
        match self {
            Self::Number(n) => n.to_string(),
            Self::Text(text) => format!("{:?}", text.chars().take(64).collect::<String>()),
            Self::Other(_) => "neither a whole number nor text".to_owned(),
        }
    }

    fn number<N: TryFrom<u64>>(&self) -> Option<N> {
        match self {
            Self::Number(n) => N::try_from(*n).ok(),
            Self::Text(_) | Self::Other(_) => None,
        }
    }

    fn duration(&self) -> Option<Duration> {
        match self {
            Self::Number(millis) => Some(Duration::from_millis(*millis)),
            Self::Text(text) => duration(text),
            Self::Other(_) => None,
        }
    }
}

/// Reads a whole number with a unit: `ms`, `s`, `m` or `h`.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let number: u64 = number.parse().ok()?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60 * 1000,
        "h" => 60 * 60 * 1000,
        _ => return None,
    };
    number.checked_mul(millis).map(Duration::from_millis)
}

impl Settings {
    /// Reads the settings, or reports every one that is wrong.
    pub(crate) fn read(setup: &DestinationSetup) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let raw = setup.native.parse().unwrap_or_else(|error: String| {
            let help = "the embedded broker knows `partitions`, `capacity` and `deduplication_window`";
            problems.push(problem(setup, error, help));
            Raw::default()
        });
        let mut refuse = |field: &str, given: &Given, range: &str| {
            let message = format!("native.{field} is out of its range");
            let help = format!("choose {range}");
            problems.push(problem(setup, message, &help).field(format!("native.{field}"), given.shown()));
        };
        let partitions = raw.partitions.as_ref().map_or(NonZeroU32::MIN, |given| {
            let read = given.number().and_then(NonZeroU32::new).filter(|n| n.get() <= MOST_PARTITIONS);
            read.unwrap_or_else(|| {
                refuse("partitions", given, "a whole number from 1 to 1024");
                NonZeroU32::MIN
            })
        });
        let default = Self::default().capacity;
        let capacity = raw.capacity.as_ref().map_or(default, |given| {
            let read = given.number().and_then(NonZeroUsize::new).filter(|n| n.get() <= LARGEST_CAPACITY);
            read.unwrap_or_else(|| {
                refuse("capacity", given, "a whole number of messages from 1 to 100000000");
                default
            })
        });
        let deduplication_window = raw.deduplication_window.as_ref().and_then(|given| {
            let window = given.duration().filter(|w| (Timeout::SHORTEST..=LONGEST).contains(w));
            if window.is_none() {
                let range = "1 ms to 30 days, as a number of milliseconds or as text such as \"2m\"";
                refuse("deduplication_window", given, range);
            }
            window
        });
        if problems.is_empty() {
            Ok(Self { partitions, capacity, deduplication_window })
        } else {
            Err(problems)
        }
    }
}

fn problem(setup: &DestinationSetup, message: String, help: &str) -> Problem {
    Problem::new(Phase::Broker, NATIVE_SETTINGS_INVALID, message, help).at(&setup.name)
}

#[cfg(test)]
mod tests {
    use consign_core_api::spi::NativeSettings;
    use consign_core_api::{DeliveryGuarantee, DestinationName, OrderingScope};
    use serde_json::{Value, json};

    use super::*;

    fn setup(native: NativeSettings) -> DestinationSetup {
        let name = DestinationName::new("orders").unwrap();
        let mut setup = DestinationSetup::new(name, DeliveryGuarantee::AtLeastOnce, OrderingScope::None);
        setup.native = native;
        setup
    }

    #[test]
    fn nothing_set_is_one_partition_and_no_deduplication() {
        let settings = Settings::read(&setup(NativeSettings::default())).unwrap();
        assert_eq!(
            (settings.partitions.get(), settings.capacity.get(), settings.deduplication_window),
            (1, 100_000, None)
        );
    }

    #[test]
    fn every_bad_value_is_refused_by_its_field() {
        let bad = |field: &str, values: &[Value]| {
            for value in values {
                let native = NativeSettings::default().with(field, value.clone());
                let problems = Settings::read(&setup(native)).unwrap_err();
                assert_eq!(problems.len(), 1, "{field} = {value}");
                assert_eq!(
                    (problems[0].code(), problems[0].phase()),
                    (NATIVE_SETTINGS_INVALID, Phase::Broker)
                );
                assert_eq!(problems[0].fields()[0].0, format!("native.{field}"), "{value}");
                assert_eq!(problems[0].destination(), Some("orders"));
            }
        };
        let never =
            [json!(0), json!(-1), json!(1.5), json!(true), json!([]), json!({}), json!("x"), json!("")];
        bad("partitions", &[&never[..], &[json!(1025), json!("4"), json!(u64::MAX)]].concat());
        bad("capacity", &[&never[..], &[json!(100_000_001), json!("4"), json!(u64::MAX)]].concat());
        let long = [json!("31000d"), json!("s"), json!("-1s"), json!("1.5s"), json!("0ms"), json!("721h")];
        let huge =
            [json!("99999999999999999999s"), json!(u64::MAX), json!("18446744073709551615h"), json!("ü")];
        bad("deduplication_window", &[&never[..], &long, &huge].concat());
    }

    #[test]
    fn good_values_are_read_to_their_ends() {
        for (window, expected) in [
            (json!(1), Duration::from_millis(1)),
            (json!("2m"), Duration::from_secs(120)),
            (json!("250ms"), Duration::from_millis(250)),
            (json!("720h"), LONGEST),
        ] {
            let native = NativeSettings::default()
                .with("partitions", 1024)
                .with("capacity", 100_000_000)
                .with("deduplication_window", window);
            let settings = Settings::read(&setup(native)).unwrap();
            assert_eq!(settings.partitions.get(), 1024);
            assert_eq!(settings.deduplication_window, Some(expected));
        }
    }

    #[test]
    fn an_unknown_setting_is_refused_and_named() {
        let problems = Settings::read(&setup(NativeSettings::default().with("partition", 3))).unwrap_err();
        assert!(problems[0].message().contains("`partition`"), "{}", problems[0]);
    }

    #[test]
    fn all_wrong_settings_are_reported_together() {
        let native = NativeSettings::default().with("partitions", 0).with("capacity", 0);
        assert_eq!(Settings::read(&setup(native)).unwrap_err().len(), 2);
    }
}
