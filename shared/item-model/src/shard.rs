//! Write sharding: one logical list spread over several index partitions.
//!
//! A DynamoDB partition takes about 1,000 writes a second. A list keyed by a status or a tier alone
//! would send every write of the list to one partition. So the partition key of the list contains
//! the number of a shard. The hash of the member's id selects the shard, so a later update computes
//! the same key without a read.
//!
//! ```
//! use item_model::key::PartitionKey;
//! use item_model::shard::Shards;
//!
//! const SHARDS: Shards = Shards(4);
//! let partition = |shard| PartitionKey::of("BOOKS", &[&shard]).unwrap();
//! let written = partition(SHARDS.of("book-1"));
//! let read: Vec<PartitionKey> = SHARDS.all().map(partition).collect();
//! assert!(read.len() == 4 && read.contains(&written));
//! ```

/// The number of shards of a list.
///
/// The number may be raised, because readers query all shards. An existing member stays in its
/// shard until its next write. During a deployment, old execution environments do not read the new
/// shards. So raising the number takes two deployments: first the readers, then the writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shards(pub u32);

impl Shards {
    /// Returns the shard of a member, from 0 on.
    #[must_use]
    pub fn of(self, member: &str) -> u32 {
        let shard = fnv1a(member.as_bytes()) % u64::from(self.0.max(1));
        u32::try_from(shard).unwrap_or(0)
    }

    /// Returns every shard, in order.
    pub fn all(self) -> impl Iterator<Item = u32> {
        0..self.0.max(1)
    }
}

/// Computes FNV-1a with 64 bits. The hash selects the partitions of stored items, so it must never
/// change. A hasher of a library might change.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
