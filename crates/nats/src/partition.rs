//! Which partition a key belongs to: the same one that Kafka's Java client would choose.

/// Returns the partition of a key, below `partitions`. O(length of the key).
pub(crate) fn of_key(key: &[u8], partitions: u32) -> u32 {
    (murmur2(key) & 0x7fff_ffff) % partitions.max(1)
}

/// MurmurHash 2, 32 bits, in the variant and with the seed of Kafka's Java client.
fn murmur2(data: &[u8]) -> u32 {
    const SEED: u32 = 0x9747_b28c;
    const M: u32 = 0x5bd1_e995;
    // Lengths above `u32::MAX` wrap as they do there; a key is far shorter.
    #[expect(clippy::cast_possible_truncation, reason = "the algorithm is defined on the low 32 bits")]
    let mut hash = SEED ^ (data.len() as u32);
    let (words, rest) = data.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !rest.is_empty() {
        for (i, byte) in rest.iter().enumerate() {
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
    fn keys_land_where_kafkas_java_client_puts_them() {
        // Hashes from the unit tests of Kafka's own client.
        for (key, hash) in [
            ("21", -973_932_308_i32),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
        ] {
            assert_eq!(murmur2(key.as_bytes()).cast_signed(), hash, "{key}");
        }
        assert_eq!(of_key(b"wu", 10), 0);
        assert_eq!(of_key(b"100:48069", 12), 9);
    }

    #[test]
    fn every_partition_is_below_the_count_and_zero_does_not_panic() {
        for n in 0..300_u32 {
            assert!(of_key(&n.to_le_bytes(), 7) < 7);
        }
        assert_eq!(of_key(b"", 0), 0);
    }
}
