//! What a stream is compared with. Pure.

use std::time::Duration;

use async_nats::jetstream::consumer;
use async_nats::jetstream::stream::{Config, DiscardPolicy, PersistenceMode, RetentionPolicy, StorageType};
use consign_core_api::Code;
use consign_core_api::error::{Phase, Problem};
use consign_core_api::guarantee::DeliveryGuarantee;
use consign_core_api::spi::{Confirm, DestinationSetup};

use crate::codes;
use crate::profile::{Discard, Names, NativeProfile, Retention, Storage};

/// The stream that a profile declares.
pub(super) fn wanted(native: &NativeProfile, names: &Names) -> Config {
    let limit = |value: Option<u64>| value.and_then(|n| i64::try_from(n).ok()).unwrap_or(-1);
    let count = |value: Option<std::num::NonZeroU32>| limit(value.map(|n| n.get().into()));
    Config {
        name: names.stream().to_owned(),
        subjects: names.subjects().iter().map(ToString::to_string).collect(),
        retention: retention(native.retention.unwrap_or_default()),
        discard: discard(native.discard.unwrap_or_default()),
        // With `new`, a limit per subject refuses too, as the profile says.
        discard_new_per_subject: native.discard == Some(Discard::New)
            && native.max_messages_per_subject.is_some(),
        storage: storage(native.storage.unwrap_or_default()),
        num_replicas: native.replicas.and_then(|n| usize::try_from(n).ok()).unwrap_or(1),
        max_messages: count(native.max_messages),
        max_bytes: limit(native.max_bytes.map(std::num::NonZero::get)),
        max_messages_per_subject: count(native.max_messages_per_subject),
        max_age: native.max_age.unwrap_or_default(),
        max_message_size: native.max_message_size.and_then(|n| i32::try_from(n.get()).ok()).unwrap_or(-1),
        duplicate_window: native.window(),
        ..Config::default()
    }
}

const fn retention(retention: Retention) -> RetentionPolicy {
    match retention {
        Retention::Limits => RetentionPolicy::Limits,
        Retention::WorkQueue => RetentionPolicy::WorkQueue,
    }
}

const fn discard(discard: Discard) -> DiscardPolicy {
    match discard {
        Discard::Old => DiscardPolicy::Old,
        Discard::New => DiscardPolicy::New,
    }
}

const fn storage(storage: Storage) -> StorageType {
    match storage {
        Storage::File => StorageType::File,
        Storage::Memory => StorageType::Memory,
    }
}

/// Tells whether the stream keeps only what some consumer is interested in.
pub(super) fn needs_interest(stream: &Config) -> bool {
    stream.retention == RetentionPolicy::Interest
}

/// Tells whether every subject has a consumer that is interested in it.
pub(super) fn interested(names: &Names, consumers: &[consumer::Info]) -> bool {
    let filters = |info: &consumer::Info| {
        let mut filters = info.config.filter_subjects.clone();
        filters.push(info.config.filter_subject.clone());
        filters.retain(|filter| !filter.is_empty());
        filters
    };
    names.subjects().iter().all(|subject| {
        consumers.iter().any(|info| {
            let filters = filters(info);
            filters.is_empty() || filters.iter().any(|filter| covers(filter, subject))
        })
    })
}

/// Tells whether every subject that a literal stands for matches the pattern.
pub(super) fn covers(pattern: &str, subject: &str) -> bool {
    let (mut pattern, mut subject) = (pattern.split('.'), subject.split('.'));
    loop {
        match (pattern.next(), subject.next()) {
            (Some(">"), Some(_)) => return true,
            (Some("*"), Some(_)) => {}
            (Some(p), Some(s)) if p == s => {}
            (None, None) => return true,
            _ => return false,
        }
    }
}

