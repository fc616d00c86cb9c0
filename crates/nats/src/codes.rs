//! The codes that this adapter produces. Those that adapters share come from the core.

pub use consign_core_api::codes::{
    HEADER_NOT_CARRIED, NATIVE_SETTINGS_INVALID, PARTITION_NOT_CARRIED, PUBLISH_QUEUE_FULL,
    TOPOLOGY_MISMATCH, TOPOLOGY_MISSING, TRANSPORT_CLOSED,
};

consign_core_api::codes! {
    PAYLOAD_ABOVE_SERVER_LIMIT:
        "payload and headers together are larger than the server's max_payload",
        "send less, or raise max_payload on the server";
    NATS_NO_STREAM:
        "nobody answers on the subject: there is no stream for it, or it has no leader right now",
        "create the stream, or try again once the cluster has a leader";
    NATS_FOREIGN_ACKNOWLEDGEMENT:
        "somebody else than the expected stream answered a publish",
        "find the service or the stream that listens on the destination's subject";
    NATS_ANSWER_UNREADABLE:
        "the answer to a publish or a settlement is not one that a stream gives",
        "find the service that listens on the destination's subject";
    NATS_ERROR_UNRECOGNISED:
        "the server answered with an error of which this version cannot tell whether the message was stored",
        "look the error up; treat the message as possibly stored";
    NATS_DUPLICATE_IN_PROCESS:
        "an earlier attempt with the same message id is being stored right now",
        "send it again under the same id";
    NATS_WRONG_STREAM:
        "the stream behind the subject is not the one that native.stream names",
        "correct native.stream";
    NATS_MESSAGE_TOO_LARGE:
        "the stream refuses a message or a header of this size",
        "send less, or raise the stream's max_message_size";
    NATS_STREAM_FULL:
        "the stream is at a limit and discards new messages",
        "let consumers catch up, or raise the limit";
    NATS_RESOURCES_EXHAUSTED:
        "the server or the account is at a limit of storage, memory or requests",
        "free space, or raise the limit";
    NATS_STREAM_SEALED:
        "the stream is sealed and takes no message any more",
        "use another stream";
    NATS_JETSTREAM_DISABLED:
        "JetStream is not enabled for the server or the account",
        "enable it";
    NATS_UNAVAILABLE:
        "the stream is offline or the cluster cannot take the message now",
        "try again later";
    NATS_PRECONDITION_FAILED:
        "an expectation about the last sequence or the last message id does not hold",
        "read the current state and decide anew";
    NATS_FEATURE_REFUSED:
        "the stream does not take a feature that the message asks for",
        "enable the feature on the stream, or do not ask for it";
    NATS_STORE_FAILED:
        "the stream reports that storing failed; replicas may have it nevertheless",
        "treat the message as possibly stored";
    NATS_NO_ANSWER:
        "the server did not answer in time",
        "look at server and network; publishes may be stored, settlements may come again";
    NATS_CONSUMER_GONE:
        "nobody owns the delivery any more: its consumer was deleted or has no leader",
        "expect the message again";
    NATS_STALE_DELIVERY:
        "a delivery of an interrupted subscription, or one that was settled already, cannot be settled",
        "expect the message again";
    NATS_SETTLEMENT_QUEUE_FULL:
        "more settlements wait in this process than deliveries may be outstanding",
        "report it as a fault of the adapter";
    NATS_DISCONNECTED:
        "the connection to the server was lost or changed; it is being rebuilt",
        "look at server and network";
    NATS_PULL_ENDED:
        "the server ended a pull: the consumer was deleted, lost its leader, or refuses the request",
        "see the status in the text; the subscription is being rebuilt";
    NATS_SUBSCRIPTION_FAILED:
        "a subscription could not be rebuilt; it is tried again",
        "see the text";
    NATS_HEARTBEAT_MISSED:
        "the server sent neither a message nor a heartbeat for too long",
        "look at server and network; the subscription is being rebuilt";
    NATS_CONNECT_FAILED:
        "no server could be reached, or none answered in time",
        "check the addresses and the network";
    NATS_AUTHENTICATION_FAILED:
        "the server refused the credentials, or they could not be read",
        "check the credentials";
    NATS_CONFIG_INVALID:
        "the connection settings cannot be used",
        "correct the settings that the text names";
    NATS_REQUEST_FAILED:
        "the server did not answer a request about streams or consumers, or refused it",
        "see the text";
    NATS_STREAM_NAME_ILLEGAL:
        "a stream or durable name has a character that JetStream does not allow there, or native.stream is missing for a destination whose name has a dot",
        "set native.stream to a name of letters, digits, _ and -";
    NATS_SETTING_OUT_OF_RANGE:
        "a native setting is out of its range",
        "use a value in the range that the text names";
    NATS_CONFIRMED_MAY_VANISH:
        "the stream may drop messages that it has confirmed: by age, by a limit with discard = \"old\", or because it keeps only what a consumer is interested in",
        "remove the limit, use discard = \"new\", or accept it by writing the same limit into the native settings";
    NATS_STREAM_DOES_NOT_CONFIRM:
        "the stream is set not to acknowledge, or to acknowledge before it stores",
        "unset no_ack, or persist_mode = \"async\"";
}
