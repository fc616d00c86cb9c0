//! The client itself, for what the seam does not offer.

use std::sync::{Arc, Mutex, PoisonError};

/// Gives the client of a transport once it is connected. Cloning is cheap.
///
/// What is done through it is not seen by the library: no outcome, no admission, no shutdown.
#[derive(Clone, Debug, Default)]
pub struct NativeHandle(Arc<Mutex<Option<async_nats::Client>>>);

impl NativeHandle {
    /// Returns the client; `None` before the transport is connected.
    #[must_use]
    pub fn client(&self) -> Option<async_nats::Client> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn put(&self, client: async_nats::Client) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(client);
    }
}
