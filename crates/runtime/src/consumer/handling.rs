//! How a consumer handles, erased: what the start checks, and what makes the pools.

use std::sync::Arc;

use consign_core_api::Codec;

use super::Handler;
use super::pool::{PoolFactory, plain};
use crate::inbox::{Inbox, InboxHandler, inbox_pools};

/// How a consumer handles.
pub(crate) struct Handling {
    pub(super) pools: PoolFactory,
    pub(super) protection: Protection,
}

/// What protects effects outside the broker from a second delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protection {
    None,
    Idempotent,
    Inbox,
}

impl Handling {
    /// With a plain handler.
    pub(crate) fn plain<T, H>(codec: Arc<dyn Codec<T>>, handler: H) -> Self
    where
        T: Send + 'static,
        H: Handler<T>,
    {
        let protection = if handler.is_idempotent() { Protection::Idempotent } else { Protection::None };
        Self { pools: plain(codec, handler), protection }
    }

    /// With an inbox.
    pub(crate) fn with_inbox<T, I, H>(codec: Arc<dyn Codec<T>>, inbox: I, handler: H) -> Self
    where
        T: Send + 'static,
        I: Inbox,
        H: InboxHandler<T, I::Tx>,
    {
        Self { pools: inbox_pools(codec, inbox, handler), protection: Protection::Inbox }
    }
}
