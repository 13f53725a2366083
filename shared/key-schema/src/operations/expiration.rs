//! The audit of expirations: one permanent entry for each expired session, cart or order that was
//! removed. The other items of an order have no entry.
//!
//! The entries of a day are in a few partitions named after that day. An entry's key is derived
//! from the stream record of the removal, and an existing entry is never replaced. So a record that
//! is delivered twice gives one entry.
//!
//! Because an entry is permanent, it names no customer. It identifies the item by the hash of its
//! key, which every reader who knows the key can compute. It also names the archive object that
//! holds the item. The bucket deletes that object after its retention time.

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use crate::encoding::join;
use crate::expression::Condition;
use crate::id::{Born, IdError};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::pattern::Consistency;
use crate::request::{Guarded, Query, Range, Single};
use crate::shard::Shards;

/// The shards of a day. DynamoDB removes expired items in bursts.
pub const SHARDS: Shards = Shards(4);

/// The identity that removed an item with a time to live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RemovedBy {
    /// DynamoDB, after the item's time to live.
    Ttl,
    /// An unknown identity. The stream record of a caller's removal has no identity.
    Unknown,
}

entity! {
    /// The audit entry of one removal. The day of `removed_at` names the partition.
    Expiration = "Expiration" {
        fixed {
            /// The name of the item's entity.
            kind: String,
            /// The hash of the item's key.
            item: String,
            removed_at: Instant,
            /// The sequence number of the removal's stream record. It distinguishes two removals of
            /// one key.
            sequence_number: String,
        }
        mutable by ExpirationChanges {
            removed_by: RemovedBy,
            /// The name of the archive object that holds the item. It is absent if the item
            /// belonged to no current customer and so was not archived.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            archive: Option<String>,
        }
    }
}

impl Entity for Expiration {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        let Self { kind, item, removed_at, sequence_number, .. } = self;
        Ok(Key {
            pk: partition(&removed_at.day(), SHARDS.of(item))?,
            sk: SortKey::new(join(&removed_at.to_string(), &[kind, item, sequence_number]))?,
        })
    }
}

impl Expiration {
    /// Returns the entry as it is stored. Every delivery of the stream record gives the same entry.
    pub fn stored(self) -> Result<Stored<Self>, IdError> {
        let (born, at) = (Born::new(self.sequence_number.as_str())?, self.removed_at);
        Ok(Stored::new(self, born, at))
    }
}

fn partition(day: &str, shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("AUDIT", &[&day, &shard])
}

patterns! {
    RECORD {
        id: "audit.record",
        purpose: "Record the removal of an expired item",
        request: PutItem,
        key: "PK = AUDIT#<day>#<shard>, SK = <removed at>#<entity>#<hash of the key>#<sequence \
            number>",
        requires: "the entry does not exist",
        callers: "system",
    }
    OF_DAY {
        id: "audit.of-day",
        purpose: "List the removals of expired items on a day",
        request: ShardedQuery,
        key: "PK = AUDIT#<day>#<shard>, backward",
        returns: "removals of a day, newest first",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
}

/// Records a removal unless it is already recorded.
pub fn record(entry: &Stored<Expiration>) -> Result<Single<()>, EncodeError> {
    Ok(Single::new(&RECORD, Guarded::put(entry, Condition::NotExists)?))
}

/// Lists the removals of a day (`2017-01-01`, UTC), newest first.
pub fn of_day(day: &str) -> Result<Query<Stored<Expiration>>, KeyError> {
    let shards = SHARDS.all().map(|shard| partition(day, shard)).collect::<Result<_, _>>()?;
    Ok(Query::sharded(&OF_DAY, shards, Range::All).descending())
}

/// Returns the day of a sort key in the list of [`of_day`], such as the last sort key of a page.
#[must_use]
pub fn day_of(sort_key: &str) -> Option<String> {
    sort_key.split('#').next()?.parse().ok().map(Instant::day)
}
