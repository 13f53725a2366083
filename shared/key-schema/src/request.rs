//! Requests as data: what the `table` crate executes. Only the access-pattern functions of this crate make them.

use std::marker::PhantomData;

use serde_dynamo::AttributeValue;

use crate::change::Change;
use crate::expression::{Condition, Expression, Placeholders, Step, render_update};
use crate::item::{CAUSE, EncodeError, Entity, Item, MAX_ITEM_BYTES, Stored, size};
use crate::key::{Index, Key, PartitionKey};
use crate::pattern::{Consistency, Pattern};

/// DynamoDB's limit of actions in one transaction.
pub const MAX_TRANSACTION_ACTIONS: usize = 100;
/// DynamoDB's limit of keys in one BatchGetItem.
pub const MAX_BATCH_GET: usize = 100;
/// DynamoDB's limit of writes in one BatchWriteItem.
pub const MAX_BATCH_WRITE: usize = 25;

/// Reads one item.
#[derive(Debug)]
pub struct Get<T> {
    pattern: &'static Pattern,
    key: Key,
    result: PhantomData<fn() -> T>,
}

impl<T> Get<T> {
    pub(crate) const fn new(pattern: &'static Pattern, key: Key) -> Self {
        Self { pattern, key, result: PhantomData }
    }

    /// The access pattern.
    #[must_use]
    pub const fn pattern(&self) -> &'static Pattern {
        self.pattern
    }

    /// The item's key.
    #[must_use]
    pub const fn key(&self) -> &Key {
        &self.key
    }

    /// Whether the read must be strongly consistent.
    #[must_use]
    pub const fn is_strong(&self) -> bool {
        is_strong(self.pattern)
    }
}

/// Reads many items by key; the answer has them in the order of the keys, `None` where there is none.
#[derive(Debug)]
pub struct BatchGet<T> {
    pattern: &'static Pattern,
    keys: Vec<Key>,
    result: PhantomData<fn() -> T>,
}

impl<T> BatchGet<T> {
    pub(crate) const fn new(pattern: &'static Pattern, keys: Vec<Key>) -> Self {
        Self { pattern, keys, result: PhantomData }
    }

    /// The access pattern.
    #[must_use]
    pub const fn pattern(&self) -> &'static Pattern {
        self.pattern
    }

    /// The keys, as many as there are; the executor splits them into requests of [`MAX_BATCH_GET`].
    #[must_use]
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// Whether the read must be strongly consistent.
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
    /// From the first text to the second.
    Between(String, String),
}

impl Range {
    /// Everything that starts with `prefix#`.
    #[must_use]
    pub fn under(prefix: &str) -> Self {
        Self::Between(format!("{prefix}#"), format!("{prefix}$"))
    }

    /// Whether a sort key is in the range.
    #[must_use]
    pub fn contains(&self, sort_key: &str) -> bool {
        match self {
            Self::All => true,
            Self::Between(low, high) => low.as_str() <= sort_key && sort_key <= high.as_str(),
        }
    }
}

/// Reads a range of one or more item collections in sort-key order.
///
/// With several partitions (the shards of one list) the executor asks each and merges. One text, the last sort key that
/// was given out, is where every partition goes on: most sort keys end in an id, and a page has all items of those that
/// several shards have.
#[derive(Debug)]
pub struct Query<T> {
    pattern: &'static Pattern,
    partitions: Vec<PartitionKey>,
    range: Range,
    newest_first: bool,
    limit: usize,
    after: Option<String>,
    result: PhantomData<fn() -> T>,
}

impl<T> Query<T> {
    pub(crate) fn new(pattern: &'static Pattern, partition: PartitionKey, range: Range) -> Self {
        Self::sharded(pattern, vec![partition], range)
    }

    pub(crate) fn sharded(pattern: &'static Pattern, partitions: Vec<PartitionKey>, range: Range) -> Self {
        Self { pattern, partitions, range, newest_first: false, limit: MAX_BATCH_GET, after: None, result: PhantomData }
    }

