//! Macros, traits and functions with which a schema crate declares entities and access patterns.
//!
//! A schema crate exports the types of requests, but not this module. So a crate that uses only the
//! schema crate can execute requests and read their results. It cannot make requests, because the
//! constructors are methods of traits that it cannot name.

use std::marker::PhantomData;

use serde::Serialize;
use serde_dynamo::AttributeValue;

use crate::change::Change;
use crate::expression::{Condition, Step, number, value};
pub use crate::id::Born;
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Index, Key, KeyError, PartitionKey};
use crate::pattern::Pattern;
use crate::request::{
    BatchGet, BatchWrite, BatchWriteAction, Get, Guarded, MAX_BATCH_GET, Plan, Query, Range, Single, Transaction, Write,
};
use crate::shard::Layout;
pub use crate::{entity, ids, one_of, patterns, view};

/// Makes a request from its pattern and its content.
pub trait Request {
    /// The keys or writes of the request.
    type Content;

    fn new(pattern: &'static Pattern, content: Self::Content) -> Self;
}

impl<T> Request for Get<T> {
    type Content = Key;

    fn new(pattern: &'static Pattern, key: Key) -> Self {
        Self { pattern, key, result: PhantomData }
    }
}

impl<T> Request for BatchGet<T> {
    type Content = Vec<Key>;

    fn new(pattern: &'static Pattern, keys: Vec<Key>) -> Self {
        Self { pattern, keys, result: PhantomData }
    }
}

impl<R> Request for Single<R> {
    type Content = Guarded;

    fn new(pattern: &'static Pattern, guarded: Guarded) -> Self {
        Self { pattern, guarded, result: PhantomData }
    }
}

impl Request for BatchWrite {
    type Content = Vec<BatchWriteAction>;

    fn new(pattern: &'static Pattern, writes: Vec<BatchWriteAction>) -> Self {
        Self { pattern, writes }
    }
}

/// Makes a [`Query`].
pub trait QueryRequest: Sized {
    /// Reads a range of one item collection.
    fn new(pattern: &'static Pattern, partition: PartitionKey, range: Range) -> Self {
        Self::sharded(pattern, vec![partition], range)
    }

    /// Reads the same range of several item collections, the shards of one list.
    fn sharded(pattern: &'static Pattern, partitions: Vec<PartitionKey>, range: Range) -> Self;

    /// Reads the same range of every shard of a list whose number of shards may change. The
    /// function `partitions` returns the item collections of one shard. Two items of the list must
    /// not have the same sort key.
    fn in_layout(
        pattern: &'static Pattern,
        layout: Layout,
        partitions: impl Fn(u32) -> Result<Vec<PartitionKey>, KeyError>,
        range: Range,
    ) -> Result<Self, KeyError>;

    /// Reverses the direction, so that the read starts at the last sort key.
    #[must_use]
    fn descending(self) -> Self;
}

impl<T> QueryRequest for Query<T> {
    fn sharded(pattern: &'static Pattern, partitions: Vec<PartitionKey>, range: Range) -> Self {
        let (newest_first, limit) = (false, MAX_BATCH_GET);
        let plan = Plan { pattern, partitions, first: 0, range, newest_first, limit, after: None };
        Self { plan, result: PhantomData }
    }

    fn in_layout(
        pattern: &'static Pattern,
        layout: Layout,
        partitions: impl Fn(u32) -> Result<Vec<PartitionKey>, KeyError>,
        range: Range,
    ) -> Result<Self, KeyError> {
        let all = |shards: std::ops::Range<u32>| shards.map(&partitions).collect::<Result<Vec<_>, _>>();
        let [leaving, others] = layout.steps();
        let (mut read, others) = (all(leaving)?.concat(), all(others)?.concat());
        let first = read.len();
        read.extend(others);
        let mut query = Self::sharded(pattern, read, range);
        query.plan.first = first;
        Ok(query)
    }

    fn descending(mut self) -> Self {
        self.plan.newest_first = true;
        self
    }
}

/// Makes a [`Transaction`].
pub trait TransactionRequest<L>: Sized {
    /// Makes a transaction without actions.
    fn new(pattern: &'static Pattern) -> Self;

    /// Adds an action. If its condition fails, the refusal has this label.
    #[must_use]
    fn action(self, label: L, guarded: Guarded) -> Self;

    /// Adds an action if there is one.
    #[must_use]
    fn optional(self, label: L, guarded: Option<Guarded>) -> Self {
        match guarded {
            Some(guarded) => self.action(label, guarded),
            None => self,
        }
    }
}

impl<L> TransactionRequest<L> for Transaction<L> {
    fn new(pattern: &'static Pattern) -> Self {
        Self { pattern, actions: Vec::new() }
    }

    fn action(mut self, label: L, guarded: Guarded) -> Self {
        self.actions.push((label, guarded));
        self
    }
}

/// Makes a write with its condition, or without a condition.
pub trait GuardedWrite: Sized {
    fn put<T: Entity>(item: &Stored<T>, condition: Condition) -> Result<Self, EncodeError>;

