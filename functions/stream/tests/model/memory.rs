//! The table in memory. It executes the requests of `key-schema` and their conditions like
//! DynamoDB.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use key_schema::expression::{Condition, Step};
use key_schema::item::{Item, key_of};
use key_schema::key::Key;
use key_schema::request::{BatchWriteAction, Guarded, Query, Range, Write};
use serde_dynamo::AttributeValue;

use crate::world::digest_item;

/// The result of a write. An error has the positions of the refused writes, with the current items.
pub type Refused = Result<(), Vec<(usize, Option<Item>)>>;

/// The items of a table by key.
#[derive(Debug, Clone, Default)]
pub struct MemoryTable {
    items: BTreeMap<Key, Arc<Item>>,
    digests: BTreeMap<Key, u64>,
    /// The number of changes.
    pub changes: usize,
}

impl MemoryTable {
    pub fn get(&self, key: &Key) -> Option<&Item> {
        self.items.get(key).map(|item| &**item)
    }

    pub fn items(&self) -> impl Iterator<Item = (&Key, &Item)> {
        self.items.iter().map(|(key, item)| (key, &**item))
    }

    /// Returns a digest of each item.
    pub fn digests(&self) -> &BTreeMap<Key, u64> {
        &self.digests
    }

    pub fn put(&mut self, item: Item) {
        let key = key_of(&item).unwrap();
        self.changes += 1;
        self.digests.insert(key.clone(), digest_item(&item));
        self.items.insert(key, Arc::new(item));
    }

    pub fn remove(&mut self, key: &Key) {
        self.changes += 1;
        self.digests.remove(key);
        self.items.remove(key);
    }

    /// Returns a page of a query on the table, and the next position if there are more items. The
    /// sinks query no index.
    pub fn query<T>(&self, query: &Query<T>) -> (Vec<Item>, Option<String>) {
        assert!(query.index().is_none(), "the sinks read no index");
        let Some(bounds) = query.bounds() else { return (Vec::new(), None) };
        let covers = |sort: &str| match &bounds {
            Range::All => true,
            range => range.contains(sort) && query.page_end() != Some(sort),
        };
        let mut found: Vec<(&Key, &Item)> =
            self.items().filter(|(key, _)| query.partitions().contains(&key.pk) && covers(key.sk.as_str())).collect();
        found.sort_by_key(|(key, _)| key.sk.clone());
        if query.is_descending() {
            found.reverse();
        }
        let more = found.len() > query.item_limit();
        found.truncate(query.item_limit());
        let next = found.last().filter(|_| more).map(|(key, _)| key.sk.as_str().to_owned());
        (found.into_iter().map(|(_, item)| item.clone()).collect(), next)
    }

    /// Applies all writes, or none. An error has the refused writes' positions and current items.
    pub fn transact(&mut self, writes: &[&Guarded]) -> Refused {
        let refused: Vec<(usize, Option<Item>)> = writes
            .iter()
            .enumerate()
            .filter_map(|(position, guarded)| {
                let current = self.get(&target(&guarded.write));
                let holds = guarded.condition.as_ref().is_none_or(|condition| holds(condition, current));
                (!holds).then(|| (position, current.cloned()))
            })
            .collect();
        if !refused.is_empty() {
            return Err(refused);
        }
        for guarded in writes {
            self.apply(&guarded.write);
        }
        Ok(())
    }

    pub fn batch(&mut self, action: &BatchWriteAction) {
        match action {
            BatchWriteAction::Put(item) => self.put(item.clone()),
            BatchWriteAction::Delete(key) => self.remove(key),
        }
    }

    fn apply(&mut self, write: &Write) {
        match write {
            Write::Put { item } => self.put(item.clone()),
            Write::Delete { key } => self.remove(key),
            Write::Check { .. } => {}
            Write::Update { key, steps } => {
                let mut item = self.get(key).cloned().unwrap_or_else(|| {
                    let mut item = Item::from(HashMap::<String, AttributeValue>::new());
                    item.inner_mut().insert("PK".into(), AttributeValue::S(key.pk.as_str().into()));
                    item.inner_mut().insert("SK".into(), AttributeValue::S(key.sk.as_str().into()));
                    item
                });
                for step in steps {
                    take(step, &mut item);
                }
                self.put(item);
            }
        }
    }
}

/// Returns the key of the item that the write changes.
pub fn target(write: &Write) -> Key {
    match write {
        Write::Put { item } => key_of(item).unwrap(),
        Write::Update { key, .. } | Write::Delete { key } | Write::Check { key } => key.clone(),
    }
}

fn take(step: &Step, item: &mut Item) {
    let attributes = item.inner_mut();
    match step {
        Step::Set(name, value) => drop(attributes.insert((*name).to_owned(), value.clone())),
        Step::SetIfMissing(name, value) => drop(attributes.entry((*name).to_owned()).or_insert_with(|| value.clone())),
        Step::Remove(name) => drop(attributes.remove(*name)),
        Step::Add(name, amount) => {
            let sum = number(attributes.get(*name)).unwrap_or(0) + i128::from(*amount);
            attributes.insert((*name).to_owned(), AttributeValue::N(sum.to_string()));
        }
        other => panic!("the sinks make no such step: {other:?}"),
    }
}

fn holds(condition: &Condition, item: Option<&Item>) -> bool {
    let attribute = |name: &str| item.and_then(|item| item.get(name));
    let compare = |name: &str, value: &AttributeValue| match (attribute(name)?, value) {
        (AttributeValue::N(_), AttributeValue::N(_)) => {
            number(attribute(name)).zip(number(Some(value))).map(|(a, b)| a.cmp(&b))
        }
        (AttributeValue::S(a), AttributeValue::S(b)) => Some(a.cmp(b)),
        (AttributeValue::Bool(a), AttributeValue::Bool(b)) => Some(a.cmp(b)),
        _ => None,
    };
    match condition {
        Condition::Exists => item.is_some(),
        Condition::NotExists => item.is_none(),
        Condition::Has(name) => attribute(name).is_some(),
        Condition::Lacks(name) => attribute(name).is_none(),
        Condition::Is(name, value) => {
            attribute(name) == Some(value) || compare(name, value).is_some_and(std::cmp::Ordering::is_eq)
        }
        Condition::AtLeast(name, value) => compare(name, value).is_some_and(std::cmp::Ordering::is_ge),
        Condition::Below(name, value) => compare(name, value).is_some_and(std::cmp::Ordering::is_lt),
        Condition::All(parts) => parts.iter().all(|part| holds(part, item)),
        Condition::Any(parts) => parts.iter().any(|part| holds(part, item)),
        other => panic!("the sinks make no such condition: {other:?}"),
    }
}

fn number(value: Option<&AttributeValue>) -> Option<i128> {
    match value? {
        AttributeValue::N(digits) => digits.parse().ok(),
        _ => None,
    }
}