    /// Reads from the far end.
    #[must_use]
    pub(crate) const fn descending(mut self) -> Self {
        self.newest_first = true;
        self
    }

    /// At most so many items, or sort keys where shards have items under the same ones; 100 unless said.
    #[must_use]
    pub const fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Goes on behind this sort key, which a former page ended with.
    #[must_use]
    pub fn after(mut self, sort_key: Option<String>) -> Self {
        self.after = sort_key;
        self
    }

    /// The access pattern.
    #[must_use]
    pub const fn pattern(&self) -> &'static Pattern {
        self.pattern
    }

    /// The index, or the table itself.
    #[must_use]
    pub const fn index(&self) -> Option<Index> {
        self.pattern.index
    }

    /// The partitions to ask.
    #[must_use]
    pub fn partitions(&self) -> &[PartitionKey] {
        &self.partitions
    }

    /// The bounds to ask for, with the former page's end worked in; the executor drops the item that lies
    /// exactly on that end. `None` when nothing can be there: DynamoDB refuses a BETWEEN whose bounds are the wrong way round.
    #[must_use]
    pub fn bounds(&self) -> Option<Range> {
        if matches!(&self.range, Range::Between(low, high) if low > high) {
            return None;
        }
        let Some(after) = &self.after else { return Some(self.range.clone()) };
        match &self.range {
            // A cursor is bound to its parameters, so the end of a page lies in the range; were it outside,
            // clamping would still never give out anything twice.
            Range::Between(low, high) if self.newest_first => {
                (low <= after).then(|| Range::Between(low.clone(), high.min(after).clone()))
            }
            Range::Between(low, high) => (after <= high).then(|| Range::Between(low.max(after).clone(), high.clone())),
            Range::All if self.newest_first => Some(Range::Between(FIRST.into(), after.clone())),
            Range::All => Some(Range::Between(after.clone(), LAST.into())),
        }
    }

    /// The sort key that the former page ended with.
    #[must_use]
    pub fn page_end(&self) -> Option<&str> {
        self.after.as_deref()
    }

    /// Whether the read goes backward.
    #[must_use]
    pub const fn is_descending(&self) -> bool {
        self.newest_first
    }

    /// At most so many items.
    #[must_use]
    pub const fn item_limit(&self) -> usize {
        self.limit
    }

    /// Whether the read must be strongly consistent.
    #[must_use]
    pub const fn is_strong(&self) -> bool {
        is_strong(self.pattern)
    }
}

/// Before every sort key of this crate: they begin with a letter or a digit.
const FIRST: &str = "!";
/// After every sort key of this crate: the last character there is.
const LAST: &str = "\u{10FFFF}";

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// A whole item.
    Put {
        /// The item.
        item: Item,
    },
    /// Some attributes.
    Update {
        /// Of which item.
        key: Key,
        /// The update expression's steps.
        steps: Vec<Step>,
    },
    /// A removal.
    Delete {
        /// Of which item.
        key: Key,
    },
    /// No write: the condition alone, on an item of the same transaction's concern.
    Check {
        /// On which item.
        key: Key,
    },
}

/// A write and what must hold for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Guarded {
    /// The write.
    pub write: Write,
    /// What must hold; `None` for always.
    pub condition: Option<Condition>,
}

impl Guarded {
    pub(crate) fn put<T: Entity>(item: &Stored<T>, condition: Condition) -> Result<Self, EncodeError> {
        Ok(Self { write: Write::Put { item: item.to_item()? }, condition: Some(condition) })
    }

    pub(crate) fn update<T: Entity>(key: Key, change: Change<T>, condition: Condition) -> Self {
        Self { write: Write::Update { key, steps: change.into_steps() }, condition: Some(condition) }
    }

    pub(crate) const fn delete(key: Key, condition: Condition) -> Self {
        Self { write: Write::Delete { key }, condition: Some(condition) }
    }

    pub(crate) const fn check(key: Key, condition: Condition) -> Self {
        Self { write: Write::Check { key }, condition: Some(condition) }
    }

