//! Relations between an item and items of other partitions, or between two items that change at
//! different times.
//!
//! Each module has two functions. `needs` names the other items. `check` compares them, and writes
//! nothing. So the same comparison runs over a page of the scan, and again over a consistent read.

mod catalogue;
mod community;
mod orders;
mod people;

use std::collections::HashMap;

use key_schema::entity::AnyEntity;
use key_schema::instant::Instant;
use key_schema::item::{Entity, FromItem as _, Item, Stored};
use key_schema::key::Key;

use super::{Problem, Skip};
use crate::error::OpsError;
use crate::items::{Change, Check, Repair, sets};

/// An item with the other items of its relations.
#[derive(Debug)]
pub(super) struct Seen<'a> {
    pub key: &'a Key,
    pub item: &'a Item,
    pub others: &'a HashMap<Key, Item>,
    pub now: Instant,
}

impl Seen<'_> {
    /// Returns another item, or [`None`] if it does not exist or has expired.
    fn find<T: Entity>(&self, key: &Key) -> Result<Option<Stored<T>>, Skip> {
        let Some(item) = self.others.get(key) else { return Ok(None) };
        let stored = Stored::<T>::from_item(item.clone()).map_err(|_| Skip)?;
        Ok((!stored.is_expired(self.now)).then_some(stored))
    }

    /// Returns the repair that writes a missing item while this item is unchanged.
    fn put<T: Entity>(&self, item: &Stored<T>) -> Result<Repair, Skip> {
        Ok(Repair { checks: vec![self.unchanged()], change: Change::Put(item.to_item().map_err(|_| Skip)?) })
    }

    /// Returns the repair that gives another item these attributes of `right`, while this item is
    /// unchanged.
    fn correct<'n, T: Entity>(
        &self,
        right: &Stored<T>,
        names: impl IntoIterator<Item = &'n str>,
        moves_rev: bool,
    ) -> Result<Repair, Skip> {
        let old = self.others.get(&right.key().map_err(|_| Skip)?).ok_or(Skip)?;
        let change = sets(old, &right.to_item().map_err(|_| Skip)?, names, moves_rev);
        Ok(Repair { checks: vec![self.unchanged()], change })
    }

    /// Returns the repair that deletes this item while the other one is missing or unchanged.
    fn delete(&self, other: &Key) -> Repair {
        let checks = vec![Check::of(other, self.others.get(other))];
        Repair { checks, change: Change::Delete(self.item.clone()) }
    }

    fn unchanged(&self) -> Check {
        Check::of(self.key, Some(self.item))
    }
}

/// Returns the keys of the items to which an item has a relation.
pub(super) fn needs(entity: &AnyEntity) -> Result<Vec<Key>, OpsError> {
    let mut keys = Vec::new();
    people::needs(entity, &mut keys)?;
    catalogue::needs(entity, &mut keys)?;
    community::needs(entity, &mut keys)?;
    orders::needs(entity, &mut keys)?;
    Ok(keys)
}

/// Returns what is wrong with the relations of an item. Relations to unreadable items are skipped,
/// because those items are findings themselves.
pub(super) fn check(entity: &AnyEntity, seen: &Seen<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for check in [people::check, catalogue::check, community::check, orders::check] {
        problems.extend(check(entity, seen).unwrap_or_else(Vec::from));
    }
    problems
}
