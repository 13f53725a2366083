use key_schema::entity::AnyEntity;
use key_schema::item::{EncodeError, FromItem as _, Item, Stored};
use key_schema::key::Key;
use key_schema::lists::{self, ENTITIES, GROWING, LIST_SHARDS};
use key_schema::order::OrderStatus;
use key_schema::pattern::Pattern;
use key_schema::settings::{self, Settings};
use key_schema::shard::{Layout, Shards};

use crate::error::OpsError;
use crate::items::{Repair, RepairWrite, sets};
use crate::migrate::{Migration, Plan, Seen};

/// The reason why an order keeps its old number of shards for now.
const PLACING: &str = "the order is being placed";
/// The reason why an item keeps its old number of shards after another run has changed the list.
const CHANGED: &str = "another run has changed the list";

#[derive(Debug, Clone, Copy)]
pub(crate) struct Move {
    pub(crate) list: &'static Pattern,
    pub(crate) to: Shards,
    /// Whether the run only counts the items to move. Such a run may begin before the list changes.
    pub(crate) is_dry: bool,
}

impl Move {
    /// Returns whether a list with this layout is in the step that moves its items to `to` shards.
    pub(crate) fn is_due(layout: Layout, to: Shards) -> bool {
        !layout.is_stable() && layout.to == to && layout.write == to
    }

    /// Returns whether [`Move::is_due`] holds for the layout of the list. The layout is in the
    /// settings, which the run read after the item.
    fn is_due_in(&self, seen: &Seen<'_>) -> Result<bool, OpsError> {
        let item = seen.others.get(settings::read(0)?.key());
        let settings = item.map(|item| Stored::<Settings>::from_item(item.clone())).transpose();
        let settings = settings.map_err(OpsError::failed)?;
        Ok(settings.is_some_and(|settings| Self::is_due(settings.lists.of(self.list), self.to)))
    }

    /// Returns whether an item belongs to the list and does not have the new number of shards yet.
    fn is_left(&self, entity: &AnyEntity) -> bool {
        lists::entry(entity).is_some_and(|(list, shards)| list == self.list && shards != self.to)
    }
}

impl Migration for Move {
    fn name(&self) -> &'static str {
        self.list.id
    }

    fn about(&self) -> &'static str {
        "items of the list with another number of shards"
    }

    /// Returns only the entity of the list, so that an unreadable item of another entity does not
    /// stop the run.
    fn entities(&self) -> &[&'static str] {
        let at = GROWING.iter().position(|list| *list == self.list);
        at.and_then(|at| ENTITIES.get(at..=at)).unwrap_or_default()
    }

    fn needs(&self, entity: &AnyEntity) -> Result<Vec<Key>, OpsError> {
        Ok(if self.is_left(entity) && !self.is_dry { vec![settings::read(0)?.key().clone()] } else { Vec::new() })
    }

    fn plan(&self, seen: &Seen<'_>) -> Result<Plan, OpsError> {
        if !self.is_left(seen.entity) {
            return Ok(Plan::Done);
        }
        if !self.is_dry && !self.is_due_in(seen)? {
            return Ok(Plan::Keep(CHANGED));
        }
        // The steps of a placement are conditional on the `rev` of the head, so a move now would
        // stop them. The order enters the list when its placement ends, and a later pass moves it.
        if matches!(seen.entity, AnyEntity::Order(head) if head.status == OrderStatus::Placing) {
            return Ok(Plan::Keep(PLACING));
        }
        let Some(change) = moved(seen.item, seen.entity, self.to)? else { return Ok(Plan::Done) };
        Ok(Plan::Write(vec![Repair { checks: Vec::new(), change }]))
    }
}

/// Returns the write that gives an item of a list this number of shards, or [`None`] if the item is
/// not in its list.
pub(crate) fn moved(item: &Item, entity: &AnyEntity, to: Shards) -> Result<Option<RepairWrite>, EncodeError> {
    let Some(index) = lists::entry(entity).and_then(|(list, _)| list.index) else { return Ok(None) };
    let names = [index.partition_attribute(), index.sort_attribute(), LIST_SHARDS];
    if item.get(index.partition_attribute()).is_none() {
        return Ok(None);
    }
    let mut right = lists::moved(entity.clone(), to);
    // While an order is being retired, its head has an expiry, but still has the index key of a
    // head without an expiry.
    if let AnyEntity::Order(head) = &mut right {
        head.data.expires_at = None;
    }
    Ok(Some(sets(item, &right.to_item()?, names, true)))
}
