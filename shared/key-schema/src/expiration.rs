//! The audit of expirations: what was removed because its time was over, one entry a removal, kept for ever.
//!
//! Entries of a day lie in a few partitions named for it. An entry's key is a function of the stream record that it was made from, and it is
//! written only where there is none: a record that is delivered twice is one entry.
//!
//! Because an entry is kept for ever it names nobody: the item is told by the hash of its key, which whoever knows the key can compute, and by
//! the archive object that holds the item, which is deleted in time.

use serde::{Deserialize, Serialize};

use crate::change::entity;
use crate::encoding::join;
use crate::expression::Condition;
use crate::id::{Born, IdError};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::pattern::{Consistency, patterns};
use crate::request::{Guarded, Query, Range, Single};
use crate::shard::Shards;

/// The shards of a day: DynamoDB removes what has expired in bursts.
pub const SHARDS: Shards = Shards(4);

/// Who removed an item that had a time to live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RemovedBy {
    /// DynamoDB, because its time was over.
    Ttl,
    /// An identity that is neither DynamoDB's nor a caller's.
    Unknown,
}

entity! {
    /// One removal. The day that the partition is named for is that of `removed_at`.
    Expiration = "Expiration" {
        keyed {
            /// The name of the item's entity.
            kind: String,
            /// The hash of the item's key.
            item: String,
            /// When it was removed.
            removed_at: Instant,
            /// The stream record of the removal: tells two removals of one key apart.
            sequence_number: String,
        }
        free {
            /// Who removed it.
            removed_by: RemovedBy,
            /// The name of the archive object that holds the item; none where nothing was archived, because whose it was is no customer (any more).
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
    /// The entry as it is stored: the same for every delivery of its record.
    ///
    /// # Errors
    /// [`IdError`] when the sequence number is none.
    pub fn stored(self) -> Result<Stored<Self>, IdError> {
        let (born, at) = (Born::new(self.sequence_number.as_str())?, self.removed_at);
        Ok(Stored::new(self, born, at))
    }
}

fn partition(day: &str, shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("AUDIT", &[&day, &shard])
}

patterns! {
    RECORD = "audit.record": PutItem, "PK = AUDIT#<day>#<shard>, SK = <removed at>#<entity>#<hash of the key>#<sequence number>" => "does not exist", Consistency::Write, "system", "Record the removal of an expired item", ["stream"];
    OF_DAY = "audit.of-day": ShardedQuery, "PK = AUDIT#<day>#<shard>, backward" => "removals of a day, newest first", Consistency::Eventual, "staff", "List the expired items removed on a day", ["GET /v1/audit/expirations"];
}

/// Records a removal once.
///
/// # Errors
/// [`EncodeError`].
pub fn record(entry: &Stored<Expiration>) -> Result<Single<()>, EncodeError> {
    Ok(Single::new(&RECORD, Guarded::put(entry, Condition::NotExists)?))
}

/// The removals of a day (`2017-01-01`, UTC), newest first.
///
/// # Errors
/// [`KeyError`].
pub fn of_day(day: &str) -> Result<Query<Stored<Expiration>>, KeyError> {
    let shards = SHARDS.all().map(|shard| partition(day, shard)).collect::<Result<_, _>>()?;
    Ok(Query::sharded(&OF_DAY, shards, Range::All).descending())
}

/// The day of a place in that list, which a page ended with.
#[must_use]
pub fn day_of(sort_key: &str) -> Option<String> {
    sort_key.split('#').next()?.parse().ok().map(Instant::day)
}