/// Everything about the stream that makes a promise of the profile false, or differs from what it says.
pub(super) fn problems(
    setup: &DestinationSetup,
    native: &NativeProfile,
    names: &Names,
    stream: &Config,
    interested: bool,
) -> Vec<Problem> {
    let mut found = Findings { problems: Vec::new() };
    for subject in names.subjects() {
        if !stream.subjects.iter().any(|pattern| covers(pattern, subject)) {
            found.mismatch("subjects", &stream.subjects, &format!("the stream must cover {subject}"));
        }
    }
    if stream.subject_transform.is_some() {
        found.mismatch(
            "subject_transform",
            "set",
            "messages are stored under another subject than they are read by",
        );
    }
    if stream.sealed {
        found.mismatch("sealed", true, "the stream takes no message");
    }
    promises(setup, native, stream, interested, &mut found);
    settings(native, stream, &mut found);
    found
        .problems
        .into_iter()
        .enumerate()
        .map(|(rank, problem)| {
            problem
                .field("native.stream", names.stream())
                .at(&setup.name)
                .ranked(u16::try_from(rank).unwrap_or(u16::MAX))
        })
        .collect()
}

/// What would make a confirmation false, or confirmed messages vanish.
fn promises(
    setup: &DestinationSetup,
    native: &NativeProfile,
    stream: &Config,
    interested: bool,
    found: &mut Findings,
) {
    if setup.publish.confirm == Confirm::Required && stream.no_ack {
        found.add(codes::NATS_STREAM_DOES_NOT_CONFIRM, "no_ack", true, "unset no_ack on the stream");
    }
    if stream.persist_mode == Some(PersistenceMode::Async) {
        let help = "the stream acknowledges before it stores; use another persist_mode";
        found.add(codes::NATS_STREAM_DOES_NOT_CONFIRM, "persist_mode", "async", help);
    }
    if setup.delivery != DeliveryGuarantee::AtLeastOnce {
        return;
    }
    let vanish = codes::NATS_CONFIRMED_MAY_VANISH;
    if !interested {
        let help =
            "create the group's consumer first, or use another retention: without one nothing is stored";
        found.add(vanish, "retention", "interest", help);
    }
    let drops_old = stream.discard == DiscardPolicy::Old;
    let accept = |name: &str| format!("remove it, or accept it with native.{name} of the same value");
    if drops_old && stream.max_messages > 0 && native.max_messages.is_none() {
        found.add(vanish, "max_messages", stream.max_messages, &accept("max_messages"));
    }
    if drops_old && stream.max_bytes > 0 && native.max_bytes.is_none() {
        found.add(vanish, "max_bytes", stream.max_bytes, &accept("max_bytes"));
    }
    let refuses_per_subject = !drops_old && stream.discard_new_per_subject;
    let per_subject = stream.max_messages_per_subject;
    if per_subject > 0 && !refuses_per_subject && native.max_messages_per_subject.is_none() {
        found.add(vanish, "max_messages_per_subject", per_subject, &accept("max_messages_per_subject"));
    }
    if stream.max_age > Duration::ZERO && native.max_age.is_none() {
        found.add(vanish, "max_age", format!("{:?}", stream.max_age), &accept("max_age"));
    }
}

