//! The one place where an answer of the server becomes an outcome.
//!
//! An answer is judged by its status and its error code. One code, 10077 (store failed), covers a stream that is full
//! and a store that failed half-way, and only its text tells them apart: exactly the three texts of a full stream count
//! as a refusal, anything else stays unknown.

use std::borrow::Cow;
use std::error::Error as _;
use std::sync::Arc;

use async_nats::client::PublishErrorKind;
use consign_core_api::code::Code;
use consign_core_api::failure::{Failure, FailureCategory};
use consign_core_api::outcome::{ConfirmationEvidence, Transmission};
use consign_core_api::position::MessagePosition;
use consign_core_api::settlement::{SettlementEvidence, SettlementLevel};
use consign_core_api::spi::{Acceptance, PublishReply, Refusal, SettlementReply};
use serde::Deserialize;

use crate::codes;
use crate::wire::Uncarried;

const NO_RESPONDERS: u16 = 503;

/// What one publish expects of its answer.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    /// The stream that must answer.
    pub(crate) stream: Arc<str>,
    /// What its acknowledgement stands for.
    pub(crate) evidence: ConfirmationEvidence,
    /// Whether an earlier attempt has an unknown end.
    pub(crate) resend: bool,
    /// Whether the runtime sends it again under its id where its end is unknown.
    pub(crate) repeatable: bool,
}

#[derive(Deserialize)]
struct Answer<'a> {
    /// Empty where the answer names none. No `Option`: serde would copy what it holds.
    #[serde(borrow, default)]
    stream: Cow<'a, str>,
    #[serde(default)]
    seq: Option<u64>,
    #[serde(default)]
    duplicate: bool,
    #[serde(borrow, default)]
    error: Option<NativeError<'a>>,
}

#[derive(Deserialize)]
struct NativeError<'a> {
    #[serde(default)]
    err_code: u64,
    #[serde(borrow, default)]
    description: Cow<'a, str>,
}

/// Judges the answer to a publish.
pub(crate) fn of_publish(expected: &Expected, status: Option<u16>, payload: &[u8]) -> PublishReply {
    if status == Some(NO_RESPONDERS) && payload.is_empty() {
        let text = "nobody answers on the subject: no stream, or no leader of it right now";
        return refused(Transmission::Unroutable, TRANSIENT, codes::NATS_NO_STREAM, text);
    }
    let unreadable = || unknown(codes::NATS_ANSWER_UNREADABLE, "the answer is not one that a stream gives");
    if status.is_some() {
        return unreadable();
    }
    let Ok(answer) = serde_json::from_slice::<Answer<'_>>(payload) else { return unreadable() };
    // An error names its stream too; an answer that names another one proves nothing about ours.
    if !answer.stream.is_empty() && *answer.stream != *expected.stream {
        let text = "somebody else than the expected stream answered";
        // The expected-stream header makes the wrong stream refuse, naming itself.
        return match &answer.error {
            Some(error) if error.err_code == 10060 => of_error(error, expected.resend),
            _ => unknown(codes::NATS_FOREIGN_ACKNOWLEDGEMENT, text),
        };
    }
    if let Some(error) = &answer.error {
        return of_error(error, expected.resend);
    }
    match answer.seq {
        Some(sequence) if sequence > 0 && !answer.stream.is_empty() => {
            let position = MessagePosition::Sequence { stream: Arc::clone(&expected.stream), sequence };
            let acceptance = Acceptance::new(expected.evidence).at(position);
            PublishReply::Accepted(if answer.duplicate { acceptance.deduplicated() } else { acceptance })
        }
        _ => unreadable(),
    }
}

fn of_error(error: &NativeError<'_>, resend: bool) -> PublishReply {
    use FailureCategory::{Capacity, Configuration, PermanentBusiness};
    let code = error.err_code;
    let text = || format!("the server answered {code}: {}", error.description);
    let refuse = |category, stable| refused(Transmission::RefusedByBroker, category, stable, text());
    match code {
        10060 => refuse(Configuration, codes::NATS_WRONG_STREAM),
        10054 | 10097 => refuse(PermanentBusiness, codes::NATS_MESSAGE_TOO_LARGE),
        10109 => refuse(Configuration, codes::NATS_STREAM_SEALED),
        10002 | 10023 | 10028 | 10047 | 10167 => refuse(Capacity, codes::NATS_RESOURCES_EXHAUSTED),
        10035 | 10039 | 10076 => refuse(Configuration, codes::NATS_JETSTREAM_DISABLED),
        10008 | 10118 | 10163 => refuse(TRANSIENT, codes::NATS_UNAVAILABLE),
        // On a resend it may be the earlier attempt that moved the sequence.
        10070 | 10071 | 10164 | 10180 if resend => unknown(codes::NATS_PRECONDITION_FAILED, text()),
        10070 | 10071 | 10164 | 10180 => refuse(PermanentBusiness, codes::NATS_PRECONDITION_FAILED),
        10111 | 10165 | 10166 | 10168..=10172 | 10188..=10193 => {
            refuse(PermanentBusiness, codes::NATS_FEATURE_REFUSED)
        }
        10077 if FULL.contains(&&*error.description) => refuse(Capacity, codes::NATS_STREAM_FULL),
        10077 => unknown(codes::NATS_STORE_FAILED, text()),
        10158 => unknown(codes::NATS_DUPLICATE_IN_PROCESS, text()),
        _ => unknown(codes::NATS_ERROR_UNRECOGNISED, text()),
    }
}

