//! Requests as data, which the `table` crate executes. Only a schema crate makes them, through the
//! traits of [`crate::prelude`].

use std::marker::PhantomData;

use serde_dynamo::AttributeValue;

use crate::expression::{Condition, Expression, Placeholders, Step, render_update};
use crate::item::{CAUSE, Item, MAX_ITEM_BYTES, size};
use crate::key::{Index, Key, MAX_SORT_KEY_BYTES, PartitionKey};
use crate::pattern::{Consistency, Pattern};

/// DynamoDB's limit of actions in one transaction.
pub const MAX_TRANSACTION_ACTIONS: usize = 100;
/// DynamoDB's limit of keys in one BatchGetItem.
pub const MAX_BATCH_GET: usize = 100;
/// DynamoDB's limit of writes in one BatchWriteItem.
pub const MAX_BATCH_WRITE: usize = 25;

/// A read of one item.
#[derive(Debug)]
pub struct Get<T> {
    pub(crate) pattern: &'static Pattern,
    pub(crate) key: Key,
    pub(crate) result: PhantomData<fn() -> T>,
}

impl<T> Get<T> {
    /// Returns the access pattern.
    #[must_use]
    pub const fn pattern(&self) -> &'static Pattern {
        self.pattern
    }

    /// Returns the key of the item.
    #[must_use]
    pub const fn key(&self) -> &Key {
        &self.key
    }

    /// Returns whether the read must be strongly consistent.
    #[must_use]
    pub const fn is_strong(&self) -> bool {
        is_strong(self.pattern)
    }
}

/// A read of many items by key. The result is in the order of the keys, with [`None`] for missing
/// items.
#[derive(Debug)]
pub struct BatchGet<T> {
    pub(crate) pattern: &'static Pattern,
    pub(crate) keys: Vec<Key>,
    pub(crate) result: PhantomData<fn() -> T>,
}

impl<T> BatchGet<T> {
    /// Returns the access pattern.
    #[must_use]
    pub const fn pattern(&self) -> &'static Pattern {
        self.pattern
    }

    /// Returns all keys. The executor splits them into requests of [`MAX_BATCH_GET`] keys.
    #[must_use]
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// Returns whether the read must be strongly consistent.
    #[must_use]
    pub const fn is_strong(&self) -> bool {
        is_strong(self.pattern)
    }
}

const fn is_strong(pattern: &Pattern) -> bool {
    matches!(pattern.consistency, Consistency::Strong(_))
}

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

    /// Returns whether a sort key is in the range.
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
/// For a list with several shards, the executor queries each partition and merges the results. The
/// page ends at one sort key, which is the same for all partitions. Most sort keys end in an id and
/// are unique. If several shards have items with the same sort key, a page contains all of them.
#[derive(Debug)]
pub struct Query<T> {
    pub(crate) pattern: &'static Pattern,
    pub(crate) partitions: Vec<PartitionKey>,
    pub(crate) range: Range,
    pub(crate) newest_first: bool,
    pub(crate) limit: usize,
    pub(crate) after: Option<String>,
    pub(crate) result: PhantomData<fn() -> T>,
}

impl<T> Query<T> {
    /// Sets the maximum number of items in a page, 100 by default. If several shards have items
    /// with the same sort key, the limit counts sort keys.
    #[must_use]
    pub const fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Continues after this sort key, the last one of the previous page.
    #[must_use]
    pub fn after(mut self, sort_key: Option<String>) -> Self {
        self.after = sort_key;
        self
    }

    /// Returns the access pattern.
    #[must_use]
    pub const fn pattern(&self) -> &'static Pattern {
        self.pattern
    }

    /// Returns the index, or [`None`] for the table itself.
    #[must_use]
    pub const fn index(&self) -> Option<Index> {
        self.pattern.index
    }

    /// Returns the partitions to query.
    #[must_use]
    pub fn partitions(&self) -> &[PartitionKey] {
        &self.partitions
    }

    /// Returns the bounds to query, without the keys before the end of the previous page. The
    /// executor drops the item exactly at that end. Returns [`None`] if the range is empty, because
    /// DynamoDB refuses a BETWEEN with reversed bounds.
    #[must_use]
    pub fn bounds(&self) -> Option<Range> {
        if matches!(&self.range, Range::Between(low, high) if low > high) {
            return None;
        }
        let Some(after) = &self.after else { return Some(self.range.clone()) };
        match &self.range {
            // A cursor belongs to one list with its parameters, so the end of a page is always in
            // the range.
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

    /// Returns whether the read is in descending order.
    #[must_use]
    pub const fn is_descending(&self) -> bool {
        self.newest_first
    }

    /// Returns the maximum number of items in a page (see [`Query::limit`]).
    #[must_use]
    pub const fn item_limit(&self) -> usize {
        self.limit
    }

    /// Returns whether the read must be strongly consistent.
    #[must_use]
    pub const fn is_strong(&self) -> bool {
        is_strong(self.pattern)
    }
}

/// This text sorts before every sort key, because key text never starts with a byte below `%`.
const FIRST: &str = "!";
/// The last character of Unicode. A sort key of such characters sorts after every other sort key.
const LAST: &str = "\u{10FFFF}";

/// A write of one item.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// Writes a whole item.
    Put {
        /// The item.
        item: Item,
    },
    /// Changes some attributes of an item.
    Update {
        /// The key of the item.
        key: Key,
        /// The steps of the update expression.
        steps: Vec<Step>,
    },
    /// Deletes an item.
    Delete {
        /// The key of the item.
        key: Key,
    },
    /// Writes nothing and only checks the condition.
    Check {
        /// The key of the item.
        key: Key,
    },
}