/// What is written in the profile and differs, and what the declared capabilities rest on.
fn settings(native: &NativeProfile, stream: &Config, found: &mut Findings) {
    // Capabilities rest on the kind of storage, written or not.
    if storage(native.storage.unwrap_or_default()) != stream.storage {
        found.mismatch(
            "storage",
            format!("{:?}", stream.storage),
            "set native.storage to what the stream has",
        );
    }
    if native.retention.is_some_and(|written| retention(written) != stream.retention) {
        found.mismatch("retention", format!("{:?}", stream.retention), "native.retention differs");
    }
    if native.discard.is_some_and(|written| discard(written) != stream.discard) {
        found.mismatch("discard", format!("{:?}", stream.discard), "native.discard differs");
    }
    let differs = |written: Option<u64>, real: i64| written.is_some_and(|n| i64::try_from(n) != Ok(real));
    if differs(native.replicas.map(Into::into), i64::try_from(stream.num_replicas).unwrap_or(i64::MAX)) {
        found.mismatch("replicas", stream.num_replicas, "native.replicas differs");
    }
    let count = |n: std::num::NonZeroU32| u64::from(n.get());
    for (name, written, real) in [
        ("max_messages", native.max_messages.map(count), stream.max_messages),
        ("max_bytes", native.max_bytes.map(std::num::NonZero::get), stream.max_bytes),
        (
            "max_messages_per_subject",
            native.max_messages_per_subject.map(count),
            stream.max_messages_per_subject,
        ),
        ("max_message_size", native.max_message_size.map(count), stream.max_message_size.into()),
    ] {
        if differs(written, real) {
            found.mismatch(name, real, &format!("native.{name} differs"));
        }
    }
    if native.max_age.is_some_and(|written| written != stream.max_age) {
        found.mismatch("max_age", format!("{:?}", stream.max_age), "native.max_age differs");
    }
    if stream.duplicate_window < native.window() {
        let help =
            "ids are recognised for a shorter time than the profile counts on; set native.duplicate_window";
        found.mismatch("duplicate_window", format!("{:?}", stream.duplicate_window), help);
    }
}

struct Findings {
    problems: Vec<Problem>,
}

impl Findings {
    fn add(&mut self, code: Code, field: &str, real: impl std::fmt::Display, help: &str) {
        let text = match code {
            codes::TOPOLOGY_MISMATCH => "the stream differs from the profile",
            codes::NATS_STREAM_DOES_NOT_CONFIRM => "the stream's acknowledgement proves nothing",
            _ => "the stream may drop messages that it has confirmed",
        };
        let problem = Problem::new(Phase::Preflight, code, text, help);
        self.problems.push(problem.field(format!("stream.{field}"), real));
    }

    fn mismatch(&mut self, field: &str, real: impl Shown, help: &str) {
        self.add(codes::TOPOLOGY_MISMATCH, field, real.shown(), help);
    }
}

/// What a mismatch shows of the real value.
trait Shown {
    fn shown(&self) -> String;
}

impl Shown for &Vec<String> {
    fn shown(&self) -> String {
        self.join(", ")
    }
}

macro_rules! shown {
    ($($ty:ty),+) => {$(
        impl Shown for $ty {
            fn shown(&self) -> String {
                self.to_string()
            }
        }
    )+};
}

shown!(&str, String, bool, usize, i64);

#[cfg(test)]
mod tests {
    use consign_core_api::guarantee::OrderingScope;
    use consign_core_api::name::DestinationName;
    use consign_core_api::spi::NativeSettings;

    use super::*;

    const NONE: [Code; 0] = [];

    fn check(native: NativeSettings, delivery: DeliveryGuarantee, change: impl Fn(&mut Config)) -> Vec<Code> {
        let mut setup =
            DestinationSetup::new(DestinationName::new("orders").unwrap(), delivery, OrderingScope::None);
        setup.native = native;
        let (native, names) = NativeProfile::read(&setup).unwrap();
        let mut stream = wanted(&native, &names);
        change(&mut stream);
        let interested = !needs_interest(&stream);
        problems(&setup, &native, &names, &stream, interested).iter().map(Problem::code).collect()
    }

    fn at_least_once(native: NativeSettings, change: impl Fn(&mut Config)) -> Vec<Code> {
        check(native, DeliveryGuarantee::AtLeastOnce, change)
    }

    #[test]
    fn what_is_declared_passes_its_own_preflight() {
        let none = NativeSettings::default();
        assert_eq!(at_least_once(none.clone(), |_| {}), NONE);
        let all = none
            .with("partitions", 3)
            .with("replicas", 3)
            .with("storage", "memory")
            .with("retention", "workqueue")
            .with("discard", "new")
            .with("max_messages", 10)
            .with("max_bytes", 1000)
            .with("max_messages_per_subject", 5)
            .with("max_age", "1h")
            .with("max_message_size", 100)
            .with("duplicate_window", "1m");
        assert_eq!(at_least_once(all, |_| {}), NONE);
    }

