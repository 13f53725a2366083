use std::collections::HashMap;

use key_schema::entity::AnyEntity;
use key_schema::item::Item;
use key_schema::key::Key;

use crate::error::OpsError;
use crate::items::Repair;
use crate::migrate::stocks::StockPartitions;

/// A change of stored items to a new form, one item at a time.
pub trait Migration: Sync {
    fn name(&self) -> &'static str;

    fn about(&self) -> &'static str;

    fn entities(&self) -> &[&'static str];

    /// Returns the keys of the other items on which the plan for an item depends.
    fn needs(&self, _: &AnyEntity) -> Result<Vec<Key>, OpsError> {
        Ok(Vec::new())
    }

    /// Returns the work that is left for an item, and writes nothing.
    fn plan(&self, seen: &Seen<'_>) -> Result<Plan, OpsError>;
}

/// An item as it was read, with the items on which its new form depends.
#[derive(Debug)]
pub struct Seen<'a> {
    pub item: &'a Item,
    pub entity: &'a AnyEntity,
    /// The items on which the new form depends, as far as they exist.
    pub others: &'a HashMap<Key, Item>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Plan {
    /// Nothing: the item has the new form.
    Done,
    /// These writes, in this order. Each is a transaction of its own. If the run ends between two
    /// of them, the next plan for the item has the rest.
    Write(Vec<Repair>),
    /// The item keeps its old form, for this reason.
    Keep(&'static str),
}

/// The migrations of this release, in the order in which operators run them.
pub const ALL: [&dyn Migration; 1] = [&StockPartitions];

#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Migration> {
    ALL.into_iter().find(|migration| migration.name() == name)
}