/// A write with its condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Guarded {
    /// The write.
    pub write: Write,
    /// The condition of the write, or [`None`] for an unconditional write.
    pub condition: Option<Condition>,
}

impl Guarded {
    /// Returns the same write, which also stores a request's id in the item ([`CAUSE`]). Without an
    /// id, an update removes the stored id of an earlier request, because that request did not
    /// cause this write.
    #[must_use]
    pub fn caused_by(&self, request: Option<&str>) -> Self {
        let mut caused = self.clone();
        match (&mut caused.write, request) {
            (Write::Put { item }, Some(id)) => {
                // If the id makes the item too large, the item is stored without it.
                if size(item) + CAUSE.len() + id.len() <= MAX_ITEM_BYTES {
                    item.inner_mut().insert(CAUSE.to_owned(), AttributeValue::S(id.to_owned()));
                }
            }
            (Write::Update { steps, .. }, Some(id)) => steps.push(Step::Set(CAUSE, AttributeValue::S(id.to_owned()))),
            (Write::Update { steps, .. }, None) => steps.push(Step::Remove(CAUSE)),
            (Write::Put { .. } | Write::Delete { .. } | Write::Check { .. }, _) => {}
        }
        caused
    }

    /// Renders the update and condition expressions with their shared placeholders.
    #[must_use]
    pub fn render(&self) -> Rendered {
        let mut with = Placeholders::default();
        let update = match &self.write {
            Write::Update { steps, .. } => Some(render_update(steps, &mut with)),
            _ => None,
        };
        let condition = self.condition.as_ref().map(|condition| condition.render(&mut with));
        let (names, values) = with.finish();
        Rendered { update, condition, names, values }
    }
}

/// The expressions of one write.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rendered {
    /// The update expression.
    pub update: Option<String>,
    /// The condition expression.
    pub condition: Option<String>,
    /// The placeholders of attribute names: `#0` → attribute name.
    pub names: Vec<(String, String)>,
    /// The placeholders of values: `:0` → value.
    pub values: Vec<(String, AttributeValue)>,
}

/// A conditional write of one item. `R` is the type of the item that an update returns, or `()`.
#[derive(Debug)]
pub struct Single<R> {
    pub(crate) pattern: &'static Pattern,
    pub(crate) guarded: Guarded,
    pub(crate) result: PhantomData<fn() -> R>,
}

impl<R> Single<R> {
    /// Returns the access pattern.
    #[must_use]
    pub const fn pattern(&self) -> &'static Pattern {
        self.pattern
    }

    /// Returns the write with its condition.
    #[must_use]
    pub const fn guarded(&self) -> &Guarded {
        &self.guarded
    }
}

/// Up to 100 writes, all or none. Each write has a label `L`. A refusal has the label of the
/// refused write.
#[derive(Debug, Clone)]
pub struct Transaction<L> {
    pub(crate) pattern: &'static Pattern,
    pub(crate) actions: Vec<(L, Guarded)>,
}

/// The transaction has more actions than DynamoDB allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} actions are more than the {MAX_TRANSACTION_ACTIONS} of one transaction")]
pub struct TooManyActions(pub usize);

impl<L> Transaction<L> {
    /// Returns the access pattern.
    #[must_use]
    pub const fn pattern(&self) -> &'static Pattern {
        self.pattern
    }

    /// Returns the transaction without the actions that have this label.
    #[must_use]
    pub fn without(mut self, label: &L) -> Self
    where
        L: PartialEq,
    {
        self.actions.retain(|(of, _)| of != label);
        self
    }

    /// Returns the actions, in order.
    #[must_use]
    pub fn actions(&self) -> &[(L, Guarded)] {
        &self.actions
    }

    /// Checks the number of actions before DynamoDB refuses them.
    ///
    /// # Errors
    /// [`TooManyActions`] over [`MAX_TRANSACTION_ACTIONS`].
    pub const fn check_size(&self) -> Result<(), TooManyActions> {
        if self.actions.len() > MAX_TRANSACTION_ACTIONS { Err(TooManyActions(self.actions.len())) } else { Ok(()) }
    }
}

/// Unconditional puts and deletes, each independent of the others. Use it only if the order of
/// concurrent writers does not matter. The items have no request id ([`crate::item::CAUSE`]),
/// because DynamoDB makes no stream record for a put that changes nothing. A new id would be a
/// change.
#[derive(Debug)]
pub struct BatchWrite {
    pub(crate) pattern: &'static Pattern,
    pub(crate) writes: Vec<BatchWriteAction>,
}

/// One action of a [`BatchWrite`].
#[derive(Debug, Clone, PartialEq)]
pub enum BatchWriteAction {
    /// Writes a whole item.
    Put(Item),
    /// Deletes an item.
    Delete(Key),
}

impl BatchWrite {
    /// Returns the access pattern.
    #[must_use]
    pub const fn pattern(&self) -> &'static Pattern {
        self.pattern
    }

    /// Returns all writes. The executor splits them into requests of [`MAX_BATCH_WRITE`] writes.
    #[must_use]
    pub fn writes(&self) -> &[BatchWriteAction] {
        &self.writes
    }
}

/// Renders a condition as a single expression, for tests and documentation.
#[must_use]
pub fn render(condition: &Condition) -> Expression {
    let mut with = Placeholders::default();
    let text = condition.render(&mut with);
    let (names, values) = with.finish();
    Expression { text, names, values }
}
