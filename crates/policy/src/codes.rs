//! The codes of this crate: what keeps a set-up from starting, what is not admitted, what ends retries.

consign_core_api::codes! {
    PROFILE_SYNTAX:
        "the text of the profiles is no TOML, or has a field or a value that does not exist",
        "correct the line that is named; nothing else was checked";
    FIELD_OUT_OF_RANGE:
        "a single value is not legal where it stands",
        "write a value of the range that is named";
    TRANSPORT_UNBOUND:
        "a profile names a transport that is not bound",
        "bind a transport under this name, or correct the name";
    KEY_RESOLVER_UNREGISTERED:
        "a profile names a custom key resolver that is not registered",
        "register a resolver under this name, or take the key from elsewhere";
    PHYSICAL_NAME_COLLISION:
        "two profiles resolve to one physical name",
        "rename one of the destinations, or remove one of the profiles";
    KEY_ORDERING_WITHOUT_KEY_RESOLVER:
        "the ordering is KEY and no key is resolved",
        "say where the key comes from with `key`, or ask for another ordering";
    ORDERED_WITH_REORDERING_RETRY:
        "an order is asked for and the retry may reorder",
        "retry with the impact PRESERVE, or ask for no ordering";
    PRESERVE_WITH_REPUBLISHING_RETRY:
        "the retry should preserve the order and its strategy publishes the message again behind others",
        "retry IN_PLACE, or accept reordering with the impact ALLOW_REORDER";
    RETRY_DESTINATION_MISSING:
        "the strategy RETRY_DESTINATION has no destination",
        "name one with `retry.destination`, or choose another strategy";
    RETRY_DESTINATION_UNUSED:
        "a retry destination is named and the strategy never uses it",
        "remove `retry.destination`, or choose the strategy RETRY_DESTINATION";
    RETRY_ATTEMPTS_CONTRADICT_STRATEGY:
        "there is no strategy for more than one attempt, or a strategy and only one attempt",
        "match `retry.max_attempts`, which counts the first attempt too, and `retry.strategy`";
    BACKOFF_INVALID:
        "the first delay is zero or above the maximum, or the delays shrink",
        "choose 0 < `retry.first` <= `retry.max` and a multiplier of at least 1";
    AT_MOST_ONCE_WITH_RETRY:
        "AT_MOST_ONCE handles a message once and a retry is asked for",
        "choose the strategy NONE, or AT_LEAST_ONCE";
    AT_MOST_ONCE_WITH_INBOX:
        "AT_MOST_ONCE settles before the inbox could commit",
        "choose AT_LEAST_ONCE, or other side effects";
    AT_LEAST_ONCE_WITHOUT_CONFIRMATION:
        "AT_LEAST_ONCE is promised and no publish is confirmed",
        "require confirmation, or promise AT_MOST_ONCE";
    DESTINATION_ORDERING_WITH_CONCURRENCY:
        "the whole destination is one order and several handlers run at once",
        "set `consumer.concurrency` to 1, or ask for a narrower ordering";
    ORDERED_WITH_UNIT_CONCURRENCY:
        "an order is asked for and several messages of one ordering unit are in flight",
        "set `consumer.max_in_flight_per_ordering_unit` to 1, or ask for no ordering";
    IN_PLACE_HOLD_EXCEEDS_SETTLEMENT_DEADLINE:
        "a message that is retried in place may be held until the broker takes it back",
        "extend the settlement deadline, lengthen it, or retry less";
    INBOX_WITHOUT_MESSAGE_IDENTITY:
        "an inbox knows messages by their id and messages have none",
        "give messages an id with `message_id`, or choose other side effects";
    AT_MOST_ONCE_WITH_DEAD_LETTER:
        "AT_MOST_ONCE settles a message before it could be copied to its dead letter",
        "remove the dead letter, or choose AT_LEAST_ONCE";
    UNREGISTERED_DESTINATION:
        "a retry or a dead letter leads to a destination without a profile",
        "write a profile for it, or correct the name";
    DESTINATION_CYCLE:
        "retries and dead letters lead in a circle, in which a message would never end",
        "remove one of the edges of the path";
    RETRY_DESTINATION_SHARED:
        "a retry destination is reached from more than one place",
        "give each origin retry destinations of its own";
    MESSAGE_TOO_LARGE:
        "a message is larger with its key and headers than its destination takes, or than the byte limit of admission allows",
        "send less, or raise `publish.max_payload` and `admission.bytes`";
    SHUTTING_DOWN:
        "the library is being shut down and takes no new work of this kind",
        "send the message through another instance";
    DESTINATION_IN_FLIGHT_LIMIT_EXCEEDED:
        "as many publishes of the destination are in flight as `publish.in_flight` allows",
        "wait for outcomes before publishing more, or raise `publish.in_flight`";
    IN_FLIGHT_LIMIT_EXCEEDED:
        "as many messages or bytes are in flight in the whole process as admission allows, and none was returned in time",
        "publish less at once, or raise `admission.in_flight`, `admission.bytes` or `admission.wait`";
    ATTEMPTS_EXHAUSTED:
        "a message failed as often as `retry.max_attempts` allows",
        "look at the failure of the last attempt; allow more attempts if it goes away by itself";
    NOT_RETRIED:
        "a failure is of a kind that another attempt cannot mend, or the profile retries nothing",
        "look at the failure itself";
    DELIVERIES_EXHAUSTED:
        "the broker delivered a message more often than `consumer.max_deliveries` allows",
        "look for what ends the process or the handler without a result; the message was not handled again";
    HOLD_EXHAUSTED:
        "another attempt in place would outlast the settlement deadline, which is not extended, and giving the message back would break its order",
        "set `consumer.extend`, lengthen `consumer.settlement_deadline`, or retry sooner";
}
