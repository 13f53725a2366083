//! Follows between customers, as an adjacency list.
//!
//! A follow, or edge, is an item in the follower's own partition. So one key says whether A follows
//! B, and one range lists the customers that A follows. An index key on the followed customer gives
//! the other direction. This key is sharded by the follower, so the new followers of a customer
//! with a million followers spread over several partitions. The list of followers merges these
//! partitions, newest first.
//!
//! # Why the transaction checks only the follower
//!
//! The condition of a new edge is that the follower's profile exists. After an erasure a token that
//! is still valid can therefore create no edge.
//!
//! The Lambda function reads the followed customer before the transaction. It refuses the follow if
//! that customer does not exist or is being erased. If the transaction repeated this check, all new
//! followers of a famous customer would conflict on one profile. The transaction does not repeat
//! it, so a request that read the profile just before the erasure can leave an edge. Such an edge
//! shows only an id.

use crate::index::GSI1;
use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use crate::customer::{self, Customer};
use crate::encoding::join;
use crate::expression::Condition;
use crate::id::CustomerId;
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Meta, Stored};
use crate::key::{IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::pattern::Consistency;
use crate::request::{BatchWrite, BatchWriteAction, Get, Guarded, Query, Range, Single, Transaction};
use crate::shard::Shards;

/// The shards of each customer's list of followers.
pub const FOLLOWER_SHARDS: Shards = Shards(4);

const FOLLOWS: &str = "FOLLOWS";

entity! {
    /// An edge: one customer has followed another customer since the item was created.
    Follow = "Follow" {
        fixed {
            /// The follower.
            customer_id: CustomerId,
            followed_id: CustomerId,
        }
        mutable {}
    }
}

impl Entity for Follow {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.customer_id, &self.followed_id)
    }

    fn index_keys(&self, meta: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        Ok(vec![IndexKey {
            index: GSI1,
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Follower {
    /// The follower.
    pub customer_id: CustomerId,
    /// When the follow began.
    pub created_at: Instant,
}

view!(Follower of Follow);

/// A refusal names the action whose condition failed. The variant says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowAction {
    /// The edge already exists.
    Edge,
    /// The follower does not exist.
    Customer,
}

patterns! {
    PREPARE {
        id: "follows.prepare",
        purpose: "Check that the customer to follow exists",
        request: GetItem,
        key: "PK = CUSTOMER#<followed>, SK = PROFILE",
        returns: "the customer to follow",
        consistency: Consistency::Strong("a customer can be followed right after signing up"),
        callers: "owner",
    }
    PUT {
        id: "follows.put",
        purpose: "Follow a customer",
        request: TransactWriteItems,
        key: "PK = CUSTOMER#<follower>, SK = FOLLOWS#<followed>; SK = PROFILE (check)",
        requires: "the edge does not exist; the follower exists",
        callers: "owner",
    }
    REMOVE {
        id: "follows.remove",
        purpose: "Unfollow a customer",
        request: DeleteItem,
        key: "PK = CUSTOMER#<follower>, SK = FOLLOWS#<followed>",
        requires: "no condition",
        callers: "owner",
    }
    GET {
        id: "follows.get",
        purpose: "Check whether A follows B",
        request: GetItem,
        key: "PK = CUSTOMER#<follower>, SK = FOLLOWS#<followed>",
        returns: "the edge, if A follows B",
        consistency: Consistency::Eventual,
        callers: "signed in",
    }
    FOLLOWING {
        id: "follows.following",
        purpose: "List the customers that a customer follows",
        request: Query,
        key: "PK = CUSTOMER#<follower>, SK under FOLLOWS#",
        returns: "edges by id of the followed customer",
        consistency: Consistency::Eventual,
        callers: "signed in",
    }
    FOLLOWERS {
        id: "follows.followers",
        purpose: "List a customer's followers",
        request: ShardedQuery on GSI1,
        key: "GSI1PK = FOLLOWERS#<followed>#<shard>, GSI1SK = <created_at>#<follower>, backward",
        returns: "followers, newest first",
        consistency: Consistency::Eventual,
        callers: "signed in",
    }
    ERASE {
        id: "follows.erase",
        purpose: "Remove the edges from and to an erased customer",
        request: BatchWriteItem,
        key: "PK = CUSTOMER#<follower>, SK = FOLLOWS#<followed>, for each edge",
        requires: "no condition",
        callers: "owner",
    }
}

/// Reads the customer to be followed, with strong consistency.
pub fn prepare(followed: &CustomerId) -> Result<Get<Stored<Customer>>, KeyError> {
    Ok(Get::new(&PREPARE, customer::key(followed)?))
}

/// Makes a customer follow another customer.
pub fn put(follow: &Stored<Follow>) -> Result<Transaction<FollowAction>, EncodeError> {
    Ok(Transaction::new(&PUT)
        .action(FollowAction::Edge, Guarded::put(follow, Condition::NotExists)?)
        .action(FollowAction::Customer, customer::check(&follow.customer_id)?))
}

/// Removes a follow if it exists.
pub fn remove(follower: &CustomerId, followed: &CustomerId) -> Result<Single<()>, KeyError> {
    Ok(Single::new(&REMOVE, Guarded::remove(key(follower, followed)?)))
}

pub fn get(follower: &CustomerId, followed: &CustomerId) -> Result<Get<Stored<Follow>>, KeyError> {
    Ok(Get::new(&GET, key(follower, followed)?))
}

/// Lists the customers that a customer follows, by id.
pub fn following(follower: &CustomerId) -> Result<Query<Stored<Follow>>, KeyError> {
    Ok(Query::new(&FOLLOWING, customer::partition(follower)?, Range::under(FOLLOWS)))
}

/// Lists the followers of a customer, newest first.
pub fn followers(followed: &CustomerId) -> Result<Query<Follower>, KeyError> {
    let shards = FOLLOWER_SHARDS.all().map(|shard| followers_partition(followed, shard)).collect::<Result<_, _>>()?;
    Ok(Query::sharded(&FOLLOWERS, shards, Range::All).descending())
}

/// Removes edges, each given as follower and followed customer.
pub fn erase<'a>(edges: impl IntoIterator<Item = (&'a CustomerId, &'a CustomerId)>) -> Result<BatchWrite, KeyError> {
    let delete = |(follower, followed)| Ok(BatchWriteAction::Delete(key(follower, followed)?));
    Ok(BatchWrite::new(&ERASE, edges.into_iter().map(delete).collect::<Result<_, KeyError>>()?))
}
