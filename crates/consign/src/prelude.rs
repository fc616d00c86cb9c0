//! What most programs need. No enum's variants are exported.

pub use consign_core_api::{
    Ambiguity, BytesCodec, Codec, ConfigurationError, Confirmation, DeliveryGuarantee, EncodedMessage, Error,
    ExternalSideEffectGuarantee, Failure, FailureCategory, JsonCodec, Message, MessageId, MessagePosition,
    NotConfirmed, OrderingScope, PublishOutcome, Rejection, SettlementLevel, SettlementOutcome,
};
pub use consign_policy::{ProfileSpec, ProfileSpecs};
pub use consign_runtime::{
    Consumer, Delivery, Handler, HandlerContext, HandlerFailure, Messaging, Observed, Observer, Pipeline,
    Publisher, Receipt, RedriveOptions, RedriveReport, ShutdownReport, idempotent,
};
