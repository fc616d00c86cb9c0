//! What is refused where a value comes from outside, and what cannot come from outside at all.

use std::time::Duration;

use consign_core_api::outcome::{Basis, Persistence};
use consign_core_api::spi::{Confirm, NativeSettings, OrderImpact, RetryStrategy, Start, TopologyMode};
use consign_core_api::time::{Delay, Timeout};
use consign_core_api::{
    Attempt, Capability, DeliveryGuarantee, DestinationName, ExternalSideEffectGuarantee, FailureCategory,
    GroupName, MaxPayload, MessageId, MessagePosition, OrderingScope, SettlementLevel, TransportName,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;

fn refused<T: DeserializeOwned>(json: &str) -> bool {
    serde_json::from_str::<T>(json).is_err()
}

#[test]
fn guarantees_that_no_broker_gives_are_refused_in_every_spelling() {
    for word in ["EXACTLY_ONCE", "ExactlyOnce", "exactly_once", "EFFECTIVELY_ONCE"] {
        assert!(refused::<DeliveryGuarantee>(&format!("\"{word}\"")), "{word}");
        assert!(refused::<ExternalSideEffectGuarantee>(&format!("\"{word}\"")), "{word}");
    }
    for word in ["GLOBAL", "Global", "global", "TOTAL"] {
        assert!(refused::<OrderingScope>(&format!("\"{word}\"")), "{word}");
    }
}

#[test]
fn a_written_word_has_one_spelling() {
    assert!(
        !refused::<DeliveryGuarantee>("\"AT_LEAST_ONCE\"")
            && refused::<DeliveryGuarantee>("\"at_least_once\"")
    );
    assert!(!refused::<OrderingScope>("\"KEY\"") && refused::<OrderingScope>("\"key\""));
    assert!(!refused::<RetryStrategy>("\"IN_PLACE\"") && refused::<RetryStrategy>("\"in_place\""));
    assert!(!refused::<OrderImpact>("\"PRESERVE\"") && refused::<OrderImpact>("\"preserve\""));
    assert!(!refused::<FailureCategory>("\"CAPACITY\"") && refused::<FailureCategory>("\"capacity\""));
    assert!(!refused::<SettlementLevel>("\"committed\"") && refused::<SettlementLevel>("\"COMMITTED\""));
    assert!(!refused::<Persistence>("\"flushed\"") && refused::<Persistence>("\"FLUSHED\""));
    assert!(!refused::<Basis>("\"observed\"") && refused::<Basis>("\"assumed\""));
    assert!(!refused::<Capability>("\"keyed_ordering\"") && refused::<Capability>("\"global_ordering\""));
    assert!(!refused::<TopologyMode>("\"verify\"") && refused::<TopologyMode>("\"alter\""));
    assert!(!refused::<Confirm>("\"none\"") && refused::<Confirm>("\"maybe\""));
    assert!(!refused::<Start>("\"latest\"") && refused::<Start>("\"now\""));
}

#[test]
fn illegal_names_are_refused_where_they_are_read() {
    for text in ["\"\"", "\".\"", "\"a..b\"", "\"a b\"", "\"a/b\"", "\"ä\"", "7", "null"] {
        assert!(refused::<DestinationName>(text), "{text}");
        assert!(refused::<GroupName>(text), "{text}");
        assert!(refused::<TransportName>(text), "{text}");
    }
    let long = format!("\"{}\"", "x".repeat(201));
    assert!(
        refused::<DestinationName>(&long) && refused::<GroupName>(&long) && refused::<TransportName>(&long)
    );
}

#[test]
fn an_attempt_of_zero_is_refused_where_it_is_read() {
    for text in ["0", "-1", "4294967296", "1.5", "\"1\"", "null"] {
        assert!(refused::<Attempt>(text), "{text}");
    }
    assert!(!refused::<Attempt>("1"));
}

#[test]
fn values_outside_their_range_are_refused_in_code_too() {
    assert!(MaxPayload::new(0).is_err() && MaxPayload::new(MaxPayload::LARGEST + 1).is_err());
    assert!(Timeout::new(Duration::from_nanos(1)).is_err() && Timeout::new(Duration::MAX).is_err());
    assert!(Delay::new(Duration::MAX).is_err());
    assert!(MessageId::new("").is_err() && MessageId::new("a b").is_err());
    assert!("offset:-1:0".parse::<MessagePosition>().is_err());
}

#[test]
fn native_settings_refuse_what_the_adapter_does_not_know() {
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Known {
        partitions: u32,
    }
    let known = NativeSettings::default().with("partitions", 4);
    assert_eq!(known.parse::<Known>().unwrap().partitions, 4);
    let mistyped = known.with("partition", 4).parse::<Known>().unwrap_err();
    assert!(mistyped.contains("partition"), "{mistyped}");
    assert!(refused::<NativeSettings>("[1]") && refused::<NativeSettings>("null"));
}

/// Passes only if none of the types implements the trait: if one did, the compiler could not tell which of the two
/// implementations is meant.
macro_rules! none_implements {
    ($bound:path: $($ty:ty),+ $(,)?) => {$({
        trait Ambiguous<Which> {
            fn proof() {}
        }
        impl<T: ?Sized> Ambiguous<()> for T {}
        struct Other;
        impl<T: ?Sized + $bound> Ambiguous<Other> for T {}
        <$ty as Ambiguous<_>>::proof();
    })+};
}

#[test]
fn no_outcome_and_no_evidence_is_read_from_text() {
    none_implements!(DeserializeOwned:
        consign_core_api::PublishOutcome,
        consign_core_api::Confirmation,
        consign_core_api::Rejection,
        consign_core_api::Ambiguity,
        consign_core_api::NotConfirmed,
        consign_core_api::SettlementOutcome,
        consign_core_api::settlement::SettlementEvidence,
        consign_core_api::settlement::SettlementUnknown,
        consign_core_api::outcome::ConfirmationEvidence,
        consign_core_api::spi::Acceptance,
        consign_core_api::spi::Refusal,
        consign_core_api::spi::PublishReply,
        consign_core_api::spi::SettlementReply,
    );
}

#[test]
fn a_duty_a_permit_and_a_state_are_never_doubled() {
    none_implements!(Clone:
        consign_core_api::spi::Completion<consign_core_api::spi::PublishReply>,
        consign_core_api::spi::Completion<consign_core_api::spi::SettlementReply>,
        consign_core_api::outcome::AttemptLog,
        consign_core_api::settlement::state::Received,
        consign_core_api::settlement::state::Decoding,
        consign_core_api::settlement::state::Processing,
        consign_core_api::settlement::state::HandlerSucceeded,
        consign_core_api::settlement::state::Failed,
        consign_core_api::settlement::state::SettlementSending,
        consign_core_api::settlement::state::SettlePermit,
    );
}

#[test]
fn a_value_that_says_how_something_ended_has_no_default() {
    none_implements!(Default:
        consign_core_api::PublishOutcome,
        consign_core_api::Confirmation,
        consign_core_api::Ambiguity,
        consign_core_api::SettlementOutcome,
        consign_core_api::settlement::SettlementEvidence,
        consign_core_api::outcome::ConfirmationEvidence,
        consign_core_api::spi::Acceptance,
        DeliveryGuarantee,
        OrderingScope,
    );
}
