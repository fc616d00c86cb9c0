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
}
