//! What an erasure still has to do where the table ends.
//!
//! What a customer has in the table is erased by the request itself. What was archived of it lies in a bucket, which no transaction reaches; so the transaction
//! that removes the profile notes the erasure, and the janitor empties the archive of the customer ([`crate::archive::belongings`]) and takes the note away.
//! Whoever breaks off leaves the note, and the next round goes on.
//!
//! # Why nothing comes to the archive afterwards
//!
//! The stream's consumer archives a session or a cart only after it has seen the customer's profile, strongly ([`crate::archive::owner`]). Once the profile is
//! gone nobody sees it; whoever saw it before may still be writing, for as long as one invocation of the consumer lasts. So the janitor leaves a note alone for
//! longer than that.
//!
//! So it has a second look at what may come in the moment of the erasure: a cart is filled by a request that has seen the profile, and a session that has just begun
//! an index may not show yet. Who has come back since keeps what began under the new profile.

use serde::Deserialize;

use crate::change::entity;
use crate::encoding::join;
use crate::expression::{Condition, value};
use crate::id::CustomerId;
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Meta, Stored};
use crate::key::{Index, IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::pattern::{Consistency, patterns};
use crate::request::{Guarded, Query, Range, Single, Write};
use crate::shard::Shards;

/// The shards of the list of notes.
pub const SHARDS: Shards = Shards(4);

entity! {
    /// A note that a customer was erased, and that something of it may be in the archive. When it was written the profile went.
    Erasure = "Erasure" {
        keyed {
            /// Who was erased.
            customer_id: CustomerId,
        }
        free {}
    }
}

impl Entity for Erasure {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.customer_id)
    }

    fn index_keys(&self, meta: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        let sort = SortKey::new(join(&meta.created_at.to_string(), &[&self.customer_id]))?;
        Ok(vec![IndexKey { index: Index::Gsi1, partition: shard(SHARDS.of(self.customer_id.as_str()))?, sort }])
    }
}

fn key(customer: &CustomerId) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("ERASURE", &[customer])?, sk: SortKey::new("ERASURE")? })
}

fn shard(shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("ERASURES", &[&shard])
}

/// A note as the janitor's list shows it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Pending {
    /// Who was erased.
    pub customer_id: CustomerId,
    /// When.
    pub created_at: Instant,
}

crate::item::view!(Pending of Erasure);

patterns! {
    PENDING = "erasures.pending": ShardedQuery on Gsi1, "GSI1PK = ERASURES#<shard>, GSI1SK up to <instant>" => "notes, the oldest first", Consistency::Eventual, "system", "Find the erased customers of whom the archive may hold something", ["janitor"];
    DONE = "erasures.done": DeleteItem, "PK = ERASURE#<customer>, SK = ERASURE" => "of the erasure that was found", Consistency::Write, "system", "Forget an erasure once the archive holds nothing of the customer", ["janitor"];
}

/// The note that the transaction puts which removes the profile, over one of the same customer's earlier life.
pub(crate) fn note(erasure: &Stored<Erasure>) -> Result<Guarded, EncodeError> {
    Ok(Guarded { write: Write::Put { item: erasure.to_item()? }, condition: None })
}

/// The erasures up to `before`, the oldest first.
///
/// # Errors
/// [`KeyError`].
pub fn pending(before: Instant) -> Result<Query<Pending>, KeyError> {
    let range = Range::Between(Instant::MIN.to_string(), format!("{before}$"));
    let shards = SHARDS.all().map(shard).collect::<Result<_, _>>()?;
    Ok(Query::sharded(&PENDING, shards, range))
}

/// Takes a note away, unless the same customer was erased once more since it was found.
///
/// # Errors
/// [`EncodeError`].
pub fn done(erasure: &Pending) -> Result<Single<()>, EncodeError> {
    let same = Condition::Is("created_at", value(erasure.created_at)?);
    Ok(Single::new(&DONE, Guarded::delete(key(&erasure.customer_id)?, same)))
}
