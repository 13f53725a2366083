//! Reviews: at most one per customer and product. They are listed by product (newest or best
//! first), by customer, and across all products ([`recent`]).

pub mod recent;

use crate::index::{GSI1, GSI2, GSI3};
use item_model::prelude::*;
use serde::{Deserialize, Serialize};
use serde_dynamo::AttributeValue;

use crate::change::{Change, IndexEntry};
use crate::customer;
use crate::encoding::join;
use crate::expression::{Condition, value};
use crate::id::{Born, CustomerId, ProductId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Meta, Stored};
use crate::key::{IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::pattern::{Consistency, Pattern};
use crate::product::{self, Product, ReviewStats};
use crate::quota::{self, Quota};
use crate::request::{BatchGet, Get, Guarded, Query, Range, Transaction};

entity! {
    Review = "Review" {
        fixed {
            product_id: ProductId,
            customer_id: CustomerId,
            /// The rating, 1 to 5, which is part of the key of the best-first list.
            rating: u64,
            /// The author's name for readers of the review, as the author chose it. An erasure of
            /// the author removes it. Its stored name is `reference`, because each index projects
            /// that attribute and at most 20.
            #[serde(rename = "reference", skip_serializing_if = "Option::is_none", default)]
            display_name: Option<String>,
        }
        mutable by ReviewChanges {
            title: String,
            text: String,
        }
    }
}

/// The key of a review in its product's best-first list: by rating, then by time.
#[derive(Debug, Clone, Copy)]
pub struct BestIndexKey<'a> {
    pub product_id: &'a ProductId,
    /// The rating, 1 to 5.
    pub rating: u64,
    /// The instant at which the review was first written.
    pub created_at: Instant,
    pub customer_id: &'a CustomerId,
}

impl BestIndexKey<'_> {
    fn key(&self) -> Result<IndexKey, KeyError> {
        let mut sort = String::new();
        crate::encoding::Part::write(&self.rating, &mut sort);
        Ok(IndexKey {
            index: GSI2,
            partition: PartitionKey::of("BEST", &[self.product_id])?,
            sort: SortKey::new(join(&sort, &[&self.created_at, self.customer_id]))?,
        })
    }
}

impl IndexEntry for BestIndexKey<'_> {
    type Entity = Review;

    fn index_key(&self) -> Result<IndexKey, EncodeError> {
        Ok(self.key()?)
    }

    fn fields(&self) -> Result<Vec<(&'static str, AttributeValue)>, EncodeError> {
        Ok(vec![("rating", value(self.rating)?)])
    }
}

impl Entity for Review {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.product_id, &self.customer_id)
    }

    fn index_keys(&self, meta: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        let at = meta.created_at;
        let best = BestIndexKey {
            product_id: &self.product_id,
            rating: self.rating,
            created_at: at,
            customer_id: &self.customer_id,
        };
        let by_customer = IndexKey {
            index: GSI1,
            partition: reviewer_partition(&self.customer_id)?,
            sort: SortKey::new(join(&at.to_string(), &[&self.product_id]))?,
        };
        let newest = IndexKey {
            index: GSI3,
            partition: newest_partition(&self.product_id)?,
            sort: SortKey::new(join(&at.to_string(), &[&self.customer_id]))?,
        };
        Ok(vec![by_customer, best.key()?, newest])
    }
}

fn key(product: &ProductId, customer: &CustomerId) -> Result<Key, KeyError> {
    Ok(Key { pk: product::partition(product)?, sk: SortKey::of("REVIEW", &[customer])? })
}

fn reviewer_partition(customer: &CustomerId) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("REVIEWER", &[customer])
}

fn newest_partition(product: &ProductId) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("REVIEWS", &[product])
}

/// A review as every index returns it. It has the whole text, because lists of reviews show the
/// texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewSummary {
    pub product_id: ProductId,
    pub customer_id: CustomerId,
    /// The rating, 1 to 5.
    pub rating: u64,
    #[serde(rename = "reference", default)]
    pub display_name: Option<String>,
    pub title: String,
    pub text: String,
    pub version: u64,
    pub created_at: Instant,
    pub updated_at: Instant,
}

view!(ReviewSummary of Review);

/// A refusal names the action whose condition failed. The variant says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewAction {
    /// The review already exists, is missing, or is at another version.
    Review,
    /// The product is not in the catalogue.
    Product,
    /// The statistics. Their write has no condition, so it is never refused.
    Stats,
    /// The entry in the list of all reviews. Its write has no condition, so it is never refused.
    Recent,
    /// The author has no profile.
    Customer,
    /// The author has used up the day's quota of reviews.
    Quota,
}

