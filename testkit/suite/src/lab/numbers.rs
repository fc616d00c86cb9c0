//! Numbered messages.

use std::future::Future;

use bytes::Bytes;
use consign_core_api::{EncodedMessage, Message, MessageId, PublishOutcome};
use consign_runtime::Messaging;
use serde::{Deserialize, Serialize};

use super::Lab;
use crate::case::CaseError;

/// What cases publish where the content does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a number on the wire")]
pub struct Number {
    /// The number.
    pub n: u64,
}

/// Returns the number of a stored message; `None` where it carries none.
#[must_use]
pub fn number_of(message: &EncodedMessage) -> Option<u64> {
    let bytes = message.payload().as_bytes()?;
    serde_json::from_slice::<Number>(bytes).ok().map(|number| number.n)
}

/// Returns the key of a stored message as text; empty without a key.
#[must_use]
pub fn key_of(key: Option<&Bytes>) -> String {
    key.map(|key| String::from_utf8_lossy(key).into_owned()).unwrap_or_default()
}

impl Number {
    /// Makes a message of a number, with a key and an id, which every profile accepts.
    pub fn message(n: u64, key: &str) -> Message<Self> {
        Message::new(Self { n }).key(key).id(MessageId::generate())
    }
}

impl Lab {
    /// Publishes numbers under one key, one after another, each CONFIRMED.
    ///
    /// # Errors
    /// If one is not.
    pub async fn publish(
        &self,
        messaging: &Messaging,
        destination: &str,
        key: &str,
        numbers: impl IntoIterator<Item = u64>,
    ) -> Result<Vec<MessageId>, CaseError> {
        let publisher = messaging.publisher::<Number>(destination)?;
        let mut ids = Vec::new();
        for n in numbers {
            let message = Number::message(n, key);
            ids.extend(message.parts().id.clone());
            let outcome = self.within("publishing", publisher.publish(message)).await?;
            if !outcome.is_confirmed() {
                return Err(CaseError::new(format!("number {n} ended {outcome}")));
            }
        }
        Ok(ids)
    }

    /// Waits for an outcome that must be CONFIRMED.
    ///
    /// # Errors
    /// If it is not.
    pub async fn confirmed(
        &self,
        publish: impl Future<Output = PublishOutcome>,
    ) -> Result<consign_core_api::Confirmation, CaseError> {
        let outcome = self.within("publishing", publish).await?;
        outcome.into_result().map_err(CaseError::from)
    }

    /// Reads the numbers that a destination holds, not through the adapter.
    ///
    /// # Errors
    /// Why they could not be read.
    pub async fn stored_numbers(&self, destination: &str) -> Result<Vec<u64>, CaseError> {
        let stored = self.stored(destination).await?;
        Ok(stored.iter().filter_map(|stored| number_of(&stored.message)).collect())
    }
}