    /// Changes some attributes of an item.
    fn update<T: Entity>(key: Key, change: Change<T>, condition: Condition) -> Self;

    fn delete(key: Key, condition: Condition) -> Self;

    /// Checks a condition on an item that the transaction does not write.
    fn check(key: Key, condition: Condition) -> Self;

    /// Writes a whole item, without a condition.
    fn overwrite<T: Entity>(item: &Stored<T>) -> Result<Self, EncodeError>;

    /// Changes some attributes of an item, or creates the item, without a condition.
    fn modify<T: Entity>(key: Key, change: Change<T>) -> Self;

    /// Deletes an item if it exists, without a condition.
    fn remove(key: Key) -> Self;
}

impl GuardedWrite for Guarded {
    fn put<T: Entity>(item: &Stored<T>, condition: Condition) -> Result<Self, EncodeError> {
        Ok(Self { write: Write::Put { item: item.to_item()? }, condition: Some(condition) })
    }

    fn update<T: Entity>(key: Key, change: Change<T>, condition: Condition) -> Self {
        Self { write: Write::Update { key, steps: change.into_steps() }, condition: Some(condition) }
    }

    fn delete(key: Key, condition: Condition) -> Self {
        Self { write: Write::Delete { key }, condition: Some(condition) }
    }

    fn check(key: Key, condition: Condition) -> Self {
        Self { write: Write::Check { key }, condition: Some(condition) }
    }

    fn overwrite<T: Entity>(item: &Stored<T>) -> Result<Self, EncodeError> {
        Ok(Self { write: Write::Put { item: item.to_item()? }, condition: None })
    }

    fn modify<T: Entity>(key: Key, change: Change<T>) -> Self {
        Self { write: Write::Update { key, steps: change.into_steps() }, condition: None }
    }

    fn remove(key: Key) -> Self {
        Self { write: Write::Delete { key }, condition: None }
    }
}

/// Changes fields by name. The schema crate decides which fields other crates may change, and how.
pub trait ChangeFields: Sized {
    /// Begins another incarnation of the item under the same key. `born` and `created_at` are new,
    /// while `version` and `rev` continue.
    #[must_use]
    fn reborn(self, born: &Born, at: Instant) -> Self;

    #[must_use]
    fn leave(self, index: Index) -> Self;

    /// Sets a field. A `None` removes the attribute.
    fn set(self, name: &'static str, to: impl Serialize) -> Result<Self, EncodeError>;

    fn set_entry(self, map: &'static str, entry: &str, to: impl Serialize) -> Result<Self, EncodeError>;

    #[must_use]
    fn remove_entry(self, map: &'static str, entry: &str) -> Self;

    /// Adds to a number. A missing number counts as 0.
    #[must_use]
    fn add(self, name: &'static str, amount: i64) -> Self;

    /// Adds to the number in an attribute whose name comes from data, such as a currency.
    #[must_use]
    fn add_named(self, name: &str, amount: i64) -> Self;

    #[must_use]
    fn include(self, set: &'static str, member: &str) -> Self;

    #[must_use]
    fn exclude(self, set: &'static str, member: &str) -> Self;

    /// Sets the time to live.
    #[must_use]
    fn expire_at(self, at: Instant) -> Self;
}

impl<E: Entity> ChangeFields for Change<E> {
    fn reborn(mut self, born: &Born, at: Instant) -> Self {
        self.steps.push(Step::Set("born", AttributeValue::S(born.to_string())));
        self.steps.push(Step::Set("created_at", AttributeValue::S(at.to_string())));
        self
    }

    fn leave(mut self, index: Index) -> Self {
        self.steps.push(Step::Remove(index.partition_attribute()));
        self.steps.push(Step::Remove(index.sort_attribute()));
        self
    }

    fn set(self, name: &'static str, to: impl Serialize) -> Result<Self, EncodeError> {
        let to = value(to)?;
        Ok(self.set_value(name, to))
    }

    fn set_entry(mut self, map: &'static str, entry: &str, to: impl Serialize) -> Result<Self, EncodeError> {
        self.steps.push(Step::SetEntry(map, entry.to_owned(), value(to)?));
        Ok(self)
    }

    fn remove_entry(mut self, map: &'static str, entry: &str) -> Self {
        self.steps.push(Step::RemoveEntry(map, entry.to_owned()));
        self
    }

    fn add(mut self, name: &'static str, amount: i64) -> Self {
        self.steps.push(Step::Add(name, amount));
        self
    }

    fn add_named(mut self, name: &str, amount: i64) -> Self {
        self.steps.push(Step::AddNamed(name.to_owned(), amount));
        self
    }

    fn include(mut self, set: &'static str, member: &str) -> Self {
        self.steps.push(Step::Include(set, member.to_owned()));
        self
    }

    fn exclude(mut self, set: &'static str, member: &str) -> Self {
        self.steps.push(Step::Exclude(set, member.to_owned()));
        self
    }

    fn expire_at(mut self, at: Instant) -> Self {
        self.steps.push(Step::Set("ttl", number(at.as_seconds())));
        self
    }
}
