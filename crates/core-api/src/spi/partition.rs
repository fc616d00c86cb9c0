//! Which partition a key belongs to: the one that Kafka's Java client would choose, on every broker.

use std::num::NonZeroU32;

const SEED: u32 = 0x9747_b28c;
const M: u32 = 0x5bd1_e995;

/// Chooses the partition of a key: its murmur2 hash, made positive by clearing the sign, modulo the number of
/// partitions. O(length of the key).
///
/// Source: `org.apache.kafka.clients.producer.internals.BuiltInPartitioner` and `org.apache.kafka.common.utils.Utils`.
#[must_use]
pub fn partition_of(key: &[u8], partitions: NonZeroU32) -> u32 {
    (murmur2(key) & 0x7fff_ffff) % partitions
}

fn murmur2(bytes: &[u8]) -> u32 {
    // The length is hashed modulo 2^32; a key is far shorter.
    #[expect(clippy::cast_possible_truncation, reason = "the hash is defined over 32 bits")]
    let mut hash = SEED ^ bytes.len() as u32;
    let (words, tail) = bytes.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !tail.is_empty() {
        for (i, byte) in tail.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * i);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_java_client() {
        for (key, hash) in [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(key.as_bytes()).cast_signed(), hash, "{key}");
        }
    }

    #[test]
    fn partitions_are_those_of_the_java_client() {
        let partitions = |n| NonZeroU32::new(n).unwrap();
        assert_eq!(partition_of(b"wu", partitions(10)), 0);
        assert_eq!(partition_of(b"100:48069", partitions(12)), 9);
        assert_eq!(partition_of(b"", partitions(1)), 0);
    }
}
