//! Requests as data, which the `table` crate executes. Only a schema crate makes them, through the
//! traits of [`crate::prelude`].

use std::marker::PhantomData;

use serde_dynamo::AttributeValue;

use crate::expression::{Condition, Expression, Placeholders, Step, render_update};
use crate::item::{CAUSE, Item, MAX_ITEM_BYTES, Raw, size};
use crate::key::Key;
use crate::pattern::{Consistency, Pattern};

pub use crate::query::{Plan, Query, Range};

/// DynamoDB's limit of actions in one transaction.
pub const MAX_TRANSACTION_ACTIONS: usize = 100;
/// DynamoDB's limit of keys in one BatchGetItem.
pub const MAX_BATCH_GET: usize = 100;
/// DynamoDB's limit of writes in one BatchWriteItem.
pub const MAX_BATCH_WRITE: usize = 25;

#[derive(Debug)]
pub struct Get<T> {
    pub(crate) pattern: &'static Pattern,
    pub(crate) key: Key,
    pub(crate) result: PhantomData<fn() -> T>,
}

impl<T> Get<T> {
    /// Returns the same request for the item as it is stored.
    #[must_use]
    pub fn raw(self) -> Get<Raw> {
        Get { pattern: self.pattern, key: self.key, result: PhantomData }
    }

    #[must_use]
    pub const fn pattern(&self) -> &'static Pattern {
        self.pattern
    }

    #[must_use]
    pub const fn key(&self) -> &Key {
        &self.key
    }

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
    /// Returns the same request for the items as they are stored.
    #[must_use]
    pub fn raw(self) -> BatchGet<Raw> {
        BatchGet { pattern: self.pattern, keys: self.keys, result: PhantomData }
    }

    #[must_use]
    pub const fn pattern(&self) -> &'static Pattern {
        self.pattern
    }

    /// Returns all keys. The crate `table` splits them into requests of at most [`MAX_BATCH_GET`]
    /// keys.
    #[must_use]
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    #[must_use]
    pub const fn is_strong(&self) -> bool {
        is_strong(self.pattern)
    }
}

pub(crate) const fn is_strong(pattern: &Pattern) -> bool {
    matches!(pattern.consistency, Consistency::Strong(_))
}

#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// Writes a whole item.
    Put {
        item: Item,
    },
    /// Changes some attributes of an item.
    Update {
        key: Key,
        steps: Vec<Step>,
    },
    Delete {
        key: Key,
    },
    /// Writes nothing and only checks the condition.
    Check {
        key: Key,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Guarded {
    pub write: Write,
    /// The condition of the write, or [`None`] for an unconditional write.
    pub condition: Option<Condition>,
}

impl Guarded {
    /// Returns the same write, which also stores a request's id in the item ([`CAUSE`]). Without an
    /// id, an update removes the id that an earlier request stored. That request did not cause this
    /// write.
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

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rendered {
    pub update: Option<String>,
    pub condition: Option<String>,
    /// The placeholders of attribute names: `#0` → attribute name.
    pub names: Vec<(String, String)>,
    /// The placeholders of values: `:0` → value.
    pub values: Vec<(String, AttributeValue)>,
}

/// A write of one item, with or without a condition. `R` is the type of the item that an update
/// returns, or `()`.
#[derive(Debug)]
pub struct Single<R> {
    pub(crate) pattern: &'static Pattern,
    pub(crate) guarded: Guarded,
    pub(crate) result: PhantomData<fn() -> R>,
}

impl<R> Single<R> {
    #[must_use]
    pub const fn pattern(&self) -> &'static Pattern {
        self.pattern
    }

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
#[error("a transaction of {0} actions exceeds the limit of {MAX_TRANSACTION_ACTIONS}")]
pub struct TooManyActions(pub usize);

impl<L> Transaction<L> {
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

    #[must_use]
    pub fn actions(&self) -> &[(L, Guarded)] {
        &self.actions
    }

    /// Checks that the number of actions is within DynamoDB's limit.
    ///
    /// # Errors
    /// [`TooManyActions`] over [`MAX_TRANSACTION_ACTIONS`].
    pub const fn check_size(&self) -> Result<(), TooManyActions> {
        if self.actions.len() > MAX_TRANSACTION_ACTIONS { Err(TooManyActions(self.actions.len())) } else { Ok(()) }
    }
}

/// Unconditional puts and deletes, each independent of the others. Use a batch only if the order of
/// concurrent writers does not matter. The items have no request id ([`crate::item::CAUSE`]). So a
/// repeated put changes nothing, and DynamoDB makes no stream record for it.
#[derive(Debug)]
pub struct BatchWrite {
    pub(crate) pattern: &'static Pattern,
    pub(crate) writes: Vec<BatchWriteAction>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum BatchWriteAction {
    Put(Item),
    Delete(Key),
}

impl BatchWrite {
    #[must_use]
    pub const fn pattern(&self) -> &'static Pattern {
        self.pattern
    }

    /// Returns all writes. The crate `table` splits them into requests of at most
    /// [`MAX_BATCH_WRITE`] writes.
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
