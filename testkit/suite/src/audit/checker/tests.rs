//! A clean history passes, and a lie of each kind is found: in histories by hand, and in random ones.

use consign_core_api::SettlementLevel;
use proptest::prelude::*;

use super::super::history::{Delivery, Event, Expects, History, Outcome, Record, Run, Told, Verdict};
use super::{Findings, LieKind, check};

const DEADLINE: u64 = 1_000;
const TOLERANCE: u64 = 50;
/// Between two publishes of the histories here.
const STEP: u64 = 10_000;

/// How one publish of an honest run went.
#[derive(Debug, Clone, Copy)]
struct Plan {
    key: u8,
    end: End,
    level: Option<SettlementLevel>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Confirmed {
        repeated: bool,
        twice: bool,
    },
    Rejected,
    Ambiguous {
        stored: bool,
    },
    /// The future was dropped, and the observer was told.
    DroppedConfirmed,
    DroppedUnsent,
}

impl End {
    const fn copies(self) -> u64 {
        match self {
            Self::Confirmed { repeated, twice } => 1 + (repeated && twice) as u64,
            Self::DroppedConfirmed | Self::Ambiguous { stored: true } => 1,
            Self::Rejected | Self::Ambiguous { stored: false } | Self::DroppedUnsent => 0,
        }
    }

    const fn verdict(self) -> Option<Outcome> {
        match self {
            Self::Confirmed { .. } | Self::DroppedConfirmed => Some(Outcome::Confirmed),
            Self::Rejected => Some(Outcome::Rejected),
            Self::Ambiguous { .. } => Some(Outcome::Ambiguous),
            Self::DroppedUnsent => None,
        }
    }

    const fn dropped(self) -> bool {
        matches!(self, Self::DroppedConfirmed | Self::DroppedUnsent)
    }
}

fn id(number: usize) -> String {
    format!("m{number}")
}

fn position(number: usize, copy: u64) -> String {
    format!("offset:0:{}", number as u64 * 2 + copy)
}

fn delivery(number: usize, copy: u64) -> Delivery {
    Delivery { group: "g".into(), id: id(number), position: Some(position(number, copy)) }
}

/// Writes the history that an honest library makes of it.
fn honest(plans: &[Plan], expects: Expects) -> Vec<Record> {
    let run = Run {
        seed: 1,
        broker: "none".into(),
        fault: "none".into(),
        ordered: true,
        deadline: DEADLINE,
        tolerance: TOLERANCE,
        expects,
    };
    let mut records = vec![Record { at: 0, event: Event::Run(run) }];
    let (mut found, mut at) = (Vec::new(), 0);
    for (number, plan) in plans.iter().enumerate() {
        at = (number as u64 + 1) * STEP;
        let (key, n) = (format!("k{}", plan.key), number as u64);
        let mut add = |after: u64, event| records.push(Record { at: at + after, event });
        add(
            0,
            Event::Call {
                id: id(number),
                destination: "d".into(),
                key: key.clone(),
                n,
                awaited: true,
                behind: 0,
            },
        );
        if plan.end.dropped() {
            add(1, Event::Dropped { id: id(number), polls: 1 });
        }
        if plan.end != End::DroppedUnsent {
            add(2, Event::Sent { id: id(number) });
        }
        if let Some(outcome) = plan.end.verdict() {
            let confirmed = outcome == Outcome::Confirmed;
            let repeated = matches!(plan.end, End::Confirmed { repeated: true, .. });
            let verdict = Verdict {
                outcome,
                code: (!confirmed).then(|| "WHY".into()),
                attempts: confirmed.then_some(if repeated { 2 } else { 1 }),
                once: confirmed && !repeated,
                position: confirmed.then(|| position(number, plan.end.copies() - 1)),
            };
            add(900, Event::Told { id: id(number), to: Told::Observer, verdict: verdict.clone() });
            if !plan.end.dropped() {
                add(901, Event::Told { id: id(number), to: Told::Caller, verdict });
            }
        }
        for copy in 0..plan.end.copies() {
            add(1_000, Event::Delivered(delivery(number, copy)));
            add(1_001, Event::Handled { delivery: delivery(number, copy), key: key.clone(), n });
            add(1_002, Event::Settled { delivery: delivery(number, copy), level: plan.level });
            if plan.level != Some(SettlementLevel::Committed) {
                add(1_003, Event::Delivered(delivery(number, copy)));
            }
            let position = position(number, copy);
            found.push(Event::Found { id: id(number), key: key.clone(), n, position });
        }
    }
    let count = found.len() as u64;
    let mut end = vec![
        Event::Drained { group: "g".into(), destination: "d".into() },
        Event::Permits { in_flight: 0, bytes: 0 },
    ];
    end.extend(found);
    end.push(Event::ReadBack { count });
    records.extend(end.into_iter().map(|event| Record { at: at + STEP, event }));
    records
}

