//! Reads of a range of sort keys, in one item collection or in the shards of a list.

use std::marker::PhantomData;

use crate::item::Raw;
use crate::key::{Index, MAX_SORT_KEY_BYTES, PartitionKey};
use crate::pattern::Pattern;
use crate::request::is_strong;

/// The sort keys that a query covers, both bounds included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Range {
    /// The whole item collection.
    All,
    /// The keys from the first text to the second.
    Between(String, String),
}

impl Range {
    /// Returns the range of all keys that start with `prefix#`.
    #[must_use]
    pub fn under(prefix: &str) -> Self {
        Self::Between(format!("{prefix}#"), format!("{prefix}$"))
    }

    #[must_use]
    pub fn contains(&self, sort_key: &str) -> bool {
        match self {
            Self::All => true,
            Self::Between(low, high) => low.as_str() <= sort_key && sort_key <= high.as_str(),
        }
    }
}

/// A read of a range of one or more item collections, in sort-key order.
///
/// For a list with several shards, the crate `table` queries each partition and merges the results.
/// The page ends at one sort key, which is the same for all partitions. Most sort keys end in an id
/// and are unique. If several shards have items with the same sort key, a page contains all of
/// them.
#[derive(Debug, Clone)]
pub struct Query<T> {
    pub(crate) plan: Plan,
    pub(crate) result: PhantomData<fn() -> T>,
}

impl<T> Query<T> {
    /// Returns the same request for the items as they are stored.
    #[must_use]
    pub fn raw(self) -> Query<Raw> {
        Query { plan: self.plan, result: PhantomData }
    }

    /// Sets the maximum number of items in a page, 100 by default. Items of several shards that
    /// have the same sort key count as one.
    #[must_use]
    pub const fn limit(mut self, limit: usize) -> Self {
        self.plan.limit = limit;
        self
    }

    /// Continues after this sort key, which is the last sort key of the previous page.
    #[must_use]
    pub fn after(mut self, sort_key: Option<String>) -> Self {
        self.plan.after = sort_key;
        self
    }
}

impl<T> std::ops::Deref for Query<T> {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        &self.plan
    }
}

/// A [`Query`] without the type of its items. A program contains the code that executes it once, and
/// not once for each type.
#[derive(Debug, Clone)]
pub struct Plan {
    pub(crate) pattern: &'static Pattern,
    pub(crate) partitions: Vec<PartitionKey>,
    pub(crate) first: usize,
    pub(crate) range: Range,
    pub(crate) newest_first: bool,
    pub(crate) limit: usize,
    pub(crate) after: Option<String>,
}

impl Plan {
    #[must_use]
    pub const fn pattern(&self) -> &'static Pattern {
        self.pattern
    }

    /// Returns the index, or [`None`] for the table itself.
    #[must_use]
    pub const fn index(&self) -> Option<Index> {
        self.pattern.index
    }

    #[must_use]
    pub fn partitions(&self) -> &[PartitionKey] {
        &self.partitions
    }

    /// Returns the partitions to query first, and the partitions to query afterwards. Items may
    /// leave the first partitions while the number of shards changes. Without such a change, the
    /// first slice is empty.
    #[must_use]
    pub fn steps(&self) -> (&[PartitionKey], &[PartitionKey]) {
        self.partitions.split_at(self.first.min(self.partitions.len()))
    }

    /// Returns the bounds to query, without the keys before the end of the previous page. The crate
    /// `table` drops the item that is exactly at this end. Returns [`None`] if the range is empty,
    /// because DynamoDB refuses a BETWEEN with reversed bounds.
    #[must_use]
    pub fn bounds(&self) -> Option<Range> {
        if matches!(&self.range, Range::Between(low, high) if low > high) {
            return None;
        }
        let Some(after) = &self.after else { return Some(self.range.clone()) };
        match &self.range {
            // The end of the page may be outside this range, because a list can consist of several
            // queries with separate ranges.
            Range::Between(low, high) if self.newest_first => {
                (low <= after).then(|| Range::Between(low.clone(), high.min(after).clone()))
            }
            Range::Between(low, high) => (after <= high).then(|| Range::Between(low.max(after).clone(), high.clone())),
            Range::All if self.newest_first => Some(Range::Between(FIRST.into(), after.clone())),
            Range::All => Some(Range::Between(after.clone(), LAST.repeat(MAX_SORT_KEY_BYTES / LAST.len()))),
        }
    }

    /// Returns the last sort key of the previous page.
    #[must_use]
    pub fn page_end(&self) -> Option<&str> {
        self.after.as_deref()
    }

    #[must_use]
    pub const fn is_descending(&self) -> bool {
        self.newest_first
    }

    #[must_use]
    pub const fn item_limit(&self) -> usize {
        self.limit
    }

    #[must_use]
    pub const fn is_strong(&self) -> bool {
        is_strong(self.pattern)
    }
}

/// This text sorts before every sort key, because key text never starts with a byte below `%`.
const FIRST: &str = "!";
/// The last character of Unicode. A sort key of such characters sorts after every other sort key.
const LAST: &str = "\u{10FFFF}";
