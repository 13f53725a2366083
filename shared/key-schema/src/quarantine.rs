//! Stream records that the consumer set aside: kept whole with the reason, so that the shard can move on.

use crate::change::entity;
use crate::encoding::join;
use crate::expression::Condition;
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::pattern::{Consistency, patterns};
use crate::request::{Guarded, Query, Range, Single};
use crate::shard::Shards;

/// How long a record waits to be looked at.
pub const LIFETIME_SECONDS: i64 = 30 * 24 * 60 * 60;
/// The shards of a day: a broken deployment can quarantine everything at once.
pub const SHARDS: Shards = Shards(4);

entity! {
    /// One record that could not be processed.
    Quarantined = "Quarantined" {
        keyed {
            /// The stream's event id, or the sequence number.
            event_id: String,
            /// The day, `2017-01-01`, which the partition is named for.
            day: String,
            /// Which consumer set it aside.
            consumer: String,
            /// When it was set aside.
            at: Instant,
            /// Also the time to live.
            expires_at: Instant,
        }
        free {
            /// Why.
            reason: String,
            /// The record as it came, as JSON text.
            record: String,
        }
    }
}

impl Entity for Quarantined {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        Ok(Key {
            pk: partition(&self.day, SHARDS.of(&self.event_id))?,
            // By event and consumer, not by time: the same record set aside twice is one item.
            sk: SortKey::new(join("EVENT", &[&self.event_id, &self.consumer]))?,
        })
    }

    fn expires(&self) -> Option<Instant> {
        Some(self.expires_at)
    }
}

fn partition(day: &str, shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("QUARANTINE", &[&day, &shard])
}

patterns! {
    PUT = "quarantine.put": PutItem, "PK = QUARANTINE#<day>#<shard>, SK = EVENT#<event id>#<consumer>" => "does not exist", Consistency::Write, "system", "Set a stream record aside", ["stream"];
    LIST = "quarantine.list": ShardedQuery, "PK = QUARANTINE#<day>#<shard>" => "the records of a day", Consistency::Eventual, "system", "List the records set aside on a day", ["local system"];
}

/// Sets a record aside once.
///
/// # Errors
/// [`EncodeError`].
pub fn put(record: &Stored<Quarantined>) -> Result<Single<()>, EncodeError> {
    Ok(Single::new(&PUT, Guarded::put(record, Condition::NotExists)?))
}

/// The records of a day.
///
/// # Errors
/// [`KeyError`].
pub fn list(day: &str) -> Result<Query<Stored<Quarantined>>, KeyError> {
    let shards = SHARDS.all().map(|shard| partition(day, shard)).collect::<Result<_, _>>()?;
    Ok(Query::sharded(&LIST, shards, Range::All))
}
