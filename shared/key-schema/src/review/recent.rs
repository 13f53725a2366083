//! The newest reviews of all products.
//!
//! A list of everybody's reviews under one key would push every reviewer and every reader of the shop through one partition. So it is cut by time, a
//! calendar month (UTC), and each month into shards: no collection grows for ever, writers of the same moment spread, and a page is read from the month
//! that it begins in.
//!
//! # A copy
//!
//! The review's three index keys are taken, so its entry here is an item of its own, with all that the list shows, and written whole in each transaction
//! that writes the review: the two never differ. References, to be followed with one more request, would spare the copy's write when a review changes
//! and cost a read of every review of every page; a list that anybody may read is read far more often than reviews change. An entry keeps its place, the
//! instant at which the review was first written.
//!
//! # Quiet months
//!
//! Which months have any reviews is written down as well, so that a reader skips the others: one item a month, put once, before the first review of the month.
//! A month that is noted and empty costs a look; one that is missing would hide its reviews, which is why the note comes first. The notes share a
//! partition, which gets twelve items a year, and is read only by pages that go beyond the month that they begin in.

use serde::{Deserialize, Serialize};

use super::Review;
use crate::change::entity;
use crate::encoding::join;
use crate::expression::Condition;
use crate::id::{CustomerId, ProductId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::pattern::{Consistency, patterns};
use crate::request::{Get, Guarded, Query, Range, Single, Write};
use crate::shard::Shards;

/// The shards of each month.
pub const SHARDS: Shards = Shards(4);
/// How many months one page is read from at most. Whoever asks for more than they have gets a short page and a cursor.
pub const MONTHS_OF_A_PAGE: usize = 12;

entity! {
    /// A review's entry in the list of all.
    RecentReview = "RecentReview" {
        keyed {
            /// Of what.
            product_id: ProductId,
            /// By whom.
            customer_id: CustomerId,
            /// When the review was first written: its place in the list.
            written_at: Instant,
            /// 1 to 5.
            rating: u64,
            /// A headline.
            title: String,
            /// What the customer says.
            text: String,
        }
        free {}
    }
}

impl Entity for RecentReview {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.product_id, &self.customer_id, self.written_at)
    }
}

impl RecentReview {
    /// The entry of a review.
    #[must_use]
    pub fn of(review: &Stored<Review>) -> Stored<Self> {
        let Review { product_id, customer_id, rating, title, text } = &review.data;
        let data = Self {
            product_id: product_id.clone(),
            customer_id: customer_id.clone(),
            written_at: review.meta.created_at,
            rating: *rating,
            title: title.clone(),
            text: text.clone(),
        };
        Stored { meta: review.meta.clone(), data }
    }

    /// Where a page ends that this entry is the last of.
    #[must_use]
    pub fn sort_key(&self) -> String {
        sort_key(&self.product_id, &self.customer_id, self.written_at)
    }
}

fn sort_key(product: &ProductId, customer: &CustomerId, at: Instant) -> String {
    join(&at.to_string(), &[product, customer])
}

fn key(product: &ProductId, customer: &CustomerId, at: Instant) -> Result<Key, KeyError> {
    let sort = sort_key(product, customer, at);
    Ok(Key { pk: partition(&Month::of(at), SHARDS.of(&sort))?, sk: SortKey::new(sort)? })
}

fn partition(month: &Month, shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("RECENTREVIEWS", &[&month.as_str(), &shard])
}

/// A calendar month in UTC, `2017-01`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Month(String);

impl Month {
    /// The month of an instant.
    #[must_use]
    pub fn of(at: Instant) -> Self {
        Self::of_sort_key(&at.to_string())
    }

    /// The month in which a page has ended, which goes on in the same: at an entry, or, when nothing was left of the month, at its beginning.
    #[must_use]
    pub fn of_sort_key(sort_key: &str) -> Self {
        // An instant's text begins with its month.
        Self(sort_key.chars().take(7).collect())
    }

    /// The month's text. As a sort key it is the end of a page that has all of the month.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

entity! {
    /// That a month has reviews.
    ReviewMonth = "ReviewMonth" {
        keyed {
            /// The month.
            month: Month,
        }
        free {}
    }
}

impl Entity for ReviewMonth {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        month_key(&self.month)
    }
}

fn months_partition() -> Result<PartitionKey, KeyError> {
    PartitionKey::new("REVIEWMONTHS")
}

fn month_key(month: &Month) -> Result<Key, KeyError> {
    Ok(Key { pk: months_partition()?, sk: SortKey::new(month.as_str())? })
}

patterns! {
    RECENT = "reviews.recent": ShardedQuery, "PK = RECENTREVIEWS#<month>#<shard>, SK = <written_at>#<product>#<customer>, backward" => "reviews of a month, newest first", Consistency::Eventual, "any", "List the newest reviews of all products", ["GET /v1/reviews/recent"];
    MONTHS = "reviews.months": Query, "PK = REVIEWMONTHS, SK below <month>, backward" => "earlier months that have reviews", Consistency::Eventual, "any", "Skip the months without a review", ["GET /v1/reviews/recent"];
    MONTH = "reviews.month": GetItem, "PK = REVIEWMONTHS, SK = <month>" => "the note, if the month has one", Consistency::Eventual, "owner", "See whether a review's month is noted", ["PUT /v1/products/{id}/reviews/{customer}"];
    ADD_MONTH = "reviews.add-month": PutItem, "PK = REVIEWMONTHS, SK = <month>" => "does not exist", Consistency::Write, "owner", "Note that a month has reviews", ["PUT /v1/products/{id}/reviews/{customer}"];
}

/// Writes a review's entry, for the transaction that writes the review: a new one, and one that a former release did not write.
pub(super) fn enter(review: &Stored<Review>) -> Result<Guarded, EncodeError> {
    Ok(Guarded { write: Write::Put { item: RecentReview::of(review).to_item()? }, condition: None })
}

/// Removes a review's entry, for the transaction that removes the review.
pub(super) fn remove(review: &Stored<Review>) -> Result<Guarded, EncodeError> {
    let key = key(&review.product_id, &review.customer_id, review.meta.created_at)?;
    Ok(Guarded { write: Write::Delete { key }, condition: None })
}

/// The reviews of a month, newest first.
///
/// # Errors
/// [`KeyError`].
pub fn of_month(month: &Month) -> Result<Query<Stored<RecentReview>>, KeyError> {
    let shards = SHARDS.all().map(|shard| partition(month, shard)).collect::<Result<_, _>>()?;
    Ok(Query::sharded(&RECENT, shards, Range::All).descending())
}

/// The months before this one that have reviews, the latest first.
///
/// # Errors
/// [`KeyError`].
pub fn months_before(month: &Month) -> Result<Query<Stored<ReviewMonth>>, KeyError> {
    Ok(Query::new(&MONTHS, months_partition()?, Range::All).descending().after(Some(month.0.clone())))
}

/// Whether a month is noted.
///
/// # Errors
/// [`KeyError`].
pub fn month(month: &Month) -> Result<Get<Stored<ReviewMonth>>, KeyError> {
    Ok(Get::new(&MONTH, month_key(month)?))
}

/// Notes that a month has reviews, if nobody has yet.
///
/// # Errors
/// [`EncodeError`].
pub fn add_month(month: &Stored<ReviewMonth>) -> Result<Single<()>, EncodeError> {
    Ok(Single::new(&ADD_MONTH, Guarded::put(month, Condition::NotExists)?))
}
