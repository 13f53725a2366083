//! The newest reviews of all products.
//!
//! In a single partition, the list would grow for ever, and all writers and readers would share its
//! throughput. So each calendar month (UTC) has its own partitions, the shards. A reader starts
//! with the month in which its page begins.
//!
//! # Why an entry is a copy
//!
//! The review already uses all three indexes, so the list needs a separate item for each review.
//! This item, the entry, copies all attributes that the list shows. Each transaction that writes
//! the review also writes the whole entry, so the two never differ.
//!
//! If an entry had only a reference to the review, a change of the review would not write the
//! entry. But each page would then cost a read of every review on it. The list is public, and reads
//! are far more frequent than changes. The key of an entry never changes, because it contains the
//! instant at which the review was first written.
//!
//! # Months without reviews
//!
//! One [`ReviewMonth`] item records that a month has reviews, so that a reader skips the other
//! months. A request writes this item once, before the month's first review. A recorded month
//! without reviews costs one extra read. A missing item would hide the month's reviews, which is
//! why a request writes it first. All these items share a partition. It gets twelve items a year,
//! and a reader needs it only for a page that continues beyond its first month.

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use super::Review;
use crate::encoding::join;
use crate::expression::Condition;
use crate::id::{CustomerId, ProductId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::pattern::Consistency;
use crate::request::{Get, Guarded, Query, Range, Single};
use crate::shard::Shards;

pub const SHARDS: Shards = Shards(4);
/// The maximum number of months in one page. A page that would need more months ends early and has
/// a cursor.
pub const MONTHS_OF_A_PAGE: usize = 12;

entity! {
    /// A review's entry in the list of all reviews.
    RecentReview = "RecentReview" {
        fixed {
            product_id: ProductId,
            customer_id: CustomerId,
            /// The instant at which the review was first written, which is its position in the
            /// list.
            written_at: Instant,
            /// The rating, 1 to 5.
            rating: u64,
            #[serde(skip_serializing_if = "Option::is_none", default)]
            display_name: Option<String>,
            title: String,
            text: String,
        }
        mutable {}
    }
}

impl Entity for RecentReview {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.product_id, &self.customer_id, self.written_at)
    }
}

impl RecentReview {
    #[must_use]
    pub fn of(review: &Stored<Review>) -> Stored<Self> {
        let Review { product_id, customer_id, rating, display_name, title, text } = &review.data;
        let data = Self {
            product_id: product_id.clone(),
            customer_id: customer_id.clone(),
            written_at: review.meta.created_at,
            rating: *rating,
            display_name: display_name.clone(),
            title: title.clone(),
            text: text.clone(),
        };
        Stored { meta: review.meta.clone(), data }
    }

    /// Returns the entry's sort key, which marks the end of a page that ends with this entry.
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

/// A calendar month in UTC, such as `2017-01`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Month(String);

impl Month {
    #[must_use]
    pub fn of(at: Instant) -> Self {
        Self::of_sort_key(&at.to_string())
    }

    /// Returns the month in which the next page continues. `sort_key` marks the end of a page. It
    /// is the sort key of the page's last entry, or the text of a month that the page completes.
    #[must_use]
    pub fn of_sort_key(sort_key: &str) -> Self {
        // The text of an instant starts with its month.
        Self(sort_key.chars().take(7).collect())
    }

    /// Returns the month's text. As a sort key, the text marks the end of a page that completes the
    /// month.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

entity! {
    ReviewMonth = "ReviewMonth" {
        fixed {
            month: Month,
        }
        mutable {}
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
    RECENT {
        id: "reviews.recent",
        purpose: "List the newest reviews of all products",
        request: ShardedQuery,
        key: "PK = RECENTREVIEWS#<month>#<shard>, SK = <written_at>#<product>#<customer>, backward",
        returns: "reviews of a month, newest first",
        consistency: Consistency::Eventual,
        callers: "any",
    }
    MONTHS {
        id: "reviews.months",
        purpose: "Skip the months without a review",
        request: Query,
        key: "PK = REVIEWMONTHS, SK below <month>, backward",
        returns: "earlier months that have reviews",
        consistency: Consistency::Eventual,
        callers: "any",
    }
    MONTH {
        id: "reviews.month",
        purpose: "Check whether a review's month has a `ReviewMonth`",
        request: GetItem,
        key: "PK = REVIEWMONTHS, SK = <month>",
        returns: "the `ReviewMonth`, if there is one",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    ADD_MONTH {
        id: "reviews.add-month",
        purpose: "Note that a month has reviews",
        request: PutItem,
        key: "PK = REVIEWMONTHS, SK = <month>",
        requires: "does not exist",
        callers: "owner",
    }
}

/// Writes a review's entry, for the transaction that writes the review.
pub(super) fn enter(review: &Stored<Review>) -> Result<Guarded, EncodeError> {
    Guarded::overwrite(&RecentReview::of(review))
}

pub(super) fn remove(review: &Stored<Review>) -> Result<Guarded, EncodeError> {
    Ok(Guarded::remove(key(&review.product_id, &review.customer_id, review.meta.created_at)?))
}

/// Lists the reviews of a month, newest first.
pub fn of_month(month: &Month) -> Result<Query<Stored<RecentReview>>, KeyError> {
    let shards = SHARDS.all().map(|shard| partition(month, shard)).collect::<Result<_, _>>()?;
    Ok(Query::sharded(&RECENT, shards, Range::All).descending())
}

/// Lists the recorded months before this month, the latest first.
pub fn months_before(month: &Month) -> Result<Query<Stored<ReviewMonth>>, KeyError> {
    Ok(Query::new(&MONTHS, months_partition()?, Range::All).descending().after(Some(month.0.clone())))
}

/// Reads the [`ReviewMonth`] of a month, if there is one.
pub fn month(month: &Month) -> Result<Get<Stored<ReviewMonth>>, KeyError> {
    Ok(Get::new(&MONTH, month_key(month)?))
}

/// Records that a month has reviews, if it is not recorded yet.
pub fn add_month(month: &Stored<ReviewMonth>) -> Result<Single<()>, EncodeError> {
    Ok(Single::new(&ADD_MONTH, Guarded::put(month, Condition::NotExists)?))
}