patterns! {
    CREATE {
        id: "reviews.create",
        purpose: "Write a review and count it",
        request: TransactWriteItems,
        key: "PK = PRODUCT#<product>, SK = REVIEW#<customer>; SK = PRODUCT#STATS; SK = PRODUCT \
            (check); PK = RECENTREVIEWS#<month>#<shard>, SK = <created_at>#<product>#<customer>; \
            PK = CUSTOMER#<customer>, SK = PROFILE (check); PK = QUOTA#<hash of the customer>, SK = \
            DAY#<day>",
        requires: "the review does not exist; the product is in the catalogue; the customer exists; \
            fewer reviews on the day than the quota; ADD to the statistics, ADD 1 to the quota's \
            counter",
        callers: "owner",
    }
    CHANGE {
        id: "reviews.change",
        purpose: "Change a review and the product's statistics",
        request: TransactWriteItems,
        key: "PK = PRODUCT#<product>, SK = REVIEW#<customer>; SK = PRODUCT#STATS; PK = \
            RECENTREVIEWS#<month>#<shard>, SK = <created_at>#<product>#<customer>; PK = \
            CUSTOMER#<customer>, SK = PROFILE (check); PK = QUOTA#<hash of the customer>, SK = \
            DAY#<day>",
        requires: "version = the If-Match; same born; the customer exists; fewer reviews on the day \
            than the quota; ADD the difference to the statistics, ADD 1 to the quota's counter",
        callers: "owner",
    }
    DELETE {
        id: "reviews.delete",
        purpose: "Remove a review and take it out of the statistics",
        request: TransactWriteItems,
        key: "PK = PRODUCT#<product>, SK = REVIEW#<customer>; SK = PRODUCT#STATS; PK = \
            RECENTREVIEWS#<month>#<shard>, SK = <created_at>#<product>#<customer>",
        requires: "version = the If-Match; same born; ADD -1 and the negative rating to the \
            statistics",
        callers: "owner",
    }
    ERASE_NAME {
        id: "reviews.erase-name",
        purpose: "Remove the display name of an erased author from a review",
        request: TransactWriteItems,
        key: "PK = PRODUCT#<product>, SK = REVIEW#<customer>; PK = RECENTREVIEWS#<month>#<shard>, SK \
            = <created_at>#<product>#<customer>",
        requires: "same version and born",
        callers: "owner",
    }
    GET {
        id: "reviews.get",
        purpose: "Read one review",
        request: GetItem,
        key: "PK = PRODUCT#<product>, SK = REVIEW#<customer>",
        returns: "the review",
        consistency: Consistency::Eventual,
        callers: "any",
    }
    EDIT {
        id: "reviews.edit",
        purpose: "Read a review before changing it",
        request: GetItem,
        key: "PK = PRODUCT#<product>, SK = REVIEW#<customer>",
        returns: "the review",
        consistency: Consistency::Strong("the statistics change by the difference to the stored \
            rating"),
        callers: "owner",
    }
    STATS {
        id: "reviews.stats",
        purpose: "Read the average and the number of a product's ratings",
        request: BatchGetItem,
        key: "PK = PRODUCT#<product>, SK = PRODUCT and PRODUCT#STATS",
        returns: "the product, which may be retired; the count and sum of its ratings",
        consistency: Consistency::Eventual,
        callers: "any",
    }
    NEWEST {
        id: "reviews.newest",
        purpose: "List a product's reviews, newest first",
        request: Query on GSI3,
        key: "GSI3PK = REVIEWS#<product>, GSI3SK = <created_at>#<customer>, backward",
        returns: "reviews, newest first",
        consistency: Consistency::Eventual,
        callers: "any",
    }
    BEST {
        id: "reviews.best",
        purpose: "List a product's reviews, best first",
        request: Query on GSI2,
        key: "GSI2PK = BEST#<product>, GSI2SK = <rating>#<created_at>#<customer>, backward",
        returns: "reviews, best first, then newest",
        consistency: Consistency::Eventual,
        callers: "any",
    }
    BY_CUSTOMER {
        id: "reviews.by-customer",
        purpose: "List a customer's reviews",
        request: Query on GSI1,
        key: "GSI1PK = REVIEWER#<customer>, GSI1SK = <created_at>#<product>, backward",
        returns: "reviews, newest first",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
}

fn count(product: &ProductId, reviews: i64, sum: i64, born: &Born, at: Instant) -> Result<Guarded, EncodeError> {
    let change = Change::<ReviewStats>::visible(at)
        .or_create(born, at)
        .set("product_id", product)?
        .add("rating_count", reviews)
        .add("rating_sum", sum);
    Ok(Guarded::modify(product::stats_key(product)?, change))
}

fn signed(rating: u64) -> i64 {
    i64::try_from(rating).unwrap_or(0)
}

/// Writes and counts a review. Its author must have a profile.
pub fn create(review: &Stored<Review>) -> Result<Transaction<ReviewAction>, EncodeError> {
    let (product, at) = (&review.product_id, review.meta.created_at);
    Ok(Transaction::new(&CREATE)
        .action(ReviewAction::Review, Guarded::put(review, Condition::NotExists)?)
        .action(ReviewAction::Product, Guarded::check(product::key(product)?, product::in_catalogue()))
        .action(ReviewAction::Stats, count(product, 1, signed(review.rating), &review.meta.born, at)?)
        .action(ReviewAction::Recent, recent::enter(review)?)
        .action(ReviewAction::Customer, customer::check(&review.customer_id)?)
        .action(ReviewAction::Quota, quota::count(&review.customer_id, Quota::Reviews, at)?))
}

/// Changes the review that was read. Its author must still have a profile.
pub fn change(old: &Stored<Review>, new: &Review, at: Instant) -> Result<Transaction<ReviewAction>, EncodeError> {
    let index_key = BestIndexKey {
        product_id: &old.product_id,
        rating: new.rating,
        created_at: old.meta.created_at,
        customer_id: &old.customer_id,
    };
    let change = Change::<Review>::visible(at).title(&new.title)?.text(&new.text)?.enter(&index_key)?;
    let difference = signed(new.rating) - signed(old.rating);
    Ok(rewrite(&CHANGE, old, new, change, at)?
        .action(ReviewAction::Stats, count(&old.product_id, 0, difference, &old.meta.born, at)?)
        .action(ReviewAction::Customer, customer::check(&old.customer_id)?)
        .action(ReviewAction::Quota, quota::count(&old.customer_id, Quota::Reviews, at)?))
}

/// Removes the display name of an erased author from the review that was read.
pub fn erase_name(old: &Stored<Review>, at: Instant) -> Result<Transaction<ReviewAction>, EncodeError> {
    let new = Review { display_name: None, ..old.data.clone() };
    rewrite(&ERASE_NAME, old, &new, Change::visible(at), at)
}

/// Changes a review with its display name, and writes its entry in the list of all reviews.
fn rewrite(
    pattern: &'static Pattern,
    old: &Stored<Review>,
    new: &Review,
    change: Change<Review>,
    at: Instant,
) -> Result<Transaction<ReviewAction>, EncodeError> {
    let change = change.set("reference", &new.display_name)?;
    let update = Guarded::update(key(&old.product_id, &old.customer_id)?, change, Condition::unchanged(&old.meta)?);
    let meta = Meta { version: old.meta.version + 1, rev: old.meta.rev + 1, updated_at: at, ..old.meta.clone() };
    let changed = Stored { meta, data: new.clone() };
    Ok(Transaction::new(pattern)
        .action(ReviewAction::Review, update)
        .action(ReviewAction::Recent, recent::enter(&changed)?))
}

pub fn delete(old: &Stored<Review>, at: Instant) -> Result<Transaction<ReviewAction>, EncodeError> {
    let delete = Guarded::delete(key(&old.product_id, &old.customer_id)?, Condition::unchanged(&old.meta)?);
    Ok(Transaction::new(&DELETE)
        .action(ReviewAction::Review, delete)
        .action(ReviewAction::Stats, count(&old.product_id, -1, -signed(old.rating), &old.meta.born, at)?)
        .action(ReviewAction::Recent, recent::remove(old)?))
}

pub fn get(product: &ProductId, customer: &CustomerId) -> Result<Get<Stored<Review>>, KeyError> {
    Ok(Get::new(&GET, key(product, customer)?))
}

/// Reads a review with strong consistency, before a change.
pub fn read_for_update(product: &ProductId, customer: &CustomerId) -> Result<Get<Stored<Review>>, KeyError> {
    Ok(Get::new(&EDIT, key(product, customer)?))
}

one_of! {
    pub enum StatsItem { Product ReviewStats }
}

/// Reads the product, then its review statistics.
pub fn stats(product: &ProductId) -> Result<BatchGet<StatsItem>, KeyError> {
    Ok(BatchGet::new(&STATS, vec![product::key(product)?, product::stats_key(product)?]))
}

/// Lists a product's reviews, newest first.
pub fn newest(product: &ProductId) -> Result<Query<ReviewSummary>, KeyError> {
    Ok(Query::new(&NEWEST, newest_partition(product)?, Range::All).descending())
}

/// Lists a product's reviews, best first. Reviews with equal ratings are in order of time, newest
/// first.
pub fn best(product: &ProductId) -> Result<Query<ReviewSummary>, KeyError> {
    Ok(Query::new(&BEST, PartitionKey::of("BEST", &[product])?, Range::All).descending())
}

/// Lists a customer's reviews, newest first.
pub fn by_customer(customer: &CustomerId) -> Result<Query<ReviewSummary>, KeyError> {
    Ok(Query::new(&BY_CUSTOMER, reviewer_partition(customer)?, Range::All).descending())
}
