//! What JetStream can do for a destination: said here and nowhere else.

use std::num::NonZeroU16;

use consign_core_api::capability::{Capabilities, Capability, DeliveryCount, HeaderModel, Ordering, Support};
use consign_core_api::guarantee::OrderingScope;
use consign_core_api::outcome::{ConfirmationEvidence, Copies, Evidenced};
use consign_core_api::settlement::SettlementLevel;
use consign_core_api::spi::{DestinationSetup, TopologyMode};

use crate::profile::{NativeProfile, Storage};

/// Declares what JetStream can do for a destination that the validator found no fault with.
#[must_use]
pub fn capabilities(setup: &DestinationSetup) -> Capabilities {
    let native = NativeProfile::read(setup).map(|(native, _)| native).unwrap_or_default();
    let ordering = ordering(setup.ordering, native.partitions.is_some());
    let one_at_a_time = !matches!(ordering, Ordering::Unordered(_));
    let copies = copies(native.replicas.unwrap_or(1));
    // Where nobody looks at the stream, its replicas are only what the profile says.
    let copies = if setup.topology == TopologyMode::Trust {
        Evidenced::declared(copies)
    } else {
        Evidenced::observed(copies)
    };
    let evidence = ConfirmationEvidence::new(copies, Evidenced::declared(native.persistence()));
    let storage = match native.storage.unwrap_or_default() {
        Storage::File => Support::Native("file storage".into()),
        Storage::Memory => Support::Unsupported("memory storage dies with the server".into()),
    };
    Capabilities::builder(ordering)
        .with(Capability::DurableStorage, storage)
        .native(Capability::PublishConfirmation, "an acknowledgement from the stream")
        .native(Capability::ExplicitRefusal, "an error code from the stream, or no responders")
        .native(Capability::IndividualSettlement, "explicit acknowledgement, answered by the server")
        .native(Capability::Redelivery, "negative acknowledgement, or the end of ack_wait")
        .native(Capability::DelayedRedelivery, "negative acknowledgement with a delay")
        .unsupported(Capability::BrokerTransaction, "JetStream has none across publishes and settlements")
        .native(Capability::PublishDeduplication, "by message id, within the stream's window")
        .unsupported(
            Capability::NativeDeadLetter,
            "a message that was delivered too often gets stuck instead",
        )
        .native(Capability::ConsumerFlowControl, "pulls")
        .strongest_evidence(evidence)
        .settlement_level(SettlementLevel::Processed)
        .pipelined_order(true)
        .redelivery_keeps_order(one_at_a_time)
        .delivery_count(DeliveryCount::Counted)
        .deduplication_window(native.window())
        .headers(HeaderModel::new(false, true, false))
        .tombstones(true)
        .build()
}

/// An acknowledgement of a replicated stream means that a majority has the message.
pub(crate) fn copies(replicas: u32) -> Copies {
    let majority = u16::try_from(replicas / 2 + 1).ok().and_then(NonZeroU16::new);
    match majority {
        Some(min) if replicas > 1 => Copies::Quorum { min },
        _ => Copies::Leader,
    }
}

fn ordering(asked: OrderingScope, partitioned: bool) -> Ordering {
    match (asked, partitioned) {
        (OrderingScope::None, _) => Ordering::Unordered("several deliveries are out at once".into()),
        (OrderingScope::Destination, false) => {
            Ordering::Destination(Support::Native("one delivery at a time".into()))
        }
        (OrderingScope::Destination, true) => {
            Ordering::Partition(Support::Emulated("one subject and durable per partition".into()))
        }
        (_, true) => Ordering::Key(Support::Emulated("one subject and durable per partition of keys".into())),
        (_, false) => {
            Ordering::Unordered("set native.partitions to spread keys over ordered subjects".into())
        }
    }
}

#[cfg(test)]
mod tests {
    use consign_core_api::guarantee::DeliveryGuarantee;
    use consign_core_api::name::DestinationName;
    use consign_core_api::spi::NativeSettings;

    use super::*;

    fn of(ordering: OrderingScope, native: NativeSettings) -> Capabilities {
        let name = DestinationName::new("orders").unwrap();
        let mut setup = DestinationSetup::new(name, DeliveryGuarantee::AtLeastOnce, ordering);
        setup.native = native;
        capabilities(&setup)
    }

    #[test]
    fn keys_are_ordered_only_over_partitions() {
        let partitions = || NativeSettings::default().with("partitions", 4);
        for scope in [OrderingScope::Key, OrderingScope::Partition] {
            assert!(!of(scope, NativeSettings::default()).ordering().keeps(scope));
            assert!(of(scope, partitions()).ordering().keeps(scope));
        }
        let destination = OrderingScope::Destination;
        assert!(of(destination, NativeSettings::default()).ordering().keeps(destination));
        assert!(!of(destination, partitions()).ordering().keeps(destination));
    }

    #[test]
    fn memory_storage_is_not_durable_and_transactions_do_not_exist() {
        let plain = of(OrderingScope::None, NativeSettings::default());
        assert!(plain.has(Capability::DurableStorage) && !plain.has(Capability::BrokerTransaction));
        let memory = of(OrderingScope::None, NativeSettings::default().with("storage", "memory"));
        assert!(!memory.has(Capability::DurableStorage));
    }

    #[test]
    fn a_quorum_is_more_than_half() {
        let min = |n| Copies::Quorum { min: NonZeroU16::new(n).unwrap() };
        assert_eq!([0, 1].map(copies), [Copies::Leader; 2]);
        assert_eq!([2, 3, 4, 5].map(copies), [min(2), min(2), min(3), min(3)]);
    }
}
