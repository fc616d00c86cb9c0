//! What a broker can do, in one configuration of one destination.
//!
//! An adapter answers in exactly one place. What it declares before connecting is what holds afterwards: an
//! observed difference is a refused start, never a second answer.

mod ordering;
mod record;
mod support;

pub use ordering::Ordering;
pub use record::{Capabilities, CapabilitiesBuilder, DeliveryCount, HeaderModel};
pub use support::{Capability, Support};