    #[test]
    fn whatever_drops_confirmed_messages_is_refused_unless_it_is_written() {
        let vanish = [codes::NATS_CONFIRMED_MAY_VANISH];
        let none = NativeSettings::default;
        type Limit = (&'static str, serde_json::Value, fn(&mut Config));
        let limits: [Limit; 4] = [
            ("max_messages", 9.into(), |s| s.max_messages = 9),
            ("max_bytes", 9.into(), |s| s.max_bytes = 9),
            ("max_messages_per_subject", 9.into(), |s| s.max_messages_per_subject = 9),
            ("max_age", "300s".into(), |s| s.max_age = Duration::from_secs(300)),
        ];
        for (name, value, change) in limits {
            assert_eq!(at_least_once(none(), change), vanish, "{name}");
            assert_eq!(check(none(), DeliveryGuarantee::AtMostOnce, change), NONE, "{name}");
            assert_eq!(at_least_once(none().with(name, value), change), NONE, "{name}");
            let other = if name == "max_age" { "301s".into() } else { serde_json::Value::from(8) };
            let differs = at_least_once(none().with(name, other), change);
            assert_eq!(differs, [codes::TOPOLOGY_MISMATCH], "{name}");
        }
        assert_eq!(at_least_once(none(), |s| s.retention = RetentionPolicy::Interest), vanish);
    }

    #[test]
    fn limits_that_refuse_instead_of_dropping_are_fine() {
        let change = |stream: &mut Config| {
            stream.discard = DiscardPolicy::New;
            stream.discard_new_per_subject = true;
            stream.max_messages = 9;
            stream.max_bytes = 9;
            stream.max_messages_per_subject = 9;
        };
        assert_eq!(at_least_once(NativeSettings::default(), change), NONE);
    }

    #[test]
    fn a_stream_that_does_not_confirm_is_refused() {
        let confirm = [codes::NATS_STREAM_DOES_NOT_CONFIRM];
        let none = NativeSettings::default;
        assert_eq!(at_least_once(none(), |s| s.no_ack = true), confirm);
        assert_eq!(at_least_once(none(), |s| s.persist_mode = Some(PersistenceMode::Async)), confirm);
    }

    #[test]
    fn a_stream_that_differs_from_the_profile_is_refused() {
        let differs = [codes::TOPOLOGY_MISMATCH];
        let none = NativeSettings::default;
        assert_eq!(at_least_once(none(), |s| s.subjects = vec!["other.>".into()]), differs);
        assert_eq!(at_least_once(none(), |s| s.storage = StorageType::Memory), differs);
        assert_eq!(at_least_once(none(), |s| s.sealed = true), differs);
        assert_eq!(at_least_once(none(), |s| s.duplicate_window = Duration::from_secs(1)), differs);
        assert_eq!(at_least_once(none().with("replicas", 3), |s| s.num_replicas = 1), differs);
        assert_eq!(at_least_once(none(), |s| s.num_replicas = 3), NONE, "more than the default is no fault");
        let discards = at_least_once(none().with("discard", "new"), |s| s.discard = DiscardPolicy::Old);
        assert_eq!(discards, differs);
    }

    #[test]
    fn patterns_cover_what_the_server_would_route() {
        for (pattern, subject, is) in [
            ("orders", "orders", true),
            ("orders", "orders.p0", false),
            ("orders.*", "orders.p0", true),
            ("orders.*", "orders", false),
            ("orders.*", "orders.a.b", false),
            ("orders.>", "orders.a.b", true),
            ("orders.>", "orders", false),
            (">", "a", true),
            ("*", "a.b", false),
        ] {
            assert_eq!(covers(pattern, subject), is, "{pattern} {subject}");
        }
    }
}