const CLEAN: [Plan; 6] = {
    const fn plan(key: u8, end: End) -> Plan {
        Plan { key, end, level: Some(SettlementLevel::Committed) }
    }
    [
        plan(0, End::Confirmed { repeated: false, twice: false }),
        plan(0, End::Confirmed { repeated: true, twice: true }),
        plan(0, End::Rejected),
        plan(0, End::Ambiguous { stored: true }),
        plan(1, End::Ambiguous { stored: false }),
        plan(1, End::DroppedConfirmed),
    ]
};

fn found(records: Vec<Record>) -> Findings {
    check(&History(records))
}

fn kinds(records: Vec<Record>) -> Vec<LieKind> {
    let mut kinds: Vec<_> = found(records).lies.iter().map(|lie| lie.kind).collect();
    kinds.dedup();
    kinds
}

#[test]
fn a_clean_history_passes_and_its_figures_are_right() {
    let found = found(honest(&CLEAN, Expects::Ambiguous));
    assert!(found.lies.is_empty(), "{:?}", found.lies);
    let counts = found.counts;
    assert_eq!((counts.published, counts.confirmed, counts.repeated, counts.rejected), (6, 3, 1, 1));
    assert_eq!((counts.ambiguous_present, counts.ambiguous_absent, counts.dropped), (1, 1, 1));
    assert_eq!((counts.duplicates, counts.settled), (1, 5));
    assert_eq!((found.time(50), found.time(100)), (900, 900));
}

