//! The codes that the embedded broker produces.

consign_core_api::codes! {
    NATIVE_SETTING_INVALID:
        "a setting under `native` is unknown to the embedded broker, of the wrong kind or out of its range",
        "correct the setting that the report names";
    SCRIPT_INVALID:
        "a script of faults names an index zero, an index twice, a delay above 30 days or an illegal destination",
        "correct the script; indices count from 1 and each has one fault";
    TOPOLOGY_MISMATCH:
        "the destination exists already, or its group does, with other settings than the set-up asks for",
        "give every set-up of the destination on this broker the same partitions, capacity, window and ordering";
    PARTITION_OUT_OF_RANGE:
        "a message asks for a partition that the destination does not have",
        "choose a partition below the destination's number of partitions, or none";
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
    IN_MEMORY_CLOSED:
        "the connection is closed",
        "connect again";
    IN_MEMORY_RESTARTED:
        "the broker was restarted while the answer was outstanding",
        "publish again if a duplicate is acceptable; unsettled deliveries come again by themselves";
    IN_MEMORY_INTERRUPTED:
        "the stream of deliveries was interrupted by a test or by chaos",
        "nothing; unsettled deliveries come again by themselves";
    STALE_EPOCH:
        "a delivery was settled or given back after its unit had been lost",
        "nothing; the message is delivered again, to whoever owns the unit now";
    DELIVERY_NOT_OUTSTANDING:
        "a delivery was settled or given back that is not outstanding: it was answered already, or came again",
        "answer each delivery once";
}
