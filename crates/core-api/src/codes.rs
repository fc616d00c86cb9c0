//! The codes that this crate itself produces.

crate::codes! {
    CAPABILITY_UNAVAILABLE:
        "a profile or a call needs a capability that the transport does not have in this configuration",
        "choose another configuration of the destination, or ask for less";
    DECODE_FAILED:
        "a payload could not be decoded into the handler's type",
        "publish what the consumer's codec reads; the message went where `on_exhausted` sends it";
    ENCODE_FAILED:
        "the codec could not encode the value, so nothing was sent",
        "make the value encodable, or choose another codec";
    COMPLETION_DROPPED:
        "an adapter dropped a publish or a settlement without saying what became of it",
        "report it as a fault of the adapter; the outcome was told as unknown if bytes may have left";
    RESERVED_HEADER:
        "a message carries a header whose name begins with `consign-`",
        "rename the header; the prefix belongs to the library";
    HEADER_INVALID:
        "a header has an empty name",
        "give every header a name";
    TOMBSTONE_UNEXPECTED:
        "a handler required a value and the message is a tombstone",
        "use `value()` where tombstones are expected";
    HEADER_NOT_CARRIED:
        "a header cannot be carried by the broker as it is; adapters say which and why",
        "encode the value or rename the header; nothing is altered silently";
    PARTITION_NOT_CARRIED:
        "a message names a partition that the destination does not have",
        "name one below the number of partitions, or none";
    PUBLISH_QUEUE_FULL:
        "the destination's queue in this process is full",
        "publish less at once, or raise publish.in_flight";
    TRANSPORT_CLOSED:
        "the connection to the broker is closed",
        "publish before shutdown; another instance can send the same message";
    NATIVE_SETTINGS_INVALID:
        "the native settings of a destination have an unknown field, a wrong type or a value out of its range",
        "correct the field that the text names";
    TOPOLOGY_MISSING:
        "something that the destination needs does not exist at the broker",
        "create it, or use topology = \"declare\"";
    TOPOLOGY_MISMATCH:
        "what exists at the broker differs from what the profile says",
        "change one to match the other; the library never alters what is there";
    STALE_EPOCH:
        "a delivery was settled or given back after its unit had been lost",
        "nothing; the message is delivered again, to whoever owns the unit now";
}
