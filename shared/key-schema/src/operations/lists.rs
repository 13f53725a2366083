//! Sharded lists whose number of shards can change at run time.
//!
//! The lists of [`GROWING`] begin with [`FIRST`] shards. `ops shards` changes a list's number of
//! shards. An item of such a list has the attribute `list_shards`: the number of shards with which
//! the item's index key was computed. So the key depends only on the item, and a function that
//! changes the item needs no setting. An item without the attribute has [`FIRST`] shards.
//!
//! The settings have the present [`Layout`] of each list. Readers of a list and functions that
//! create its items need the layout.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_dynamo::AttributeValue;

use crate::customer::{self, Customer};
use crate::entity::AnyEntity;
use crate::expression::value;
use crate::item::EncodeError;
use crate::order::{self, Order, OrderLog};
use crate::pattern::Pattern;
use crate::shard::{Layout, Shards};

/// The number of shards of a list that was never changed.
pub const FIRST: Shards = Shards(4);

/// The attribute with the number of shards with which an item's index key was computed.
pub const LIST_SHARDS: &str = "list_shards";

/// The lists whose number of shards can change.
pub const GROWING: [&Pattern; 3] = [&customer::BY_TIER, &order::BY_STATUS, &order::daily_log::OF_DAY];

/// The entities of the items in these lists, in the same order.
pub const ENTITIES: [&str; 3] = [Customer::ENTITY, Order::ENTITY, OrderLog::ENTITY];

/// The layouts of the lists, by the id of their access pattern. A list without an entry has the
/// first layout.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Lists(BTreeMap<String, Layout>);

impl Lists {
    #[must_use]
    pub fn of(&self, list: &Pattern) -> Layout {
        self.0.get(list.id).copied().unwrap_or_else(unchanged)
    }

    #[must_use]
    pub fn with(mut self, list: &Pattern, layout: Layout) -> Self {
        if layout == unchanged() {
            self.0.remove(list.id);
        } else {
            self.0.insert(list.id.to_owned(), layout);
        }
        self
    }

    /// Returns whether every list has the first layout.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns the layout of a list that was never changed.
#[must_use]
pub const fn unchanged() -> Layout {
    Layout::stable(FIRST)
}

pub(crate) const fn first() -> Shards {
    FIRST
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_first(shards: &Shards) -> bool {
    *shards == FIRST
}

/// Returns the field with an item's number of shards. An index entry sets this field together with
/// the index key.
pub(crate) fn field(shards: Shards) -> Result<(&'static str, AttributeValue), EncodeError> {
    Ok((LIST_SHARDS, value((!is_first(&shards)).then_some(shards))?))
}

/// Returns the list of [`GROWING`] that has the item, and the item's number of shards.
#[must_use]
pub const fn entry(entity: &AnyEntity) -> Option<(&'static Pattern, Shards)> {
    match entity {
        AnyEntity::Customer(profile) => Some((&customer::BY_TIER, profile.data.list_shards)),
        AnyEntity::Order(head) => Some((&order::BY_STATUS, head.data.list_shards)),
        AnyEntity::OrderLog(line) => Some((&order::daily_log::OF_DAY, line.data.list_shards)),
        _ => None,
    }
}

/// Returns the item with `shards` as its number of shards, and otherwise unchanged.
#[must_use]
pub fn moved(mut entity: AnyEntity, shards: Shards) -> AnyEntity {
    match &mut entity {
        AnyEntity::Customer(profile) => profile.data.list_shards = shards,
        AnyEntity::Order(head) => head.data.list_shards = shards,
        AnyEntity::OrderLog(line) => line.data.list_shards = shards,
        _ => {}
    }
    entity
}
