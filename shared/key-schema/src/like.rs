//! Likes: a many-to-many relation, written once, read from both ends, and counted exactly.
//!
//! A like is an item in the customer's partition; an index key of its product, sharded by the customer, inverts it. Nothing of the product is
//! copied onto it: a list of likes gives ids, so nothing has to be refreshed when a product changes, and a page is one request.
//!
//! # Why the count is exact
//!
//! It moves in the transaction that writes or removes the like, on the condition that there was none, or one. A repetition, by a client, by the
//! SDK or after a lost answer, meets the like as it is and moves nothing.
//!
//! # Why it is spread over several items
//!
//! Two transactions that meet on one item are a conflict, and one of them comes again: one counter would let some forty likes a second of a product
//! through, and fail the others. So a product's count is the sum of [`COUNTERS`] items. Which one a like moves is computed from the
//! customer, so that a like and its end meet on the same one and none is ever below 0. For the same reason the product is read before and not guarded by a
//! condition check, on which all of its likes would meet: a like that is written while its product is retired is one that came a moment earlier,
//! for likes outlive the retirement. What is guarded is the customer's profile: after an erasure nothing new can come of a token that is still good.
//!
//! The counters lie before the product in its partition, as `LIKES#<shard>`: one Query gives them together with the product, and the range of a
//! product's page, which does not show them, begins behind them.

use serde::{Deserialize, Serialize};

use crate::change::{Change, entity};
use crate::customer;
use crate::encoding::join;
use crate::entity::AnyEntity;
use crate::expression::Condition;
use crate::id::{Born, CustomerId, ProductId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Meta, Stored};
use crate::key::{Index, IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::pattern::{Consistency, patterns};
use crate::product::{self, Product};
use crate::request::{Get, Guarded, Query, Range, Transaction, Write};
use crate::shard::Shards;

/// The items that a product's count is spread over.
pub const COUNTERS: Shards = Shards(8);
/// The shards of each product's list of who likes it.
pub const LIKER_SHARDS: Shards = Shards(4);
/// How many likes one transaction takes back: two actions each, and few enough that it seldom meets others.
pub const ERASED_AT_ONCE: usize = 10;

/// The prefix of the sort keys of what a customer likes.
const LIKE: &str = "LIKE";

entity! {
    /// A customer likes a product, since the item was created.
    Like = "Like" {
        keyed {
            /// Who.
            customer_id: CustomerId,
            /// What.
            product_id: ProductId,
        }
        free {}
    }
}

impl Entity for Like {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.customer_id, &self.product_id)
    }

    fn index_keys(&self, meta: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        Ok(vec![IndexKey {
            index: Index::Gsi1,
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
    /// Who.
    pub customer_id: CustomerId,
    /// Since when.
    pub created_at: Instant,
}

crate::item::view!(Liker of Like);

entity! {
    /// A part of how many like a product.
    LikeCount = "LikeCount" {
        keyed {
            /// What is liked.
            product_id: ProductId,
            /// Which part, from 0 to [`COUNTERS`].
            shard: u32,
            /// How many of the customers of this part like it.
            likes: u64,
        }
        free {}
    }
}

impl Entity for LikeCount {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        counter_key(&self.product_id, self.shard)
    }
}

fn counter_key(product: &ProductId, shard: u32) -> Result<Key, KeyError> {
    Ok(Key { pk: product::partition(product)?, sk: SortKey::of("LIKES", &[&shard])? })
}

/// Which part of a like's transaction was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The like is there already, or is not.
    Like,
    /// There is no such customer.
    Customer,
    /// The count, which no condition guards.
    Count,
}

patterns! {
    PREPARE = "likes.prepare": GetItem, "PK = PRODUCT#<product>, SK = PRODUCT" => "the product, which may be retired", Consistency::Strong("what was just put into the catalogue can be liked, what was just retired cannot"), "owner", "See that the catalogue has what a customer likes", ["PUT /v1/customers/{id}/likes/{product}"];
    PUT = "likes.put": TransactWriteItems, "PK = CUSTOMER#<id>, SK = LIKE#<product>; SK = PROFILE (check); PK = PRODUCT#<product>, SK = LIKES#<shard>" => "does not exist; there is the customer; ADD 1 to the count", Consistency::Write, "owner", "Like a product and count it", ["PUT /v1/customers/{id}/likes/{product}"];
    REMOVE = "likes.remove": TransactWriteItems, "PK = CUSTOMER#<id>, SK = LIKE#<product>; PK = PRODUCT#<product>, SK = LIKES#<shard>" => "exists; ADD -1 to the count", Consistency::Write, "owner", "Like a product no more", ["DELETE /v1/customers/{id}/likes/{product}"];
    GET = "likes.get": GetItem, "PK = CUSTOMER#<id>, SK = LIKE#<product>" => "the like, if there is one", Consistency::Eventual, "owner", "See whether a customer likes a product", ["GET /v1/customers/{id}/likes/{product}", "GET /v1/products/{id}/likes"];
    OF_CUSTOMER = "likes.of-customer": Query, "PK = CUSTOMER#<id>, SK under LIKE#" => "likes by id of the product", Consistency::Eventual, "owner", "List what a customer likes", ["GET /v1/customers/{id}/likes", "GET /v1/graph/{node}/edges"];
    COUNT = "likes.count": Query, "PK = PRODUCT#<product>, SK between LIKES# and PRODUCT" => "the parts of the count, then the product", Consistency::Eventual, "any", "Count who likes a product", ["GET /v1/products/{id}/likes"];
    LIKERS = "likes.likers": ShardedQuery on Gsi1, "GSI1PK = LIKERS#<product>#<shard>, GSI1SK = <created_at>#<customer>, backward" => "who likes it, newest first", Consistency::Eventual, "staff", "List who likes a product", ["GET /v1/products/{id}/likers"];
    ERASE = "likes.erase": TransactWriteItems, "PK = CUSTOMER#<id>, SK = LIKE#<product>; PK = PRODUCT#<product>, SK = LIKES#<shard>, for each like" => "each exists; ADD -1 to each count", Consistency::Write, "owner", "Take back what an erased customer liked", ["DELETE /v1/customers/{id}"];
}

/// Moves the part of a product's count that the customer belongs to.
fn count(
    customer: &CustomerId,
    product: &ProductId,
    likes: i64,
    born: &Born,
    at: Instant,
) -> Result<Guarded, EncodeError> {
    let shard = COUNTERS.of(customer.as_str());
    let change = Change::<LikeCount>::visible(at)
        .or_create(born, at)
        .set("product_id", product)?
        .set("shard", shard)?
        .add("likes", likes);
    Ok(Guarded {
        write: Write::Update { key: counter_key(product, shard)?, steps: change.into_steps() },
        condition: None,
    })
}

/// Reads what shall be liked, strongly.
///
/// # Errors
/// [`KeyError`].
pub fn prepare(product: &ProductId) -> Result<Get<Stored<Product>>, KeyError> {
    Ok(Get::new(&PREPARE, product::key(product)?))
}

/// Likes a product and counts it.
///
/// # Errors
/// [`EncodeError`].
pub fn put(like: &Stored<Like>) -> Result<Transaction<Part>, EncodeError> {
    let (customer, product, at) = (&like.customer_id, &like.product_id, like.meta.created_at);
    Ok(Transaction::new(&PUT)
        .action(Part::Like, Guarded::put(like, Condition::NotExists)?)
        .action(Part::Customer, Guarded::check(customer::key(customer)?, Condition::Exists))
        .action(Part::Count, count(customer, product, 1, &like.meta.born, at)?))
}

/// Likes a product no more, and counts that.
///
/// # Errors
/// [`EncodeError`].
pub fn remove(customer: &CustomerId, product: &ProductId, at: Instant) -> Result<Transaction<Part>, EncodeError> {
    Ok(Transaction::new(&REMOVE)
        .action(Part::Like, Guarded::delete(key(customer, product)?, Condition::Exists))
        .action(Part::Count, count(customer, product, -1, &Born::counter(), at)?))
}

/// Takes back up to [`ERASED_AT_ONCE`] likes of one customer, all or none.
///
/// # Errors
/// [`EncodeError`].
pub fn erase<'a>(
    customer: &CustomerId,
    products: impl IntoIterator<Item = &'a ProductId>,
    at: Instant,
) -> Result<Transaction<Part>, EncodeError> {
    let mut transaction = Transaction::new(&ERASE);
    for product in products {
        transaction = transaction
            .action(Part::Like, Guarded::delete(key(customer, product)?, Condition::Exists))
            .action(Part::Count, count(customer, product, -1, &Born::counter(), at)?);
    }
    Ok(transaction)
}