    /// The same write on behalf of a request, whose id the item then has ([`CAUSE`]). Without one it is nobody's: an update then takes away what an
    /// earlier request has left, which did not cause it.
    #[must_use]
    pub fn caused_by(&self, request: Option<&str>) -> Self {
        let mut caused = self.clone();
        match (&mut caused.write, request) {
            (Write::Put { item }, Some(id)) => {
                // Better without the id than not at all.
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

    /// The update and condition expressions with their shared placeholders.
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
    /// `#0` → attribute name.
    pub names: Vec<(String, String)>,
    /// `:0` → value.
    pub values: Vec<(String, AttributeValue)>,
}

/// One conditional write on its own. `R` is the item that comes back (see [`Single::returns`]).
#[derive(Debug)]
pub struct Single<R> {
    pattern: &'static Pattern,
    guarded: Guarded,
    result: PhantomData<fn() -> R>,
}

impl<R> Single<R> {
    pub(crate) const fn new(pattern: &'static Pattern, guarded: Guarded) -> Self {
        Self { pattern, guarded, result: PhantomData }
    }

    /// The access pattern.
    #[must_use]
    pub const fn pattern(&self) -> &'static Pattern {
        self.pattern
    }

    /// The write.
    #[must_use]
    pub const fn guarded(&self) -> &Guarded {
        &self.guarded
    }
}

/// Up to 100 writes, all or none. Each carries a label of the caller's, `L`, that names what its refusal means.
#[derive(Debug)]
pub struct Transaction<L> {
    pattern: &'static Pattern,
    actions: Vec<(L, Guarded)>,
}

/// More actions than DynamoDB takes in one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} actions are more than the {MAX_TRANSACTION_ACTIONS} of one transaction")]
pub struct TooManyActions(pub usize);

impl<L> Transaction<L> {
    pub(crate) const fn new(pattern: &'static Pattern) -> Self {
        Self { pattern, actions: Vec::new() }
    }

    pub(crate) fn action(mut self, label: L, guarded: Guarded) -> Self {
        self.actions.push((label, guarded));
        self
    }

    /// The access pattern.
    #[must_use]
    pub const fn pattern(&self) -> &'static Pattern {
        self.pattern
    }

    /// The actions, in order.
    #[must_use]
    pub fn actions(&self) -> &[(L, Guarded)] {
        &self.actions
    }

    /// Checks the number of actions before DynamoDB does.
    ///
    /// # Errors
    /// [`TooManyActions`] over [`MAX_TRANSACTION_ACTIONS`].
    pub const fn check_size(&self) -> Result<(), TooManyActions> {
        if self.actions.len() > MAX_TRANSACTION_ACTIONS { Err(TooManyActions(self.actions.len())) } else { Ok(()) }
    }
}

/// Unconditional puts and deletes, each on its own. Only for items that are the same whoever writes them, and therefore without the id of a request
/// ([`crate::item::CAUSE`]): DynamoDB passes over a put that changes nothing, and a new id would make a record of the stream out of it.
#[derive(Debug)]
pub struct BatchWrite {
    pattern: &'static Pattern,
    writes: Vec<BatchWriteAction>,
}

/// One action of a [`BatchWrite`].
#[derive(Debug, Clone, PartialEq)]
pub enum BatchWriteAction {
    /// Writes an item whole.
    Put(Item),
    /// Removes an item.
    Delete(Key),
}

impl BatchWrite {
    pub(crate) const fn new(pattern: &'static Pattern, writes: Vec<BatchWriteAction>) -> Self {
        Self { pattern, writes }
    }

    /// The access pattern.
    #[must_use]
    pub const fn pattern(&self) -> &'static Pattern {
        self.pattern
    }

    /// The writes, as many as there are; the executor splits them into requests of [`MAX_BATCH_WRITE`].
    #[must_use]
    pub fn writes(&self) -> &[BatchWriteAction] {
        &self.writes
    }
}

/// An expression on its own, for tests and documentation.
#[must_use]
pub fn render(condition: &Condition) -> Expression {
    let mut with = Placeholders::default();
    let text = condition.render(&mut with);
    let (names, values) = with.finish();
    Expression { text, names, values }
}
