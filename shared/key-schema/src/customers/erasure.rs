//! Records of erased customers, kept until the work outside the table is done.
//!
//! The request that erases a customer removes the customer's items from the table. Archived items
//! are in a bucket, which no transaction can include. So the transaction that removes the profile
//! also writes an [`Erasure`]. The janitor then empties the customer's archive
//! ([`crate::archive::belongings`]) and removes the [`Erasure`]. If a round of the janitor is
//! interrupted, the [`Erasure`] stays and the next round continues.
//!
//! # Why nothing is archived after the erasure
//!
//! The stream's consumer archives a session or a cart only after it has read the customer's profile
//! with strong consistency ([`crate::archive::owner`]). Once the profile is removed, no consumer
//! can read it. A consumer that read the profile earlier may still archive an item until its
//! invocation ends. So the janitor waits longer than an invocation before it handles an
//! [`Erasure`].
//!
//! # Why the janitor looks at sessions and carts again
//!
//! Items can still appear during the erasure. A request that has read the profile may fill a cart,
//! and the index may not yet contain a new session. The janitor removes such carts and sessions. If
//! the customer has signed up again, the janitor keeps the items that are newer than the new
//! profile.

use crate::index::GSI1;
use item_model::prelude::*;
use serde::Deserialize;

use crate::encoding::join;
use crate::expression::{Condition, value};
use crate::id::CustomerId;
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Meta, Stored};
use crate::key::{IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::pattern::Consistency;
use crate::request::{Guarded, Query, Range, Single};
use crate::shard::Shards;

/// The shards of the list of [`Erasure`] items.
pub const SHARDS: Shards = Shards(4);

entity! {
    /// The record that a customer was erased and that the archive may still hold the customer's
    /// items. Its creation time is the time at which the profile was removed.
    Erasure = "Erasure" {
        fixed {
            customer_id: CustomerId,
        }
        mutable {}
    }
}

impl Entity for Erasure {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.customer_id)
    }

    fn index_keys(&self, meta: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        let sort = SortKey::new(join(&meta.created_at.to_string(), &[&self.customer_id]))?;
        Ok(vec![IndexKey { index: GSI1, partition: shard(SHARDS.of(self.customer_id.as_str()))?, sort }])
    }
}

fn key(customer: &CustomerId) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("ERASURE", &[customer])?, sk: SortKey::new("ERASURE")? })
}

fn shard(shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("ERASURES", &[&shard])
}

/// An [`Erasure`] as [`pending`] returns it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Pending {
    pub customer_id: CustomerId,
    pub created_at: Instant,
}

view!(Pending of Erasure);

patterns! {
    PENDING {
        id: "erasures.pending",
        purpose: "Find the erased customers whose items the archive may hold",
        request: ShardedQuery on GSI1,
        key: "GSI1PK = ERASURES#<shard>, GSI1SK up to <instant>",
        returns: "items, oldest first",
        consistency: Consistency::Eventual,
        callers: "system",
    }
    DONE {
        id: "erasures.done",
        purpose: "Remove the `Erasure` after the customer's archive is empty",
        request: DeleteItem,
        key: "PK = ERASURE#<customer>, SK = ERASURE",
        requires: "the `Erasure` is unchanged",
        callers: "system",
    }
}

/// Writes the [`Erasure`], in the transaction that removes the profile. It replaces the item of the
/// customer's earlier erasure.
pub(crate) fn note(erasure: &Stored<Erasure>) -> Result<Guarded, EncodeError> {
    Guarded::overwrite(erasure)
}

/// Lists the erasures from `before` or earlier, the oldest first.
pub fn pending(before: Instant) -> Result<Query<Pending>, KeyError> {
    let range = Range::Between(Instant::MIN.to_string(), format!("{before}$"));
    let shards = SHARDS.all().map(shard).collect::<Result<_, _>>()?;
    Ok(Query::sharded(&PENDING, shards, range))
}

/// Removes an [`Erasure`], unless the same customer was erased once more since it was read.
pub fn done(erasure: &Pending) -> Result<Single<()>, EncodeError> {
    let same = Condition::Is("created_at", value(erasure.created_at)?);
    Ok(Single::new(&DONE, Guarded::delete(key(&erasure.customer_id)?, same)))
}
