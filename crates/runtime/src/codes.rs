//! The codes that the runtime produces.

consign_core_api::codes! {
    DEADLINE_BEFORE_TRANSMISSION:
        "the publish deadline passed while the message was still waiting here; it was never sent",
        "raise publish.deadline, or send less at once";
    CONFIRMATION_TIMED_OUT:
        "the publish deadline passed after the message was handed over and before the broker answered",
        "treat the message as possibly stored; raise publish.deadline if the broker is merely slow";
    CONFIRMATION_NOT_REQUESTED:
        "the profile asks for no confirmation, so nobody knows whether the message arrived",
        "set publish.confirmation to required where that matters";
    EVIDENCE_BELOW_DEMAND:
        "the broker accepted the message with weaker evidence than the profile demands",
        "restore the broker's replicas, or demand less";
    SHUT_DOWN:
        "the library shut down before the broker answered",
        "give shutdown a longer deadline";
    SHUT_DOWN_BEFORE_TRANSMISSION:
        "the library shut down while the message was still waiting here; it was never sent",
        "publish before shutdown";
    SLOTS_EXHAUSTED:
        "too many publishes are still held after their verdict: by a client that may yet send them, or by receipts that nobody took",
        "take the receipts; or wait until the connection is back, since the client's residue is bounded";
    KEY_CONFLICT:
        "a message carries an explicit key that differs from the one that the profile's resolver found",
        "set no key, or the same one";
    KEY_UNRESOLVED:
        "the profile's key resolver found no key in the message",
        "put the key where the profile says it is";
    MESSAGE_ID_UNRESOLVED:
        "the profile takes the message id from a header that is missing or no legal id",
        "set the header to 1 to 200 visible ASCII characters";
    MESSAGE_ID_MISSING:
        "an inbox or an idempotent handler needs a message id and the message has none",
        "publish with ids, or take the id from a header";
    TRANSPORT_BOUND_TWICE:
        "two transports are bound under one name",
        "bind each name once";
    TRANSPORT_UNREACHABLE:
        "a transport could not connect within the bound",
        "look whether the broker is up, and at address and credentials";
    PREFLIGHT_TIMED_OUT:
        "the broker did not answer a question about its configuration within the bound",
        "look whether the broker is up, or raise the connect timeout";
    WINDOW_OUT_OF_RANGE:
        "a pipeline's window is zero or above the profile's publish.in_flight",
        "choose a window within the limit, or raise the limit";
    DESTINATION_UNKNOWN:
        "a call names a destination that no profile registers",
        "add a profile of that name";
    HANDLER_PANICKED:
        "a handler panicked",
        "fix the handler; the message is retried as its profile says";
    HANDLER_TIMED_OUT:
        "a handler ran longer than consumer.handler_timeout",
        "raise the timeout or make the handler faster; the message is retried as its profile says";
    HANDLER_FAILED:
        "a handler returned a plain error",
        "return HandlerFailure with a code of its own where that helps";
    MAX_DELIVERIES_EXCEEDED:
        "the broker delivered the message more often than consumer.max_deliveries allows",
        "find out why its handler never finishes; the message went where on_exhausted sends it";
    STALE_SETTLEMENT:
        "a handler finished after its unit was revoked or its delivery was interrupted",
        "expect the message again";
    SETTLEMENT_TIMED_OUT:
        "the broker did not answer a settlement in time",
        "expect the message again";
    SETTLEMENT_BELOW_DEMAND:
        "the broker settled with a weaker level than the profile demands",
        "demand less, or use a configuration that proves more";
    INBOX_NOT_CONFIGURED:
        "a destination with side_effects INBOX_TRANSACTIONAL is consumed without an inbox",
        "use consume_with_inbox";
    HANDLER_NOT_IDEMPOTENT:
        "a destination with side_effects IDEMPOTENCY_REQUIRED is consumed by a handler that was not registered as idempotent",
        "wrap the handler in idempotent(..) if it is";
    INBOX_FAILED:
        "the inbox could not begin or commit",
        "look at the application's store; the message is retried as its profile says";
    GROUP_INVALID:
        "a group's name is not legal",
        "use 1 to 100 letters, digits, `_` or `-`";
    RUNG_NOT_CONSUMABLE:
        "a retry destination cannot be consumed by itself",
        "consume its origin; the consumer reads the retry destination too";
    COPY_NOT_CONFIRMED:
        "a retry or dead-letter copy was not confirmed, so its source stays unsettled",
        "look at the destination of the copy";
    NOT_A_DEAD_LETTER:
        "a redrive was asked of a destination that is nobody's dead letter",
        "name a dead-letter destination";
    REDRIVE_REORDERS:
        "a redrive would put messages back into an ordered destination out of their order",
        "allow it with allow_reorder";
    IDLE_TIMED_OUT:
        "a consumer did not become idle within the bound",
        "wait longer, or look at what keeps it busy";
    COPY_OF_ANOTHER_GROUP:
        "a retry copy or a redriven message is for another group and was passed over",
        "nothing; the other group handles it";
    HANDLER_CUT_SHORT:
        "a consumer stopped before a handler had finished, under AT_MOST_ONCE, so the message is not handled again",
        "give the stop a longer deadline, or use AT_LEAST_ONCE";
    CONSUMER_STOPPED:
        "a consumer was asked for something after it had ended",
        "start a new one";
    UNIT_HALTED:
        "an ordering unit stands still, unsettled: a message failed for good and has nowhere to go",
        "look at the failure; name a dead letter, or start the consumer anew when the cause is gone";
    SUBSCRIPTION_FAILED:
        "the broker did not let a group subscribe",
        "look at the broker, at its permissions and at the destination's topology";
    INBOX_CONFLICT:
        "two transactions of the in-memory inbox would commit one message id",
        "nothing; the message is tried again and recognised";
}
