//! A table in memory, which executes the writes of requests.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use key_schema::expression::{Condition, Step};
use key_schema::item::{Entity, FromItem as _, Item, Stored, key_of};
use key_schema::key::Key;
use key_schema::request::{Guarded, Write};
use serde::de::DeserializeOwned;
use serde_dynamo::AttributeValue;

#[derive(Debug, Clone, Default)]
pub struct Memory(BTreeMap<Key, Rc<Item>>);

impl Memory {
    pub fn put<T: Entity>(&mut self, item: &Stored<T>) {
        let item = item.to_item().unwrap();
        self.0.insert(key_of(&item).unwrap(), Rc::new(item));
    }

    pub fn get<T: Entity + DeserializeOwned>(&self, key: &Key) -> Option<Stored<T>> {
        self.0.get(key).map(|item| Stored::from_item((**item).clone()).unwrap())
    }

    /// Returns a number of an item.
    pub fn number(&self, key: &Key, name: &str) -> Option<i64> {
        number(self.0.get(key)?.get(name))
    }

    /// Returns a number of each item whose key begins with this text, in the order of the keys.
    pub fn numbers(&self, beginning: &str, name: &str) -> impl Iterator<Item = Option<i64>> {
        let items = self.0.iter().filter(move |(key, _)| key.pk.as_str().starts_with(beginning));
        items.map(move |(_, item)| number(item.get(name)))
    }

    /// Executes all writes, or none if a condition does not hold. Returns the positions of the refused
    /// writes.
    pub fn transact<'g>(&mut self, writes: impl Iterator<Item = &'g Guarded> + Clone) -> Result<(), Vec<usize>> {
        let holds = |guarded: &Guarded| {
            let item = self.0.get(&target(&guarded.write)).map(|item| &**item);
            guarded.condition.as_ref().is_none_or(|condition| holds(condition, item))
        };
        let refused: Vec<usize> =
            writes.clone().enumerate().filter(|(_, write)| !holds(write)).map(|(at, _)| at).collect();
        if !refused.is_empty() {
            return Err(refused);
        }
        for Guarded { write, .. } in writes {
            let key = target(write);
            match write {
                Write::Put { item } => drop(self.0.insert(key.clone(), Rc::new(item.clone()))),
                Write::Delete { .. } => drop(self.0.remove(&key)),
                Write::Update { steps, .. } => {
                    let item = self.0.entry(key.clone()).or_insert_with(|| Rc::new(keys_of(&key)));
                    steps.iter().for_each(|step| apply(step, Rc::make_mut(item)));
                }
                Write::Check { .. } => {}
            }
        }
        Ok(())
    }
}

/// Returns an item with nothing but its key.
fn keys_of(key: &Key) -> Item {
    let keys = [("PK", key.pk.as_str()), ("SK", key.sk.as_str())];
    let keys = keys.map(|(name, text)| (name.to_owned(), AttributeValue::S(text.to_owned())));
    HashMap::from(keys).into()
}

fn target(write: &Write) -> Key {
    match write {
        Write::Put { item } => key_of(item).unwrap(),
        Write::Update { key, .. } | Write::Delete { key } | Write::Check { key } => key.clone(),
    }
}

fn number(value: Option<&AttributeValue>) -> Option<i64> {
    match value {
        Some(AttributeValue::N(number)) => number.parse().ok(),
        _ => None,
    }
}

fn holds(condition: &Condition, item: Option<&Item>) -> bool {
    let value = |name: &str| item.and_then(|item| item.get(name));
    let compared = |name: &str, bound: &AttributeValue| match (value(name), bound) {
        (Some(AttributeValue::S(text)), AttributeValue::S(bound)) => Some(text.cmp(bound)),
        (found, bound) => Some(number(found)?.cmp(&number(Some(bound))?)),
    };
    match condition {
        Condition::Exists => item.is_some(),
        Condition::NotExists => item.is_none(),
        Condition::Has(name) => value(name).is_some(),
        Condition::Lacks(name) => value(name).is_none(),
        Condition::Is(name, wanted) => value(name) == Some(wanted),
        Condition::AtLeast(name, bound) => compared(name, bound).is_some_and(|order| order.is_ge()),
        Condition::Below(name, bound) => compared(name, bound).is_some_and(|order| order.is_lt()),
        Condition::All(all) => all.iter().all(|condition| holds(condition, item)),
        Condition::Any(any) => any.iter().any(|condition| holds(condition, item)),
        other => panic!("no transaction of stocks has the condition {other:?}"),
    }
}

fn apply(step: &Step, item: &mut Item) {
    let item = item.inner_mut();
    match step {
        Step::Set(name, value) => drop(item.insert((*name).to_owned(), value.clone())),
        Step::SetIfMissing(name, value) => drop(item.entry((*name).to_owned()).or_insert_with(|| value.clone())),
        Step::Remove(name) => drop(item.remove(*name)),
        Step::Add(name, amount) => {
            let sum = number(item.get(*name)).unwrap_or(0) + amount;
            item.insert((*name).to_owned(), AttributeValue::N(sum.to_string()));
        }
        other => panic!("no transaction of stocks has the step {other:?}"),
    }
}
