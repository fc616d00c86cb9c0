//! The handlers of an inbox: begin, handle, commit, as one future under one timeout.

use std::sync::Arc;

use consign_core_api::{Codec, Failure, FailureCategory};

use super::{Begin, Inbox, InboxHandler, InboxKey};
use crate::codes;
use crate::consumer::{HandlerFailure, Job, PoolFactory, decode, new_pool};

pub(crate) fn inbox_pools<T, I, H>(codec: Arc<dyn Codec<T>>, inbox: I, handler: H) -> PoolFactory
where
    T: Send + 'static,
    I: Inbox,
    H: InboxHandler<T, I::Tx>,
{
    let (inbox, handler) = (Arc::new(inbox), Arc::new(handler));
    Arc::new(move || {
        let (codec, inbox, handler) = (Arc::clone(&codec), Arc::clone(&inbox), Arc::clone(&handler));
        new_pool(move |job: &Job| {
            let id = job.content.message.id().cloned().ok_or_else(without_id)?;
            let delivery = decode(codec.as_ref(), &job.content)?;
            let (inbox, handler, context) = (Arc::clone(&inbox), Arc::clone(&handler), job.context.clone());
            let key = InboxKey::new(context.destination().clone(), context.group().clone(), id);
            Ok(async move {
                let tx = match inbox.begin(&key).await.map_err(|error| failed("begin", error))? {
                    Begin::Fresh(tx) => tx,
                    Begin::Duplicate => return Ok(()),
                };
                let tx = handler.handle(delivery, tx, context).await?;
                inbox.commit(tx).await.map_err(|error| failed("commit", error))
            })
        })
    })
}

fn failed<E: std::error::Error + Send + Sync + 'static>(what: &str, error: E) -> HandlerFailure {
    let text = format!("the inbox could not {what}: {error}");
    let failure = Failure::new(FailureCategory::TransientInfrastructure, codes::INBOX_FAILED, text);
    HandlerFailure::from_failure(failure.with_source(error))
}

fn without_id() -> Failure {
    Failure::new(
        FailureCategory::PermanentBusiness,
        codes::MESSAGE_ID_MISSING,
        "the message has no id, and an inbox knows messages by their id",
    )
}
