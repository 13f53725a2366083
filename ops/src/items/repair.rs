//! Conditional writes of operators. A write creates an item, changes some attributes, moves an item
//! to another key, or deletes an item.
//!
//! Each write, except that of [`Items::put_new`], is a transaction with a token. If the SDK sends
//! the transaction again after a lost response, DynamoDB recognizes the token and does not execute
//! it twice. A write is refused if its item, or an item on which the write depends, has changed
//! since the caller read it. The caller then reads again.

use std::collections::HashMap;

use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    AttributeValue as Sdk, ConditionCheck, Delete, Put, ReturnConsumedCapacity, ReturnValuesOnConditionCheckFailure,
    TransactWriteItem, Update,
};
use key_schema::item::{CAUSE, Item, key_of};
use key_schema::key::Key;
use serde_dynamo::AttributeValue;

use super::{Attributes, Items, attributes, consumed, failure, persist};
use crate::error::OpsError;
use crate::pace::Pace;

/// The attribute that every write of an item changes.
const REV: &str = "rev";
/// If an item is deleted and created again, its `rev` can equal the `rev` that was read, but its
/// `born` differs.
const STATE: [(&str, &str, &str); 2] = [(REV, "#rev", ":rev"), ("born", "#born", ":born")];
/// The cancellation codes of temporary causes. The same write may succeed later.
const LATER: [&str; 3] = ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"];

/// A write that depends on other items.
#[derive(Debug, Clone, PartialEq)]
pub struct Repair {
    /// The other items, which must be unchanged since they were read.
    pub checks: Vec<Check>,
    pub change: RepairWrite,
}

/// The state of an item on which a write depends.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    pub key: Key,
    /// The attributes of the item that show a change, or [`None`] for a missing item.
    state: Option<Item>,
}

impl Check {
    /// Returns the check that an item is as it was read. [`None`] means that no item was found.
    #[must_use]
    pub fn of(key: &Key, item: Option<&Item>) -> Self {
        let kept = |item: &Item| {
            let kept = STATE.iter().filter_map(|(name, ..)| Some(((*name).to_owned(), item.get(*name)?.clone())));
            Item::from(kept.collect::<HashMap<_, _>>())
        };
        Self { key: key.clone(), state: item.map(kept) }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum RepairWrite {
    /// Writes an item whose key is free.
    Put(Item),
    /// Changes the attributes in which the new item differs from the old item, if the old item is
    /// unchanged since it was read.
    Rewrite {
        /// The item as it was read.
        old: Item,
        /// The item after the write.
        new: Item,
    },
    /// Writes an item under another key, which must be free, and deletes it under its old key, if
    /// it is unchanged since it was read.
    Move {
        /// The item as it was read.
        old: Item,
        /// The item after the write.
        new: Item,
    },
    /// Deletes an item if it is unchanged since it was read.
    Delete(Item),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repaired {
    Done,
    /// An item has changed since it was read. Nothing was written.
    Refused,
}

#[must_use]
pub fn set(mut item: Item, name: &str, value: AttributeValue) -> Item {
    item.inner_mut().insert(name.to_owned(), value);
    item
}

/// Returns a change that sets the attributes `names` of an item to their values in `right`. It
/// increases `rev` if `moves_rev` is true. An attribute of `names` that `right` lacks is removed.
/// Attributes outside `names` stay, even unknown ones.
#[must_use]
pub fn sets<'a>(old: &Item, right: &Item, names: impl IntoIterator<Item = &'a str>, moves_rev: bool) -> RepairWrite {
    let mut new = old.clone();
    for name in names {
        match right.get(name) {
            Some(value) => drop(new.inner_mut().insert(name.to_owned(), value.clone())),
            None => drop(new.inner_mut().remove(name)),
        }
    }
    if let (true, Some(AttributeValue::N(rev))) = (moves_rev, old.get(REV))
        && let Ok(rev) = rev.parse::<u64>()
    {
        new = set(new, REV, AttributeValue::N(rev.saturating_add(1).to_string()));
    }
    RepairWrite::Rewrite { old: old.clone(), new }
}

impl Items {
    /// Executes a write unless its item, or an item on which the write depends, has changed since
    /// the caller read it.
    pub async fn repair(&self, repair: &Repair, units: &Pace) -> Result<Repaired, OpsError> {
        let mut actions = self.actions(&repair.change)?;
        for check in &repair.checks {
            let Condition { text, names, values } =
                check.state.as_ref().map_or_else(Condition::missing, Condition::same);
            let build = ConditionCheck::builder().table_name(&self.table).set_key(Some(attributes(&check.key)));
            let build = build.condition_expression(text).set_expression_attribute_names(some(names));
            let build = build.set_expression_attribute_values(some(values)).build().map_err(OpsError::failed)?;
            actions.push(TransactWriteItem::builder().condition_check(build).build());
        }
        persist(async || {
            let write = self.client.transact_write_items().set_transact_items(Some(actions.clone()));
            let answer = write.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await;
            let error = match answer {
                Ok(answer) => {
                    units.admit(consumed(answer.consumed_capacity())).await;
                    return Ok(Repaired::Done);
                }
                Err(error) => error,
            };
            let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) = error.as_service_error()
            else {
                return Err(failure(&error));
            };
            let codes = || cancelled.cancellation_reasons().iter().filter_map(|reason| reason.code());
            if codes().any(|code| code == "ConditionalCheckFailed") {
                return Ok(Repaired::Refused);
            }
            if codes().any(|code| LATER.contains(&code)) {
                return Err(OpsError::Unreachable { what: "the table", reason: "another writer".to_owned() });
            }
            Err(OpsError::Failed(format!("the table refused a write: {}", codes().collect::<Vec<_>>().join(", "))))
        })
        .await
    }

    /// Writes an item if its key is free. Otherwise returns the item that has the key. The write is
    /// no transaction, so it costs half as much as [`Items::repair`].
    pub async fn put_new(&self, item: &Item, units: &Pace) -> Result<Option<Item>, OpsError> {
        let attributes: Attributes = item.clone().into();
        persist(async || {
            let put = self.client.put_item().table_name(&self.table).set_item(Some(attributes.clone()));
            let put = put.condition_expression("attribute_not_exists(PK)");
            let put = put.return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
            match put.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await {
                Ok(answer) => {
                    units.admit(consumed(answer.consumed_capacity())).await;
                    Ok(None)
                }
                Err(error) => match error.as_service_error() {
                    Some(PutItemError::ConditionalCheckFailedException(refused)) => {
                        Ok(Some(refused.item().cloned().unwrap_or_default().into()))
                    }
                    Some(PutItemError::TransactionConflictException(_)) => {
                        Err(OpsError::Unreachable { what: "the table", reason: "another writer".to_owned() })
                    }
                    _ => Err(failure(&error)),
                },
            }
        })
        .await
    }

    fn actions(&self, change: &RepairWrite) -> Result<Vec<TransactWriteItem>, OpsError> {
        let action = TransactWriteItem::builder();
        match change {
            RepairWrite::Put(item) => {
                let put = Put::builder().table_name(&self.table).set_item(Some(item.clone().into()));
                let put = put.condition_expression("attribute_not_exists(PK)").build();
                Ok(vec![action.put(put.map_err(OpsError::failed)?).build()])
            }
            RepairWrite::Move { old, new } => {
                let [put, delete] = [RepairWrite::Put(new.clone()), RepairWrite::Delete(old.clone())];
                Ok([self.actions(&put)?, self.actions(&delete)?].concat())
            }
            RepairWrite::Rewrite { old, new } => {
                let (update, mut names, mut values) = difference(old, new);
                let condition = Condition::same(old);
                names.extend(condition.names);
                values.extend(condition.values);
                let build = Update::builder().table_name(&self.table).set_key(Some(attributes(&keyed(old)?)));
                let build = build.update_expression(update).condition_expression(condition.text);
                let build = build.set_expression_attribute_names(some(names));
                let build = build.set_expression_attribute_values(some(values)).build();
                Ok(vec![action.update(build.map_err(OpsError::failed)?).build()])
            }
            RepairWrite::Delete(old) => {
                let Condition { text, names, values } = Condition::same(old);
                let build = Delete::builder().table_name(&self.table).set_key(Some(attributes(&keyed(old)?)));
                let build = build.condition_expression(text).set_expression_attribute_names(some(names));
                let build = build.set_expression_attribute_values(some(values)).build();
                Ok(vec![action.delete(build.map_err(OpsError::failed)?).build()])
            }
        }
    }
}

fn keyed(item: &Item) -> Result<Key, OpsError> {
    key_of(item).ok_or_else(|| OpsError::Failed("an item has no key".to_owned()))
}

#[derive(Default)]
struct Condition {
    text: String,
    names: HashMap<String, String>,
    values: Attributes,
}

impl Condition {
    fn missing() -> Self {
        Self { text: "attribute_not_exists(PK)".to_owned(), ..Self::default() }
    }