/// The texts of 10077 with which a stream that discards new messages refuses one, before it stores anything.
const FULL: [&str; 3] =
    ["maximum messages exceeded", "maximum bytes exceeded", "maximum messages per subject exceeded"];

/// Judges the answer to a settlement: the server answers with nothing at all once it has processed it.
pub(crate) fn of_settlement(status: Option<u16>, payload: &[u8]) -> SettlementReply {
    let unknown = |code, text| SettlementReply::Unknown(Failure::new(TRANSIENT, code, text));
    match (status, payload) {
        (None, []) => SettlementReply::Evidence(SettlementEvidence::observed(SettlementLevel::Processed)),
        (Some(NO_RESPONDERS), _) => {
            unknown(codes::NATS_CONSUMER_GONE, "nobody owns the delivery: its consumer is gone")
        }
        _ => unknown(codes::NATS_ANSWER_UNREADABLE, "the answer is not one that a consumer gives"),
    }
}

/// The client did not take the message; it is certain that nothing was written.
pub(crate) fn publish_not_sent(error: &async_nats::PublishError) -> PublishReply {
    let (category, code) = match error.kind() {
        PublishErrorKind::MaxPayloadExceeded => {
            (FailureCategory::PermanentBusiness, codes::PAYLOAD_ABOVE_SERVER_LIMIT)
        }
        PublishErrorKind::InvalidSubject => (FailureCategory::Configuration, codes::NATS_STREAM_NAME_ILLEGAL),
        PublishErrorKind::Send => (TRANSIENT, codes::TRANSPORT_CLOSED),
    };
    let detail = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    refused(Transmission::NotTransmitted, category, code, detail)
}

/// The client did not take the settlement.
pub(crate) fn settlement_not_sent(error: &async_nats::PublishError) -> SettlementReply {
    SettlementReply::Unknown(Failure::new(TRANSIENT, codes::TRANSPORT_CLOSED, error.kind().to_string()))
}

/// The message cannot be carried.
pub(crate) fn uncarried(refused_header: &Uncarried) -> PublishReply {
    let (code, text) = match refused_header {
        Uncarried::Nameless => (consign_core_api::codes::HEADER_INVALID, "a header has no name".to_owned()),
        Uncarried::Reserved(name) => {
            (consign_core_api::codes::RESERVED_HEADER, format!("the header {name:?} belongs to the library"))
        }
        Uncarried::Header(name) => {
            (codes::HEADER_NOT_CARRIED, format!("the header {name:?} cannot be carried by NATS"))
        }
    };
    refused(Transmission::NotTransmitted, FailureCategory::PermanentBusiness, code, text)
}

/// The destination has no such partition.
pub(crate) fn no_such_partition(partition: u32) -> PublishReply {
    let text = format!("the destination has no partition {partition}");
    refused(
        Transmission::NotTransmitted,
        FailureCategory::PermanentBusiness,
        codes::PARTITION_NOT_CARRIED,
        text,
    )
}

/// The queue in this process is full.
pub(crate) fn publish_queue_full() -> PublishReply {
    let text = "the destination's queue in this process is full";
    refused(Transmission::NotTransmitted, FailureCategory::Capacity, codes::PUBLISH_QUEUE_FULL, text)
}

/// The connection is closed.
pub(crate) fn publish_closed() -> PublishReply {
    refused(Transmission::NotTransmitted, TRANSIENT, codes::TRANSPORT_CLOSED, "the connection is closed")
}

/// The connection was lost while an answer was outstanding.
pub(crate) fn publish_lost() -> PublishReply {
    unknown(codes::NATS_DISCONNECTED, "the connection was lost before the answer came")
}

/// No answer came in time to a publish that was handed over.
pub(crate) fn publish_unanswered() -> PublishReply {
    unknown(codes::NATS_NO_ANSWER, "no answer came")
}

/// No answer came in time to a settlement.
pub(crate) fn settlement_unanswered() -> SettlementReply {
    settlement_unknown(codes::NATS_NO_ANSWER, "no answer came")
}

