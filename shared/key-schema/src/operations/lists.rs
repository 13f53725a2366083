//! Sharded lists whose number of shards changes while the shop runs.
//!
//! The lists of [`GROWING`] begin with [`FIRST`] shards. `ops shards` changes the number of a list.
//! An item of such a list has the attribute `list_shards`: the number by which its index key was
//! derived. So its key depends only on the item, and a function that changes the item needs no
//! setting. Items of earlier versions do not have the attribute. Their number is [`FIRST`].
//!
//! The settings have the present [`Layout`] of each list. Readers need it, and functions that
//! create items.

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

/// The attribute with the number by which an item's index key was derived.
pub const LIST_SHARDS: &str = "list_shards";

/// The lists whose number of shards can change.
pub const GROWING: [&Pattern; 3] = [&customer::BY_TIER, &order::BY_STATUS, &order::daily_log::OF_DAY];

/// The entities of the items in these lists.
pub const ENTITIES: [&str; 3] = [Customer::ENTITY, Order::ENTITY, OrderLog::ENTITY];

/// The layouts of the lists, by the id of their access pattern. A list without an entry has the
/// first layout.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Lists(BTreeMap<String, Layout>);

impl Lists {
    /// Returns the layout of a list.
    #[must_use]
    pub fn of(&self, list: &Pattern) -> Layout {
        self.0.get(list.id).copied().unwrap_or_else(unchanged)
    }

    /// Sets the layout of a list.
    #[must_use]
    pub fn with(mut self, list: &Pattern, layout: Layout) -> Self {
        if layout == unchanged() {
            self.0.remove(list.id);
        } else {
            self.0.insert(list.id.to_owned(), layout);
        }
        self
    }

    /// Returns whether no list was changed.
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

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
pub(crate) fn is_first(shards: &Shards) -> bool {
    *shards == FIRST
}

/// Returns the field of an item's number, which an index entry sets together with its key.
pub(crate) fn field(shards: Shards) -> Result<(&'static str, AttributeValue), EncodeError> {
    Ok((LIST_SHARDS, value((!is_first(&shards)).then_some(shards))?))
}

/// Returns the list of an entity, and the number of the item.
#[must_use]
pub const fn entry(entity: &AnyEntity) -> Option<(&'static Pattern, Shards)> {
    match entity {
        AnyEntity::Customer(profile) => Some((&customer::BY_TIER, profile.data.list_shards)),
        AnyEntity::Order(head) => Some((&order::BY_STATUS, head.data.list_shards)),
        AnyEntity::OrderLog(line) => Some((&order::daily_log::OF_DAY, line.data.list_shards)),
        _ => None,
    }
}

/// Returns the item with another number, and otherwise the same.
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