    /// Returns the condition that an item is as it was read.
    fn same(read: &Item) -> Self {
        let mut condition = Self::default();
        let parts = STATE.map(|(attribute, name, placeholder)| {
            condition.names.insert(name.to_owned(), attribute.to_owned());
            match read.get(attribute) {
                Some(value) => {
                    condition.values.insert(placeholder.to_owned(), value.clone().into());
                    format!("{name} = {placeholder}")
                }
                None => format!("attribute_not_exists({name})"),
            }
        });
        Self { text: format!("attribute_exists(PK) AND {}", parts.join(" AND ")), ..condition }
    }
}

/// Returns a map unless it is empty, because DynamoDB refuses empty maps.
fn some<V>(map: HashMap<String, V>) -> Option<HashMap<String, V>> {
    (!map.is_empty()).then_some(map)
}

/// Returns the update expression that turns one item into the other. It also removes the id of the
/// request that last wrote the item, because that request did not cause this write.
fn difference(old: &Item, new: &Item) -> (String, HashMap<String, String>, Attributes) {
    let (mut set, mut remove) = (Vec::new(), Vec::new());
    let (mut names, mut values): (HashMap<String, String>, HashMap<String, Sdk>) = Default::default();
    let mut name = |attribute: &str| {
        let placeholder = format!("#a{}", names.len());
        names.insert(placeholder.clone(), attribute.to_owned());
        placeholder
    };
    for (attribute, value) in new.iter().filter(|(attribute, _)| attribute.as_str() != CAUSE) {
        if old.get(attribute) != Some(value) {
            let placeholder = name(attribute);
            let number = format!(":v{}", values.len());
            set.push(format!("{placeholder} = {number}"));
            values.insert(number, value.clone().into());
        }
    }
    for (attribute, _) in old.iter() {
        if attribute == CAUSE || new.get(attribute).is_none() {
            remove.push(name(attribute));
        }
    }
    let clauses = [("SET", set), ("REMOVE", remove)].into_iter().filter(|(_, parts)| !parts.is_empty());
    let clauses: Vec<String> = clauses.map(|(word, parts)| format!("{word} {}", parts.join(", "))).collect();
    (clauses.join(" "), names, values)
}