/// A settlement that could not be asked for.
pub(crate) fn settlement_unknown(code: Code, text: &'static str) -> SettlementReply {
    SettlementReply::Unknown(Failure::new(TRANSIENT, code, text))
}

const TRANSIENT: FailureCategory = FailureCategory::TransientInfrastructure;

fn refused(
    transmission: Transmission,
    category: FailureCategory,
    code: Code,
    text: impl Into<Cow<'static, str>>,
) -> PublishReply {
    PublishReply::Refused(Refusal::new(transmission, Failure::new(category, code, text)))
}

fn unknown(code: Code, text: impl Into<Cow<'static, str>>) -> PublishReply {
    PublishReply::Unknown(Failure::new(TRANSIENT, code, text))
}

#[cfg(test)]
mod tests {
    use consign_core_api::outcome::{Copies, Duplicate, Evidenced, Persistence};
    use proptest::prelude::*;

    use super::*;

    fn expected(resend: bool) -> Expected {
        let evidence = ConfirmationEvidence::new(
            Evidenced::observed(Copies::Leader),
            Evidenced::declared(Persistence::PageCache),
        );
        Expected { stream: "S".into(), evidence, resend, repeatable: false }
    }

    fn judge(payload: &str) -> PublishReply {
        of_publish(&expected(false), None, payload.as_bytes())
    }

    /// `R` refused or `U` unknown, the category and the code.
    fn shown(reply: PublishReply) -> (char, FailureCategory, Code) {
        match reply {
            PublishReply::Accepted(_) => panic!("accepted"),
            PublishReply::Refused(refusal) => {
                let (_, failure) = refusal.into_parts();
                ('R', failure.category(), failure.code())
            }
            PublishReply::Unknown(failure) => ('U', failure.category(), failure.code()),
        }
    }

    fn of_code(code: u64, text: &str, resend: bool) -> (char, FailureCategory, Code) {
        let payload = format!(
            r#"{{"error":{{"code":400,"err_code":{code},"description":"{text}"}},"stream":"S","seq":0}}"#
        );
        shown(of_publish(&expected(resend), None, payload.as_bytes()))
    }

