//! Write sharding: one logical list spread over several index partitions.
//!
//! A partition of DynamoDB takes about 1,000 writes a second. A list keyed by a status or a tier alone would
//! push every write of the shop through one partition, so its key carries a shard computed from the member's
//! id. It is computed, not random, so that a later update states the same key again without reading it.

/// How many shards a list has. Readers visit all of them, so the number may be raised: members written before stay where they are and are
/// still found, until their next write moves them. While environments of both numbers run, the old ones do not read the new shards, so a
/// raise is rolled out in two steps: readers first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shards(pub u32);

impl Shards {
    /// The shard of a member, from 0.
    #[must_use]
    pub fn of(self, member: &str) -> u32 {
        let shard = fnv1a(member.as_bytes()) % u64::from(self.0.max(1));
        u32::try_from(shard).unwrap_or(0)
    }

    /// Every shard, in order.
    pub fn all(self) -> impl Iterator<Item = u32> {
        0..self.0.max(1)
    }
}

/// FNV-1a, 64 bits. It decides where items lie for ever, so it is written out here rather than taken from a
/// library's or the standard library's hasher, which may change.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
