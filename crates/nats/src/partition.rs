//! Which partition a key belongs to.

use std::num::NonZeroU32;

use consign_core_api::spi::partition_of;

/// Returns the partition of a key, below `partitions`; zero is read as one. O(length of the key).
pub(crate) fn of_key(key: &[u8], partitions: u32) -> u32 {
    partition_of(key, NonZeroU32::new(partitions).unwrap_or(NonZeroU32::MIN))
}
