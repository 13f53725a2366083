//! Relations between an item and items of other partitions, or between two items that change at
//! different times.
//!
//! Each module has two functions. `needs` names the other items. `check` compares them, and writes
//! nothing. So the same comparison runs over a page of the scan, and again over a consistent read.

mod catalogue;
mod community;
pub(super) mod leaderboards;
mod orders;
mod people;
mod picking;
mod promotions;
mod variants;

use std::collections::HashMap;

use key_schema::entity::AnyEntity;
use key_schema::instant::Instant;
use key_schema::item::{Entity, FromItem as _, Item, Meta, Stored};
use key_schema::key::Key;
use key_schema::request::MAX_TRANSACTION_ACTIONS;

use super::{Problem, Skip};
use crate::error::OpsError;
use crate::items::{Check, Repair, RepairWrite, sets};
use crate::verify::report::Kind;

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
        find(self.others, key, self.now)
    }

    /// Returns the repair that writes a missing item, on the condition that `self.item` is
    /// unchanged.
    fn put<T: Entity>(&self, item: &Stored<T>) -> Result<Repair, Skip> {
        Ok(Repair { checks: vec![self.unchanged()], change: RepairWrite::Put(item.to_item().map_err(|_| Skip)?) })
    }

    /// Checks that `self.item` has this claim. `meta` is that of the item, `owner` names its kind, and
    /// `what` the claimed value. The repair writes a missing claim.
    fn claimed<T: Entity + PartialEq>(
        &self,
        meta: &Meta,
        claim: T,
        owner: &str,
        what: &str,
    ) -> Result<Option<Problem>, Skip> {
        let problem = |text: String| Some(Problem::new(Kind::Claim, text));
        match self.find::<T>(&claim.key()?)? {
            None => {
                let repair = self.put(&Stored { meta: meta.clone(), data: claim })?;
                Ok(problem(format!("the claim of the {what} is missing")).map(|problem| problem.repaired_by(repair)))
            }
            Some(held) if held.data != claim => Ok(problem(format!("another {owner} has the claim of the {what}"))),
            Some(_) => Ok(None),
        }
    }

    /// Returns the repair that sets these attributes of another item to their values in `right`, on
    /// the condition that `self.item` is unchanged.
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

    /// Returns the repair that deletes `self.item`, on the condition that the other item is still
    /// missing, or is unchanged since it was read.
    fn delete(&self, other: &Key) -> Repair {
        let checks = vec![Check::of(other, self.others.get(other))];
        Repair { checks, change: RepairWrite::Delete(self.item.clone()) }
    }

    /// Returns the repairs that remove entries of this item, on the condition that the items to
    /// which the entries lead are still missing or unchanged. Each repair is one transaction, and
    /// depends on the result of the one before it.
    fn without<T: Entity + Clone, E>(
        &self,
        item: &Stored<T>,
        name: &str,
        entries: &[(E, Key)],
        remove: impl Fn(&mut T, &E),
    ) -> Result<Vec<Repair>, Skip> {
        let (mut right, mut old, mut repairs) = (item.clone(), self.item.clone(), Vec::new());
        for entries in entries.chunks(MAX_TRANSACTION_ACTIONS - 1) {
            entries.iter().for_each(|(entry, _)| remove(&mut right.data, entry));
            let checks = entries.iter().map(|(_, key)| Check::of(key, self.others.get(key))).collect();
            let change = sets(&old, &right.to_item()?, [name], true);
            if let RepairWrite::Rewrite { new, .. } = &change {
                old = new.clone();
            }
            repairs.push(Repair { checks, change });
        }
        Ok(repairs)
    }

    fn unchanged(&self) -> Check {
        Check::of(self.key, Some(self.item))
    }
}

fn find<T: Entity>(others: &HashMap<Key, Item>, key: &Key, now: Instant) -> Result<Option<Stored<T>>, Skip> {
    let Some(item) = others.get(key) else { return Ok(None) };
    let stored = Stored::<T>::from_item(item.clone()).map_err(|_| Skip)?;
    Ok((!stored.is_expired(now)).then_some(stored))
}

pub(super) fn needs(entity: &AnyEntity) -> Result<Vec<Key>, OpsError> {
    let mut keys = Vec::new();
    people::needs(entity, &mut keys)?;
    catalogue::needs(entity, &mut keys)?;
    community::needs(entity, &mut keys)?;
    orders::needs(entity, &mut keys)?;
    picking::needs(entity, &mut keys)?;
    promotions::needs(entity, &mut keys)?;
    variants::needs(entity, &mut keys)?;
    leaderboards::needs(entity, &mut keys)?;
    Ok(keys)
}

/// Returns the problems of an item's relations. Relations to unreadable items are skipped, because
/// those items are findings themselves.
pub(super) fn check(entity: &AnyEntity, seen: &Seen<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let checks = [
        people::check,
        catalogue::check,
        community::check,
        orders::check,
        picking::check,
        promotions::check,
        variants::check,
        leaderboards::check,
    ];
    for check in checks {
        problems.extend(check(entity, seen).unwrap_or_else(Vec::from));
    }
    problems
}