/// Plants one lie. Answers false where the history has no place for it.
fn plant(kind: LieKind, records: &mut Vec<Record>, plans: &[Plan], pick: usize) -> bool {
    let some = |fits: fn(&Plan) -> bool| {
        let fitting: Vec<_> = (0..plans.len()).filter(|number| fits(&plans[*number])).collect();
        (!fitting.is_empty()).then(|| fitting[pick % fitting.len()])
    };
    let confirmed = |plan: &Plan| plan.end.verdict() == Some(Outcome::Confirmed);
    let is =
        |record: &Record, wanted: &str| matches!(&record.event, Event::Found { id, .. } if *id == *wanted);
    let last = records.last().map_or(0, |record| record.at);
    let add_found = |records: &mut Vec<Record>, id: String, key: String, n: u64| {
        let position = "offset:9:9".to_owned();
        records.push(Record { at: last, event: Event::Found { id, key, n, position } });
        records.push(Record { at: last, event: Event::ReadBack { count: 1 } });
    };
    let key_of = |number: usize| format!("k{}", plans[number].key);
    let Some(number) = (match kind {
        LieKind::ConfirmedTwice => some(|plan| matches!(plan.end, End::Confirmed { repeated: false, .. })),
        LieKind::RejectedPresent => some(|plan| plan.end == End::Rejected),
        LieKind::UntoldPresent => some(|plan| plan.end == End::DroppedUnsent),
        LieKind::CommittedRedelivered => {
            some(|plan| plan.level == Some(SettlementLevel::Committed) && plan.end.copies() > 0)
        }
        LieKind::SettledUnhandled | LieKind::Altered => some(|plan| plan.end.copies() > 0),
        LieKind::NoOutcome => some(|plan| plan.end.verdict().is_some() && !plan.end.dropped()),
        LieKind::TwoOutcomes | LieKind::Late => some(|plan| plan.end.verdict().is_some()),
        _ => some(confirmed),
    }) else {
        return false;
    };
    let name = id(number);
    match kind {
        LieKind::ConfirmedMissing => {
            let before = records.len();
            records.retain(|record| !is(record, &name));
            let gone = (before - records.len()) as u64;
            for record in records.iter_mut() {
                if let Event::ReadBack { count } = &mut record.event {
                    *count -= gone;
                }
            }
        }
        LieKind::ConfirmedElsewhere => records.iter_mut().for_each(|record| {
            if is(record, &name)
                && let Event::Found { position, .. } = &mut record.event
            {
                *position = "offset:9:9".into();
            }
        }),
        LieKind::ConfirmedTwice | LieKind::RejectedPresent | LieKind::UntoldPresent => {
            add_found(records, name, key_of(number), number as u64);
        }
        LieKind::FromNowhere => add_found(records, "stranger".into(), "k".into(), 0),
        LieKind::Altered => records.iter_mut().for_each(|record| {
            if let Event::Found { id, n, .. } = &mut record.event
                && *id == name
            {
                *n += 1;
            }
        }),
        LieKind::NoOutcome => records.retain(
            |record| !matches!(&record.event, Event::Told { id, to: Told::Caller, .. } if *id == name),
        ),
        LieKind::TwoOutcomes => {
            let at = records
                .iter()
                .position(|record| matches!(&record.event, Event::Told { id, .. } if *id == name));
            let Some(at) = at else { return false };
            let again = records[at].clone();
            records.insert(at, again);
        }
        LieKind::Late => records.iter_mut().for_each(|record| {
            if let Event::Told { id, to: Told::Observer, .. } = &record.event
                && *id == name
            {
                record.at += DEADLINE;
            }
        }),
        LieKind::CommittedRedelivered => {
            records.push(Record { at: last, event: Event::Delivered(delivery(number, 0)) });
        }
        LieKind::SettledUnhandled => {
            // Settled first, handled afterwards.
            let of = |record: &Record| match &record.event {
                Event::Handled { delivery, .. } | Event::Settled { delivery, .. } => delivery.id == name,
                _ => false,
            };
            let Some(first) = records.iter().position(of) else { return false };
            records.swap(first, first + 1);
        }
        LieKind::NeverHandled => records.retain(|record| match &record.event {
            Event::Handled { delivery, .. } | Event::Settled { delivery, .. } => delivery.id != name,
            _ => true,
        }),
        LieKind::OutOfOrder => {
            // The first handling moves behind that of a later one of its key.
            let later = (number + 1..plans.len())
                .find(|other| plans[*other].key == plans[number].key && confirmed(&plans[*other]));
            if later.is_none() {
                return false;
            }
            let (mut moved, kept): (Vec<_>, Vec<_>) =
                std::mem::take(records).into_iter().partition(|record| {
                    matches!(&record.event, Event::Handled { delivery, .. } | Event::Settled { delivery, .. }
                    if delivery.id == name)
                });
            *records = kept;
            records.append(&mut moved);
        }
        LieKind::PermitsNotBack => records.iter_mut().for_each(|record| {
            if let Event::Permits { in_flight, .. } = &mut record.event {
                *in_flight = 1;
            }
        }),
        LieKind::Incomplete => records.retain(|record| !matches!(record.event, Event::ReadBack { .. })),
        LieKind::ProvedNothing => return false,
    }
    true
}