    #[test]
    fn an_acknowledgement_of_the_expected_stream_is_accepted_with_its_position() {
        let PublishReply::Accepted(acceptance) = judge(r#"{"stream":"S","seq":7}"#) else { panic!() };
        let (_, position, duplicate) = acceptance.into_parts();
        assert_eq!(position, Some(MessagePosition::Sequence { stream: "S".into(), sequence: 7 }));
        assert_eq!(duplicate, Duplicate::No);
    }

    #[test]
    fn a_duplicate_is_accepted_and_says_so() {
        let PublishReply::Accepted(acceptance) = judge(r#"{"stream":"S","seq":7,"duplicate": true}"#) else {
            panic!()
        };
        assert_eq!(acceptance.into_parts().2, Duplicate::Deduplicated);
    }

    #[test]
    fn an_answer_of_anybody_else_is_unknown() {
        for payload in [
            r#"{"stream":"FAKE","seq":7}"#,
            r#"{"stream":"FAKE","seq":7,"duplicate":true}"#,
            r#"{"stream":"FAKE","error":{"code":400,"err_code":10054,"description":"x"}}"#,
        ] {
            assert_eq!(shown(judge(payload)).0, 'U', "{payload}");
        }
    }

    #[test]
    fn the_wrong_stream_refuses_and_names_itself() {
        let payload = r#"{"error":{"code":400,"err_code":10060,"description":"x"},"stream":"OTHER","seq":0}"#;
        let config = FailureCategory::Configuration;
        assert_eq!(shown(judge(payload)), ('R', config, codes::NATS_WRONG_STREAM));
    }

    #[test]
    fn answers_that_no_stream_gives_are_unknown() {
        let odd = ["", "{}", "null", "OK", r#"{"stream":"S"}"#, r#"{"seq":1}"#, r#"{"stream":"S","seq":0}"#];
        for payload in odd {
            assert_eq!(shown(judge(payload)).2, codes::NATS_ANSWER_UNREADABLE, "{payload}");
        }
        let with_status = of_publish(&expected(false), Some(408), b"{\"stream\":\"S\",\"seq\":7}");
        assert_eq!(shown(with_status).0, 'U');
    }

    #[test]
    fn no_responders_is_unroutable_and_worth_another_try() {
        let PublishReply::Refused(refusal) = of_publish(&expected(false), Some(503), b"") else { panic!() };
        let (transmission, failure) = refusal.into_parts();
        assert_eq!(transmission, Transmission::Unroutable);
        assert!(failure.category().is_transient());
    }

    #[test]
    fn every_error_code_has_its_verdict() {
        use FailureCategory::{Capacity, Configuration, PermanentBusiness, TransientInfrastructure};
        let table: &[(u64, char, FailureCategory, Code)] = &[
            (10002, 'R', Capacity, codes::NATS_RESOURCES_EXHAUSTED),
            (10008, 'R', TransientInfrastructure, codes::NATS_UNAVAILABLE),
            // No version that was read sends it to a publisher.
            (10009, 'U', TransientInfrastructure, codes::NATS_ERROR_UNRECOGNISED),
            (10023, 'R', Capacity, codes::NATS_RESOURCES_EXHAUSTED),
            (10028, 'R', Capacity, codes::NATS_RESOURCES_EXHAUSTED),
            (10035, 'R', Configuration, codes::NATS_JETSTREAM_DISABLED),
            (10039, 'R', Configuration, codes::NATS_JETSTREAM_DISABLED),
            (10047, 'R', Capacity, codes::NATS_RESOURCES_EXHAUSTED),
            (10054, 'R', PermanentBusiness, codes::NATS_MESSAGE_TOO_LARGE),
            (10060, 'R', Configuration, codes::NATS_WRONG_STREAM),
            (10070, 'R', PermanentBusiness, codes::NATS_PRECONDITION_FAILED),
            (10071, 'R', PermanentBusiness, codes::NATS_PRECONDITION_FAILED),
            (10076, 'R', Configuration, codes::NATS_JETSTREAM_DISABLED),
            (10077, 'U', TransientInfrastructure, codes::NATS_STORE_FAILED),
            (10097, 'R', PermanentBusiness, codes::NATS_MESSAGE_TOO_LARGE),
            (10109, 'R', Configuration, codes::NATS_STREAM_SEALED),
            (10111, 'R', PermanentBusiness, codes::NATS_FEATURE_REFUSED),
            (10118, 'R', TransientInfrastructure, codes::NATS_UNAVAILABLE),
            (10158, 'U', TransientInfrastructure, codes::NATS_DUPLICATE_IN_PROCESS),
            (10163, 'R', TransientInfrastructure, codes::NATS_UNAVAILABLE),
            (10164, 'R', PermanentBusiness, codes::NATS_PRECONDITION_FAILED),
            (10165, 'R', PermanentBusiness, codes::NATS_FEATURE_REFUSED),
            (10166, 'R', PermanentBusiness, codes::NATS_FEATURE_REFUSED),
            (10167, 'R', Capacity, codes::NATS_RESOURCES_EXHAUSTED),
            (10168, 'R', PermanentBusiness, codes::NATS_FEATURE_REFUSED),
            (10172, 'R', PermanentBusiness, codes::NATS_FEATURE_REFUSED),
            (10180, 'R', PermanentBusiness, codes::NATS_PRECONDITION_FAILED),
            (10188, 'R', PermanentBusiness, codes::NATS_FEATURE_REFUSED),
            (10193, 'R', PermanentBusiness, codes::NATS_FEATURE_REFUSED),
        ];
        for (code, letter, category, stable) in table {
            assert_eq!(of_code(*code, "x", false), (*letter, *category, *stable), "{code}");
        }
        // Whatever is not in the table is unknown.
        for code in (0..20_000).filter(|code| !table.iter().any(|row| row.0 == *code)) {
            let (letter, ..) = of_code(code, "x", false);
            let between = matches!(code, 10169..=10171 | 10189..=10192);
            assert_eq!(letter, if between { 'R' } else { 'U' }, "{code}");
        }
    }

    #[test]
    fn a_full_stream_refuses_and_any_other_failed_store_is_unknown() {
        for text in FULL {
            assert_eq!(
                of_code(10077, text, false),
                ('R', FailureCategory::Capacity, codes::NATS_STREAM_FULL)
            );
        }
        for text in ["store is closed", "maximum messages exceeded.", "", "Maximum bytes exceeded"] {
            assert_eq!(of_code(10077, text, false).0, 'U', "{text}");
        }
    }

    #[test]
    fn a_failed_expectation_on_a_resend_may_be_our_own_first_attempt() {
        for code in [10070, 10071, 10164, 10180] {
            assert_eq!((of_code(code, "x", false).0, of_code(code, "x", true).0), ('R', 'U'), "{code}");
        }
    }

    #[test]
    fn only_an_empty_answer_settles() {
        assert!(matches!(of_settlement(None, b""), SettlementReply::Evidence(_)));
        for (status, payload) in [(Some(503), &b""[..]), (None, b"+OK"), (Some(100), b""), (Some(408), b"")] {
            assert!(matches!(of_settlement(status, payload), SettlementReply::Unknown(_)), "{status:?}");
        }
    }

    proptest! {
        #[test]
        fn no_answer_makes_judging_panic(payload in proptest::collection::vec(any::<u8>(), 0..64), status: Option<u16>) {
            let _ = of_publish(&expected(true), status, &payload);
            let _ = of_settlement(status, &payload);
        }
    }
}
