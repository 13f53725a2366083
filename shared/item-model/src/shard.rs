//! Write sharding: one logical list spread over several index partitions.
//!
//! A DynamoDB partition takes about 1,000 writes a second. A list keyed by a status or a tier alone
//! would send every write of the list to one partition. So the partition key of the list contains
//! the number of a shard. The hash of a list member's id selects the shard, so a later update
//! computes the same key without a read.
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

use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// The maximum number of shards of a list whose number of shards may change. A read of one page
/// queries every shard.
pub const MAX_SHARDS: u32 = 64;

/// The number of shards of a list.
///
/// The number may be raised, because readers query all shards. An existing member stays in its
/// shard until its next write. During a deployment, old execution environments do not read the new
/// shards. So raising the number takes two deployments: the first of the readers, the second of the
/// writers. A [`Layout`] changes the number without a deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Shards(pub u32);

impl fmt::Display for Shards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Shards {
    /// Returns the shard of a member, from 0 on.
    #[must_use]
    pub fn of(self, member: &str) -> u32 {
        let shard = fnv1a(member.as_bytes()) % u64::from(self.0.max(1));
        u32::try_from(shard).unwrap_or(0)
    }

    pub fn all(self) -> impl Iterator<Item = u32> {
        0..self.0.max(1)
    }
}

/// The shards of a list whose number of shards may change while functions use the list.
///
/// A member carries the number of shards with which its key was computed, so old and new keys exist
/// beside each other. During a change, members move from their old shard to their new shard. One of
/// the two numbers of shards divides the other. So a member either keeps its shard, or moves from
/// one group of shards to another group. [`Layout::steps`] returns both groups. A reader that reads
/// the first group to its end, and then the second, misses no member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// The number of shards before the change.
    pub from: Shards,
    /// The number of shards after the change.
    pub to: Shards,
    /// The number of shards for new members: either `from` or `to`.
    pub write: Shards,
}

impl Layout {
    /// Returns the layout of a list whose number of shards does not change at present.
    #[must_use]
    pub const fn stable(shards: Shards) -> Self {
        Self { from: shards, to: shards, write: shards }
    }

    /// Returns whether the number of shards does not change at present.
    #[must_use]
    pub fn is_stable(&self) -> bool {
        self.from == self.to
    }

    /// Returns whether members whose keys were computed with this number of shards may exist.
    #[must_use]
    pub fn has(&self, shards: Shards) -> bool {
        shards == self.from || shards == self.to
    }

    /// Returns the shards that members may leave, and the other shards. In a stable layout, the
    /// first group is empty.
    #[must_use]
    pub fn steps(&self) -> [Range<u32>; 2] {
        let [from, to] = [self.from, self.to].map(|shards| shards.0.clamp(1, MAX_SHARDS));
        match from.cmp(&to) {
            Ordering::Equal => [0..0, 0..to],
            Ordering::Less => [0..from, from..to],
            Ordering::Greater => [to..from, 0..to],
        }
    }
}

/// Computes FNV-1a with 64 bits. The hash selects the partitions of stored items, so it must never
/// change. A hasher of a library might change.
#[must_use]
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
