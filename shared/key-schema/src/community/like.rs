//! Likes: a many-to-many relation, written once, read from both ends, and counted exactly.
//!
//! A like is an item in the customer's partition. An index key on its product, sharded by the
//! customer, gives the other direction. A like copies nothing of the product, so a changed product
//! needs no refresh of its likes. A second request reads the products of a page of likes.
//!
//! # Why the count is exact
//!
//! The transaction that writes or removes the like also changes the count. Its condition is that
//! the like to add does not exist yet, or that the like to remove exists. A retry, by a client or
//! by the SDK, finds the like already written or removed and changes no counter.
//!
//! # Why the count is spread over several items
//!
//! Two transactions on the same item conflict, and one of them must retry. A single counter would
//! limit a product to some forty likes a second. So a product's count is the sum of [`COUNTERS`]
//! items. The customer's id selects the item that counts a like. The removal of the like changes
//! the same item, so no item is ever below 0.
//!
//! For the same reason the transaction does not check the product: all likes of a product would
//! conflict on that check. The Lambda function reads the product before the transaction. So a
//! request may like a product that is just being retired. A like just before the retirement would
//! have the same result, because likes outlive the retirement. The transaction does check the
//! customer's profile. So after an erasure a token that is still valid can create no like.
//!
//! # Where the counters are
//!
//! The counters (`LIKES#<shard>`) are in the product's partition. A Query reads them, and a
//! separate GetItem reads the product. One range over both would also read the
//! [`UnsettledObject`](crate::media::UnsettledObject) items of the product, whose number has no
//! bound. The range of a product page begins after the counters.

use crate::index::GSI1;
use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::customer;
use crate::encoding::join;
use crate::expression::Condition;
use crate::id::{Born, CustomerId, ProductId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Meta, Stored};
use crate::key::{IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::leaderboard::{self, Board, Period};
use crate::pattern::Consistency;
use crate::product::{self, Product};
use crate::request::{BatchGet, Get, Guarded, Query, Range, Transaction};
use crate::shard::Shards;

/// The shards of a product's count.
pub const COUNTERS: Shards = Shards(8);
/// The shards of each product's list of likers.
pub const LIKER_SHARDS: Shards = Shards(4);
/// The maximum number of likes that one transaction removes. The removal of each like takes three
/// actions. Small transactions seldom conflict with others.
pub const ERASED_AT_ONCE: usize = 10;

const LIKE: &str = "LIKE";
const LIKES: &str = "LIKES";

entity! {
    /// A like: a customer has liked a product since the item was created.
    Like = "Like" {
        fixed {
            customer_id: CustomerId,
            product_id: ProductId,
        }
        mutable {}
    }
}

impl Entity for Like {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.customer_id, &self.product_id)
    }

    fn index_keys(&self, meta: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        Ok(vec![IndexKey {
            index: GSI1,
            partition: likers_partition(&self.product_id, LIKER_SHARDS.of(self.customer_id.as_str()))?,
            sort: SortKey::new(join(&meta.created_at.to_string(), &[&self.customer_id]))?,
        }])
    }
}

fn key(customer: &CustomerId, product: &ProductId) -> Result<Key, KeyError> {
    Ok(Key { pk: customer::partition(customer)?, sk: SortKey::of(LIKE, &[product])? })
}

fn likers_partition(product: &ProductId, shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("LIKERS", &[product, &shard])
}

/// A like as the index of its product shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Liker {
    pub customer_id: CustomerId,
    pub created_at: Instant,
}

view!(Liker of Like);

entity! {
    /// One shard of a product's count of likes.
    LikeCount = "LikeCount" {
        fixed {
            product_id: ProductId,
            /// The number of the shard, counted from 0. It is less than [`COUNTERS`].
            shard: u32,
            /// The number of likes by the customers of this shard.
            likes: u64,
        }
        mutable {}
    }
}

impl Entity for LikeCount {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        counter_key(&self.product_id, self.shard)
    }
}

fn counter_key(product: &ProductId, shard: u32) -> Result<Key, KeyError> {
    Ok(Key { pk: product::partition(product)?, sk: SortKey::of(LIKES, &[&shard])? })
}

