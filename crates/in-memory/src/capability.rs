//! What the embedded broker can do, said in one place.

use consign_core_api::capability::{Capabilities, Capability, DeliveryCount, HeaderModel, Ordering, Support};
use consign_core_api::spi::DestinationSetup;
use consign_core_api::{OrderingScope, SettlementLevel};

use crate::config::Settings;
use crate::outcome::EVIDENCE;

/// Declares the capabilities of one destination configuration.
pub(crate) fn capabilities(setup: &DestinationSetup, settings: &Settings) -> Capabilities {
    let one_partition = settings.partitions.get() == 1;
    let ordered = setup.ordering.is_ordered();
    let ordering = match setup.ordering {
        OrderingScope::None => Ordering::Unordered("the members of a group compete for each message".into()),
        OrderingScope::Destination if one_partition => {
            Ordering::Destination(Support::Native("one partition, which one member owns".into()))
        }
        _ => Ordering::Key(Support::Native("each partition is owned by one member, keys by murmur2".into())),
    };
    let record = Capabilities::builder(ordering)
        .unsupported(Capability::DurableStorage, "messages live in the process and die with it")
        .native(Capability::PublishConfirmation, "answered once the message is in the log")
        .native(Capability::ExplicitRefusal, "a full destination refuses")
        .native(Capability::IndividualSettlement, "per offset, in any order")
        .native(Capability::Redelivery, redelivery_note(ordered))
        .native(Capability::DelayedRedelivery, "from 0 to 30 days; a longer delay becomes 30 days")
        .unsupported(Capability::BrokerTransaction, "none")
        .unsupported(Capability::NativeDeadLetter, "none; the runtime's copies do it")
        .native(
            Capability::ConsumerFlowControl,
            "pulled, bounded by the outstanding deliveries, pause per unit",
        )
        .strongest_evidence(EVIDENCE)
        // A settlement is applied before it is answered, and lost with the process.
        .settlement_level(SettlementLevel::Processed)
        .pipelined_order(true)
        .redelivery_keeps_order(ordered)
        .delivery_count(DeliveryCount::Counted)
        .headers(HeaderModel::FULL)
        .tombstones(true);
    match settings.deduplication_window {
        Some(window) => record
            .native(Capability::PublishDeduplication, "by message id, within the window")
            .deduplication_window(window)
            .build(),
        None => record
            .unsupported(Capability::PublishDeduplication, "`native.deduplication_window` is not set")
            .build(),
    }
}

const fn redelivery_note(ordered: bool) -> &'static str {
    if ordered {
        "at its place: before every later message of its partition that is not handed out yet"
    } else {
        "after its delay, beside later messages"
    }
}

#[cfg(test)]
mod tests {
    use consign_core_api::spi::NativeSettings;
    use consign_core_api::{DeliveryGuarantee, DestinationName};

    use super::*;

    fn declared(ordering: OrderingScope, native: NativeSettings) -> Capabilities {
        let name = DestinationName::new("orders").unwrap();
        let mut setup = DestinationSetup::new(name, DeliveryGuarantee::AtLeastOnce, ordering);
        setup.native = native;
        capabilities(&setup, &Settings::read(&setup).unwrap())
    }

    #[test]
    fn a_destination_is_one_sequence_only_with_one_partition() {
        let many = NativeSettings::default().with("partitions", 4);
        let scope = OrderingScope::Destination;
        assert!(declared(scope, NativeSettings::default()).ordering().keeps(scope));
        assert!(!declared(scope, many.clone()).ordering().keeps(scope));
        for scope in [OrderingScope::Partition, OrderingScope::Key] {
            assert!(declared(scope, many.clone()).ordering().keeps(scope));
            assert!(declared(scope, NativeSettings::default()).ordering().keeps(scope));
        }
    }

    #[test]
    fn competing_members_promise_no_order() {
        let record = declared(OrderingScope::None, NativeSettings::default());
        assert!(!record.has(Capability::OrderedStream) && !record.redelivery_keeps_order());
    }

    #[test]
    fn deduplication_is_declared_only_with_a_window() {
        let capability = Capability::PublishDeduplication;
        assert!(!declared(OrderingScope::None, NativeSettings::default()).has(capability));
        let record =
            declared(OrderingScope::None, NativeSettings::default().with("deduplication_window", "1s"));
        assert!(record.has(capability) && record.deduplication_window().is_some());
    }

    #[test]
    fn every_capability_is_answered() {
        let record = declared(OrderingScope::Key, NativeSettings::default());
        for capability in Capability::ALL {
            assert_ne!(record.support(capability).note(), "not declared", "{capability}");
        }
    }
}