const PLANTED: [LieKind; 16] = [
    LieKind::ConfirmedMissing,
    LieKind::ConfirmedElsewhere,
    LieKind::ConfirmedTwice,
    LieKind::RejectedPresent,
    LieKind::UntoldPresent,
    LieKind::FromNowhere,
    LieKind::Altered,
    LieKind::NoOutcome,
    LieKind::TwoOutcomes,
    LieKind::Late,
    LieKind::CommittedRedelivered,
    LieKind::SettledUnhandled,
    LieKind::NeverHandled,
    LieKind::OutOfOrder,
    LieKind::PermitsNotBack,
    LieKind::Incomplete,
];

#[test]
fn a_lie_of_each_kind_is_found_and_named_and_nothing_else_is() {
    let unsent = Plan { key: 0, end: End::DroppedUnsent, level: None };
    let plans: Vec<_> = CLEAN.into_iter().chain([unsent]).collect();
    for kind in PLANTED {
        let mut records = honest(&plans, Expects::Ambiguous);
        assert!(plant(kind, &mut records, &plans, 0), "{kind:?} has no place");
        assert_eq!(kinds(records), [kind]);
    }
}

#[test]
fn a_logged_deletion_excuses_a_confirmed_message_that_is_missing() {
    let mut records = honest(&CLEAN, Expects::Ambiguous);
    plant(LieKind::ConfirmedMissing, &mut records, &CLEAN, 0);
    records.push(Record { at: u64::MAX, event: Event::Deleted { id: id(0) } });
    assert_eq!(kinds(records), []);
}

#[test]
fn a_rejected_message_that_was_only_handled_is_found() {
    let mut records = honest(&CLEAN, Expects::Ambiguous);
    let event = Event::Handled { delivery: delivery(2, 0), key: "k0".into(), n: 2 };
    records.push(Record { at: u64::MAX, event });
    assert_eq!(kinds(records), [LieKind::RejectedPresent]);
}

#[test]
fn a_sent_message_without_a_verdict_is_found_although_its_future_was_dropped() {
    let mut records = honest(&CLEAN, Expects::Ambiguous);
    records.retain(|record| !matches!(&record.event, Event::Told { id: name, .. } if *name == id(5)));
    assert_eq!(kinds(records), [LieKind::NoOutcome]);
}

#[test]
fn a_verdict_is_late_by_what_the_machine_does_not_explain() {
    let late = |lags: &[(u64, u64)]| {
        let mut records = honest(&CLEAN[..1], Expects::Nothing);
        // Told 850 us after the deadline, which is at 11,000.
        for record in &mut records {
            if matches!(record.event, Event::Told { .. }) {
                record.at = STEP + DEADLINE + 850;
            }
        }
        records.extend(
            lags.iter().map(|(at, micros)| Record { at: *at, event: Event::Lag { micros: *micros } }),
        );
        kinds(records)
    };
    assert_eq!(late(&[]), [LieKind::Late]);
    assert_eq!(late(&[(11_400, 799)]), [LieKind::Late]);
    assert_eq!(late(&[(11_400, 800)]), []);
    // Long before, and long after.
    assert_eq!(late(&[(10_900, 10_000), (20_000, 5_000)]), [LieKind::Late]);
}

#[test]
fn a_caller_who_waits_for_one_outcome_is_told_in_time_too() {
    let mut records = honest(&CLEAN[..1], Expects::Nothing);
    for record in &mut records {
        if matches!(record.event, Event::Told { to: Told::Caller, .. }) {
            record.at += STEP;
        }
    }
    assert_eq!(kinds(records.clone()), [LieKind::Late]);
    for record in &mut records {
        if let Event::Call { awaited, .. } = &mut record.event {
            *awaited = false;
        }
    }
    assert_eq!(kinds(records), []);
}

