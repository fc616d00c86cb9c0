//! Messages to and from what NATS carries: text headers and a payload.
//!
//! NATS has no key, no tombstone and no client timestamp; they travel in the headers of
//! [`reserved`](consign_core_api::message::reserved). Header names that begin with `Nats-` belong to the server: some
//! change what it does with a message, so they are refused on the way out and left out on the way in.

mod decode;
mod encode;

pub(crate) use decode::decode;
pub(crate) use encode::{Uncarried, encode};

/// Whether a header name belongs to the server. Case does not matter here, although it does to the server.
fn is_servers(name: &str) -> bool {
    name.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("nats-"))
}