/// Reads one like.
///
/// # Errors
/// [`KeyError`].
pub fn get(customer: &CustomerId, product: &ProductId) -> Result<Get<Stored<Like>>, KeyError> {
    Ok(Get::new(&GET, key(customer, product)?))
}

/// What a customer likes, by id of the product.
///
/// # Errors
/// [`KeyError`].
pub fn of_customer(customer: &CustomerId) -> Result<Query<Stored<Like>>, KeyError> {
    Ok(Query::new(&OF_CUSTOMER, customer::partition(customer)?, Range::under(LIKE)))
}

/// The parts of a product's count, and the product behind them, retired or not ([`total`]).
///
/// # Errors
/// [`KeyError`].
pub fn of_product(product: &ProductId) -> Result<Query<AnyEntity>, KeyError> {
    Ok(Query::new(&COUNT, product::partition(product)?, Range::Between("LIKES#".into(), "PRODUCT".into())))
}

/// How many like a product that is in the catalogue, from what [`of_product`] gave; `None` when it is not.
#[must_use]
pub fn total(found: &[AnyEntity]) -> Option<u64> {
    let in_catalogue = |item: &AnyEntity| matches!(item, AnyEntity::Product(product) if !product.retired);
    let part = |item: &AnyEntity| if let AnyEntity::LikeCount(part) = item { part.likes } else { 0 };
    found.iter().any(in_catalogue).then(|| found.iter().map(part).fold(0, u64::saturating_add))
}

/// Who likes a product, newest first.
///
/// # Errors
/// [`KeyError`].
pub fn likers(product: &ProductId) -> Result<Query<Liker>, KeyError> {
    let shards = LIKER_SHARDS.all().map(|shard| likers_partition(product, shard)).collect::<Result<_, _>>()?;
    Ok(Query::sharded(&LIKERS, shards, Range::All).descending())
}