#[test]
fn what_waits_behind_others_has_its_deadline_after_that_and_no_later() {
    let late = |allowed| {
        let mut records = honest(&CLEAN[..1], Expects::Nothing);
        for record in &mut records {
            match &mut record.event {
                Event::Call { behind, .. } => *behind = allowed,
                Event::Told { .. } => record.at += DEADLINE,
                _ => {}
            }
        }
        kinds(records)
    };
    assert_eq!(late(DEADLINE), []);
    assert_eq!(late(DEADLINE / 2), [LieKind::Late]);
}

#[test]
fn a_group_need_not_handle_what_stands_elsewhere() {
    let mut records = honest(&CLEAN, Expects::Ambiguous);
    assert!(plant(LieKind::NeverHandled, &mut records, &CLEAN, 0));
    for record in &mut records {
        if let Event::Drained { destination, .. } = &mut record.event {
            *destination = "elsewhere".into();
        }
    }
    assert_eq!(kinds(records), []);
}

#[test]
fn a_settlement_that_a_crash_undid_is_counted_if_it_was_only_processed() {
    let plan = Plan { level: Some(SettlementLevel::Processed), ..CLEAN[0] };
    let found = found(honest(&[plan], Expects::Nothing));
    assert!(found.lies.is_empty(), "{:?}", found.lies);
    assert_eq!((found.counts.processed_redelivered, found.counts.redelivered), (1, 1));
}

#[test]
fn a_run_without_what_its_fault_should_cause_proved_nothing() {
    let plain = &CLEAN[..1];
    for expects in [Expects::Ambiguous, Expects::Dropped, Expects::SettlementUnknown] {
        assert_eq!(kinds(honest(plain, expects)), [LieKind::ProvedNothing], "{expects:?}");
    }
    assert_eq!(kinds(honest(plain, Expects::Nothing)), []);
}

#[test]
fn an_empty_history_does_not_pass() {
    assert_eq!(kinds(Vec::new()), [LieKind::Incomplete]);
}

#[test]
fn order_is_not_asked_for_where_the_profile_gives_none() {
    let mut records = honest(&CLEAN, Expects::Ambiguous);
    assert!(plant(LieKind::OutOfOrder, &mut records, &CLEAN, 0));
    if let Event::Run(run) = &mut records[0].event {
        run.ordered = false;
    }
    assert_eq!(kinds(records), []);
}

fn plans() -> impl Strategy<Value = Vec<Plan>> {
    let end = prop_oneof![
        4 => (any::<bool>(), any::<bool>()).prop_map(|(repeated, twice)| End::Confirmed { repeated, twice }),
        1 => Just(End::Rejected),
        2 => any::<bool>().prop_map(|stored| End::Ambiguous { stored }),
        1 => Just(End::DroppedConfirmed),
        1 => Just(End::DroppedUnsent),
    ];
    let level = prop_oneof![
        Just(None),
        Just(Some(SettlementLevel::Processed)),
        Just(Some(SettlementLevel::Committed)),
    ];
    let plan = (0..4_u8, end, level).prop_map(|(key, end, level)| Plan { key, end, level });
    proptest::collection::vec(plan, 1..60)
}

proptest! {
    #[test]
    fn honest_histories_pass(plans in plans()) {
        let lies = found(honest(&plans, Expects::Nothing)).lies;
        prop_assert!(lies.is_empty(), "{lies:?}");
    }

    #[test]
    fn one_lie_in_an_honest_history_is_always_found(plans in plans(), kind in 0..PLANTED.len(), pick: u16) {
        let mut records = honest(&plans, Expects::Nothing);
        let kind = PLANTED[kind];
        if plant(kind, &mut records, &plans, pick.into()) {
            prop_assert_eq!(kinds(records), [kind]);
        }
    }

    #[test]
    fn a_history_reads_back(plans in plans()) {
        let history = History(honest(&plans, Expects::Nothing));
        let mut bytes = Vec::new();
        history.write(&mut bytes).unwrap();
        prop_assert_eq!(History::read(bytes.as_slice()).unwrap(), history);
    }
}
