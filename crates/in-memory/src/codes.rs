//! The codes that the embedded broker produces. Those that adapters share come from the core.

pub use consign_core_api::codes::{
    NATIVE_SETTINGS_INVALID, PARTITION_NOT_CARRIED, STALE_EPOCH, TOPOLOGY_MISMATCH, TRANSPORT_CLOSED,
};

consign_core_api::codes! {
    SCRIPT_INVALID:
        "a script of faults names an index zero, an index twice, a delay above 30 days or an illegal destination",
        "correct the script; indices count from 1 and each has one fault";
    IN_MEMORY_FULL:
        "the destination holds as many unsettled messages, or recognises as many ids, as its capacity allows",
        "let every group settle what is there, or raise `native.capacity`";
    IN_MEMORY_REFUSED:
        "a script or chaos made the broker refuse the message",
        "nothing; the fault was asked for";
    IN_MEMORY_UNROUTABLE:
        "a script made the broker find nowhere to put the message",
        "nothing; the fault was asked for";
    IN_MEMORY_REPLY_LOST:
        "a script or chaos lost the broker's reply",
        "nothing; the fault was asked for";
    IN_MEMORY_DOWN:
        "the broker was made unreachable",
        "make it reachable again with `Broker::set_down(false)`";
    IN_MEMORY_RESTARTED:
        "the broker was restarted while the answer was outstanding",
        "publish again if a duplicate is acceptable; unsettled deliveries come again by themselves";
    IN_MEMORY_INTERRUPTED:
        "the stream of deliveries was interrupted by a test or by chaos",
        "nothing; unsettled deliveries come again by themselves";
    DELIVERY_NOT_OUTSTANDING:
        "a delivery was settled or given back that is not outstanding: it was answered already, or came again",
        "answer each delivery once";
}