/// A refusal names the action whose condition failed. The variant says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LikeAction {
    /// The like to add already exists, or the like to remove does not exist.
    Like,
    /// The customer does not exist.
    Customer,
    /// The count. Its write has no condition, so it is never refused.
    Count,
}

patterns! {
    PREPARE {
        id: "likes.prepare",
        purpose: "Check that the catalogue has the product",
        request: GetItem,
        key: "PK = PRODUCT#<product>, SK = PRODUCT",
        returns: "the product, which may be retired",
        consistency: Consistency::Strong("a new product can be liked immediately, and a retired \
            product cannot be liked"),
        callers: "owner",
    }
    PUT {
        id: "likes.put",
        purpose: "Like a product and count the like",
        request: TransactWriteItems,
        key: "PK = CUSTOMER#<id>, SK = LIKE#<product>; SK = PROFILE (check); PK = \
            PRODUCT#<product>, SK = LIKES#<shard>; PK = TALLY#likes#<product>, SK = <day>#<shard>",
        requires: "the like does not exist; the customer exists; ADD 1 to both counts",
        callers: "owner",
    }
    REMOVE {
        id: "likes.remove",
        purpose: "Remove a like and take it out of the count",
        request: TransactWriteItems,
        key: "PK = CUSTOMER#<id>, SK = LIKE#<product>; PK = PRODUCT#<product>, SK = LIKES#<shard>; \
            PK = TALLY#likes#<product>, SK = <day>#<shard>",
        requires: "the like exists; ADD -1 to both counts",
        callers: "owner",
    }
    GET {
        id: "likes.get",
        purpose: "Check whether a customer likes a product",
        request: GetItem,
        key: "PK = CUSTOMER#<id>, SK = LIKE#<product>",
        returns: "the like, if it exists",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    OF_CUSTOMER {
        id: "likes.of-customer",
        purpose: "List a customer's likes",
        request: Query,
        key: "PK = CUSTOMER#<id>, SK under LIKE#",
        returns: "likes by id of the product",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    PRODUCTS {
        id: "likes.products",
        purpose: "Read the products of a page of likes",
        request: BatchGetItem,
        key: "PK = PRODUCT#<id>, SK = PRODUCT, for each id",
        returns: "the products, which may be retired",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    LIKED {
        id: "likes.product",
        purpose: "Check that the catalogue has the product whose likes are counted",
        request: GetItem,
        key: "PK = PRODUCT#<product>, SK = PRODUCT",
        returns: "the product, which may be retired",
        consistency: Consistency::Eventual,
        callers: "any",
    }
    COUNT {
        id: "likes.count",
        purpose: "Count a product's likes",
        request: Query,
        key: "PK = PRODUCT#<product>, SK under LIKES#",
        returns: "the parts of the count",
        consistency: Consistency::Eventual,
        callers: "any",
    }
    SUM {
        id: "likes.sum",
        purpose: "Sum a product's likes for the leaderboard of likes",
        request: Query,
        key: "PK = PRODUCT#<product>, SK under LIKES#",
        returns: "the parts of the count",
        consistency: Consistency::Strong("the sum must include the change in the stream record"),
        callers: "system",
    }
    LIKERS {
        id: "likes.likers",
        purpose: "List the customers who like a product",
        request: ShardedQuery on GSI1,
        key: "GSI1PK = LIKERS#<product>#<shard>, GSI1SK = <created_at>#<customer>, backward",
        returns: "customers, newest like first",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
    ERASE {
        id: "likes.erase",
        purpose: "Remove an erased customer's likes and take them out of the counts",
        request: TransactWriteItems,
        key: "PK = CUSTOMER#<id>, SK = LIKE#<product>; PK = PRODUCT#<product>, SK = LIKES#<shard>; \
            PK = TALLY#likes#<product>, SK = <day>#<shard>, for each like",
        requires: "each like exists; ADD -1 to each count",
        callers: "owner",
    }
}

/// Adds to a product's count, in the shard that the customer's id selects, and to the product's
/// count of the day.
fn count(
    transaction: Transaction<LikeAction>,
    customer: &CustomerId,
    product: &ProductId,
    likes: i64,
    born: &Born,
    at: Instant,
) -> Result<Transaction<LikeAction>, EncodeError> {
    let shard = COUNTERS.of(customer.as_str());
    let change = Change::<LikeCount>::visible(at)
        .or_create(born, at)
        .set("product_id", product)?
        .set("shard", shard)?
        .add("likes", likes);
    let day = leaderboard::count((Board::Likes, product), (Period::day(at), shard), likes, at)?;
    Ok(transaction
        .action(LikeAction::Count, Guarded::modify(counter_key(product, shard)?, change))
        .optional(LikeAction::Count, day))
}

/// Reads the product to be liked, with strong consistency.
pub fn prepare(product: &ProductId) -> Result<Get<Stored<Product>>, KeyError> {
    Ok(Get::new(&PREPARE, product::key(product)?))
}

/// Likes a product, and counts the like.
pub fn put(like: &Stored<Like>) -> Result<Transaction<LikeAction>, EncodeError> {
    let (customer, product, at) = (&like.customer_id, &like.product_id, like.meta.created_at);
    let transaction = Transaction::new(&PUT)
        .action(LikeAction::Like, Guarded::put(like, Condition::NotExists)?)
        .action(LikeAction::Customer, customer::check(customer)?);
    count(transaction, customer, product, 1, &like.meta.born, at)
}

/// Removes a like, and subtracts it from the counts.
pub fn remove(customer: &CustomerId, product: &ProductId, at: Instant) -> Result<Transaction<LikeAction>, EncodeError> {
    let delete = Guarded::delete(key(customer, product)?, Condition::Exists);
    let transaction = Transaction::new(&REMOVE).action(LikeAction::Like, delete);
    count(transaction, customer, product, -1, &Born::counter(), at)
}

/// Removes up to [`ERASED_AT_ONCE`] likes of one customer, all or none.
pub fn erase<'a>(
    customer: &CustomerId,
    products: impl IntoIterator<Item = &'a ProductId>,
    at: Instant,
) -> Result<Transaction<LikeAction>, EncodeError> {
    let mut transaction = Transaction::new(&ERASE);
    for product in products {
        let delete = Guarded::delete(key(customer, product)?, Condition::Exists);
        transaction = transaction.action(LikeAction::Like, delete);
        transaction = count(transaction, customer, product, -1, &Born::counter(), at)?;
    }
    Ok(transaction)
}

pub fn get(customer: &CustomerId, product: &ProductId) -> Result<Get<Stored<Like>>, KeyError> {
    Ok(Get::new(&GET, key(customer, product)?))
}

/// Lists a customer's likes, by product id.
pub fn of_customer(customer: &CustomerId) -> Result<Query<Stored<Like>>, KeyError> {
    Ok(Query::new(&OF_CUSTOMER, customer::partition(customer)?, Range::under(LIKE)))
}

/// Reads the products of likes, retired or not, in the given order.
pub fn products<'a>(ids: impl IntoIterator<Item = &'a ProductId>) -> Result<BatchGet<Stored<Product>>, KeyError> {
    Ok(BatchGet::new(&PRODUCTS, ids.into_iter().map(product::key).collect::<Result<_, _>>()?))
}

/// Reads the product whose likes are counted.
pub fn liked(product: &ProductId) -> Result<Get<Stored<Product>>, KeyError> {
    Ok(Get::new(&LIKED, product::key(product)?))
}

/// Reads the parts of a product's count. [`total`] adds them up.
pub fn of_product(product: &ProductId) -> Result<Query<Stored<LikeCount>>, KeyError> {
    Ok(Query::new(&COUNT, product::partition(product)?, Range::under(LIKES)))
}

/// Reads the parts of a product's count with strong consistency.
pub fn sum(product: &ProductId) -> Result<Query<Stored<LikeCount>>, KeyError> {
    Ok(Query::new(&SUM, product::partition(product)?, Range::under(LIKES)))
}

/// Returns the number of likes of a product, from the items of [`of_product`].
#[must_use]
pub fn total(parts: &[Stored<LikeCount>]) -> u64 {
    parts.iter().fold(0, |sum, part| sum.saturating_add(part.likes))
}

/// Lists the customers who like a product, newest like first.
pub fn likers(product: &ProductId) -> Result<Query<Liker>, KeyError> {
    let shards = LIKER_SHARDS.all().map(|shard| likers_partition(product, shard)).collect::<Result<_, _>>()?;
    Ok(Query::sharded(&LIKERS, shards, Range::All).descending())
}
