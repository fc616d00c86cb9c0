//! The names that a destination and its groups have on the server.

use consign_core_api::error::{Phase, Problem};
use consign_core_api::name::GroupName;
use consign_core_api::spi::DestinationSetup;

use super::NativeProfile;
use crate::codes;

/// Stream, subjects and durables of one destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Names {
    stream: Box<str>,
    /// One, or one per partition.
    subjects: Vec<Box<str>>,
    durable: Option<Box<str>>,
    partitioned: bool,
}

impl Names {
    pub(super) fn of(setup: &DestinationSetup, native: &NativeProfile) -> Result<Self, Problem> {
        let destination = setup.name.as_str();
        let stream = native.stream.as_deref().unwrap_or(destination);
        for (field, name) in [("native.stream", Some(stream)), ("native.durable", native.durable.as_deref())]
        {
            if let Some(name) = name.filter(|name| !is_legal_name(name)) {
                return Err(Problem::new(
                    Phase::Broker,
                    codes::NATS_STREAM_NAME_ILLEGAL,
                    "JetStream allows no dot, blank, wildcard or slash in the names of streams and durables",
                    format!("set {field} to a name of letters, digits, _ and -"),
                )
                .field(field, name));
            }
        }
        let subjects = match native.partitions {
            None => vec![destination.into()],
            // Bounded here too: an illegal count is reported elsewhere and must not allocate.
            Some(n) => (0..n.min(256)).map(|i| format!("{destination}.p{i}").into()).collect(),
        };
        Ok(Self {
            stream: stream.into(),
            subjects,
            durable: native.durable.as_deref().map(Into::into),
            partitioned: native.partitions.is_some(),
        })
    }

    /// Returns the stream's name.
    pub(crate) fn stream(&self) -> &str {
        &self.stream
    }

    /// Returns the subjects, one per unit.
    pub(crate) fn subjects(&self) -> &[Box<str>] {
        &self.subjects
    }

    /// Tells whether messages are spread over partitions.
    pub(crate) const fn is_partitioned(&self) -> bool {
        self.partitioned
    }

    /// Returns the durable of a group for a unit.
    pub(crate) fn durable(&self, group: &GroupName, unit: usize) -> String {
        let group = match &self.durable {
            Some(durable) => format!("{durable}-{group}"),
            None => group.to_string(),
        };
        if self.partitioned { format!("{group}-p{unit}") } else { group }
    }
}

/// Tells whether JetStream takes a text as the name of a stream or a durable.
fn is_legal_name(name: &str) -> bool {
    let illegal = |b: u8| !b.is_ascii_graphic() || matches!(b, b'.' | b'*' | b'>' | b'/' | b'\\');
    (1..=200).contains(&name.len()) && !name.bytes().any(illegal)
}

#[cfg(test)]
mod tests {
    use consign_core_api::guarantee::{DeliveryGuarantee, OrderingScope};
    use consign_core_api::name::DestinationName;
    use consign_core_api::spi::NativeSettings;

    use super::*;

    fn names(destination: &str, native: NativeSettings) -> Result<Names, Vec<Problem>> {
        let name = DestinationName::new(destination).unwrap();
        let mut setup = DestinationSetup::new(name, DeliveryGuarantee::AtLeastOnce, OrderingScope::None);
        setup.native = native;
        NativeProfile::read(&setup).map(|(_, names)| names)
    }

    #[test]
    fn a_name_with_a_dot_needs_a_stream_and_is_never_rewritten() {
        let problems = names("orders.dead", NativeSettings::default()).unwrap_err();
        assert_eq!(problems[0].code(), codes::NATS_STREAM_NAME_ILLEGAL);
        let named = names("orders.dead", NativeSettings::default().with("stream", "DEAD")).unwrap();
        assert_eq!((named.stream(), &*named.subjects()[0]), ("DEAD", "orders.dead"));
    }

    #[test]
    fn partitions_have_subjects_and_durables_of_their_own() {
        let group = GroupName::new("billing").unwrap();
        let plain = names("orders", NativeSettings::default()).unwrap();
        assert_eq!(plain.durable(&group, 0), "billing");
        let native = NativeSettings::default().with("partitions", 2).with("durable", "o");
        let spread = names("orders", native).unwrap();
        assert_eq!(spread.subjects(), ["orders.p0".into(), "orders.p1".into()]);
        assert_eq!(spread.durable(&group, 1), "o-billing-p1");
    }

    #[test]
    fn illegal_names_are_refused() {
        for odd in ["", "a.b", "a b", "a*", ">", "a/b", "a\\b", "ü", &"x".repeat(201)] {
            assert!(!is_legal_name(odd), "{odd:?}");
        }
        assert!(is_legal_name("ORDERS_eu-1"));
    }
}
