//! Who follows whom: an adjacency list.
//!
//! A customer follows others by items in the customer's own partition, so "does A follow B" is one key, and whom A follows one range. The other
//! direction is the same item under an index key of whom it leads to, sharded by the follower: somebody with a million followers gets new ones in
//! several partitions, and the list is merged from them, newest first.
//!
//! An edge is written on the condition that the follower's profile is there: after an erasure nothing new can come of a token that is still good.
//! Whoever is followed is read before and not guarded. A condition check on that profile would let everybody who follows a famous customer at
//! once meet on one item ([`crate::request::Transaction`]); what it would prevent, an edge to somebody who was erased in the same moment, shows
//! an id and nothing else.

use serde::{Deserialize, Serialize};

use crate::change::entity;
use crate::customer::{self, Customer};
use crate::encoding::join;
use crate::expression::Condition;
use crate::id::CustomerId;
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Meta, Stored};
use crate::key::{Index, IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::pattern::{Consistency, patterns};
use crate::request::{BatchWrite, BatchWriteAction, Get, Guarded, Query, Range, Single, Transaction, Write};
use crate::shard::Shards;

/// The shards of each customer's list of followers.
pub const FOLLOWER_SHARDS: Shards = Shards(4);

/// The prefix of the sort keys of those whom a customer follows.
const FOLLOWS: &str = "FOLLOWS";

entity! {
    /// One customer follows another, since the item was created.
    Follow = "Follow" {
        keyed {
            /// Who follows.
            customer_id: CustomerId,
            /// Who is followed.
            followed_id: CustomerId,
        }
        free {}
    }
}

impl Entity for Follow {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.customer_id, &self.followed_id)
    }

    fn index_keys(&self, meta: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        Ok(vec![IndexKey {
            index: Index::Gsi1,
            partition: followers_partition(&self.followed_id, FOLLOWER_SHARDS.of(self.customer_id.as_str()))?,
            sort: SortKey::new(join(&meta.created_at.to_string(), &[&self.customer_id]))?,
        }])
    }
}

fn key(follower: &CustomerId, followed: &CustomerId) -> Result<Key, KeyError> {
    Ok(Key { pk: customer::partition(follower)?, sk: SortKey::of(FOLLOWS, &[followed])? })
}

fn followers_partition(followed: &CustomerId, shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("FOLLOWERS", &[followed, &shard])
}

/// A follower as the index shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Follower {
    /// Who follows.
    pub customer_id: CustomerId,
    /// Since when.
    pub created_at: Instant,
}

crate::item::view!(Follower of Follow);

/// Which part of the transaction was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// There is the edge already.
    Edge,
    /// There is no such follower.
    Customer,
}

patterns! {
    PREPARE = "follows.prepare": GetItem, "PK = CUSTOMER#<followed>, SK = PROFILE" => "who shall be followed", Consistency::Strong("somebody who has just signed up can be followed"), "owner", "See that there is whom a customer wants to follow", ["PUT /v1/customers/{id}/following/{other}"];
    PUT = "follows.put": TransactWriteItems, "PK = CUSTOMER#<follower>, SK = FOLLOWS#<followed>; SK = PROFILE (check)" => "does not exist; there is the follower", Consistency::Write, "owner", "Follow a customer", ["PUT /v1/customers/{id}/following/{other}"];
    REMOVE = "follows.remove": DeleteItem, "PK = CUSTOMER#<follower>, SK = FOLLOWS#<followed>" => "always", Consistency::Write, "owner", "Follow a customer no more", ["DELETE /v1/customers/{id}/following/{other}"];
    GET = "follows.get": GetItem, "PK = CUSTOMER#<follower>, SK = FOLLOWS#<followed>" => "the edge, if A follows B", Consistency::Eventual, "signed in", "See whether A follows B", ["GET /v1/customers/{id}/following/{other}"];
    FOLLOWING = "follows.following": Query, "PK = CUSTOMER#<follower>, SK under FOLLOWS#" => "edges by id of whom they lead to", Consistency::Eventual, "signed in", "List whom a customer follows", ["GET /v1/customers/{id}/following", "GET /v1/graph/{node}/edges"];
    FOLLOWERS = "follows.followers": ShardedQuery on Gsi1, "GSI1PK = FOLLOWERS#<followed>#<shard>, GSI1SK = <created_at>#<follower>, backward" => "followers, newest first", Consistency::Eventual, "signed in", "List who follows a customer", ["GET /v1/customers/{id}/followers", "DELETE /v1/customers/{id}"];
    ERASE = "follows.erase": BatchWriteItem, "PK = CUSTOMER#<follower>, SK = FOLLOWS#<followed>, for each edge" => "removed", Consistency::Write, "owner", "Remove the edges from and to an erased customer", ["DELETE /v1/customers/{id}"];
}

/// Reads who shall be followed, strongly.
///
/// # Errors
/// [`KeyError`].
pub fn prepare(followed: &CustomerId) -> Result<Get<Stored<Customer>>, KeyError> {
    Ok(Get::new(&PREPARE, customer::key(followed)?))
}

/// Makes a customer follow another.
///
/// # Errors
/// [`EncodeError`].
pub fn put(follow: &Stored<Follow>) -> Result<Transaction<Part>, EncodeError> {
    Ok(Transaction::new(&PUT)
        .action(Part::Edge, Guarded::put(follow, Condition::NotExists)?)
        .action(Part::Customer, Guarded::check(customer::key(&follow.customer_id)?, Condition::Exists)))
}

/// Makes a customer follow another no more, whether or not there was an edge.
///
/// # Errors
/// [`KeyError`].
pub fn remove(follower: &CustomerId, followed: &CustomerId) -> Result<Single<()>, KeyError> {
    let write = Write::Delete { key: key(follower, followed)? };
    Ok(Single::new(&REMOVE, Guarded { write, condition: None }))
}

/// Reads one edge.
///
/// # Errors
/// [`KeyError`].
pub fn get(follower: &CustomerId, followed: &CustomerId) -> Result<Get<Stored<Follow>>, KeyError> {
    Ok(Get::new(&GET, key(follower, followed)?))
}

/// Whom a customer follows, by id.
///
/// # Errors
/// [`KeyError`].
pub fn following(follower: &CustomerId) -> Result<Query<Stored<Follow>>, KeyError> {
    Ok(Query::new(&FOLLOWING, customer::partition(follower)?, Range::under(FOLLOWS)))
}

/// Who follows a customer, newest first.
///
/// # Errors
/// [`KeyError`].
pub fn followers(followed: &CustomerId) -> Result<Query<Follower>, KeyError> {
    let shards = FOLLOWER_SHARDS.all().map(|shard| followers_partition(followed, shard)).collect::<Result<_, _>>()?;
    Ok(Query::sharded(&FOLLOWERS, shards, Range::All).descending())
}

/// Removes edges, each from its follower to whom it leads.
///
/// # Errors
/// [`KeyError`].
pub fn erase<'a>(edges: impl IntoIterator<Item = (&'a CustomerId, &'a CustomerId)>) -> Result<BatchWrite, KeyError> {
    let delete = |(follower, followed)| Ok(BatchWriteAction::Delete(key(follower, followed)?));
    Ok(BatchWrite::new(&ERASE, edges.into_iter().map(delete).collect::<Result<_, KeyError>>()?))
}
