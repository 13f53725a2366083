//! Gives the items of a list their new number of shards.

use key_schema::entity::AnyEntity;
use key_schema::item::{EncodeError, Item};
use key_schema::key::Key;
use key_schema::lists::{self, ENTITIES, LIST_SHARDS};
use key_schema::order::OrderStatus;
use key_schema::pattern::Pattern;
use key_schema::shard::Shards;

use crate::error::OpsError;
use crate::items::{Change, Repair, sets};
use crate::migrate::{Plan, Seen, Work};

/// The reason why an order keeps its number for now.
const PLACING: &str = "the order is being placed";

/// The work that moves the items of a list to their new shards.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Move {
    /// The list.
    pub(crate) list: &'static Pattern,
    /// The new number of shards.
    pub(crate) to: Shards,
}

impl Work for Move {
    fn name(&self) -> &'static str {
        self.list.id
    }

    fn entities(&self) -> &[&'static str] {
        &ENTITIES
    }

    fn needs(&self, _: &AnyEntity) -> Result<Vec<Key>, OpsError> {
        Ok(Vec::new())
    }

    fn plan(&self, seen: &Seen<'_>) -> Result<Plan, OpsError> {
        let Some((list, shards)) = lists::entry(seen.entity) else { return Ok(Plan::Done) };
        if list != self.list || shards == self.to {
            return Ok(Plan::Done);
        }
        // The steps of a placement are conditional on the `rev` of the head. The order enters the
        // list with its number when the placement ends, so a later pass moves it.
        if matches!(seen.entity, AnyEntity::Order(head) if head.status == OrderStatus::Placing) {
            return Ok(Plan::Keep(PLACING));
        }
        let Some(change) = moved(seen.item, seen.entity, self.to)? else { return Ok(Plan::Done) };
        Ok(Plan::Write(vec![Repair { checks: Vec::new(), change }]))
    }
}

/// Returns the write that gives an item of a list another number, or [`None`] if the item is not in
/// its list.
pub(crate) fn moved(item: &Item, entity: &AnyEntity, to: Shards) -> Result<Option<Change>, EncodeError> {
    let Some(index) = lists::entry(entity).and_then(|(list, _)| list.index) else { return Ok(None) };
    let names = [index.partition_attribute(), index.sort_attribute(), LIST_SHARDS];
    if item.get(index.partition_attribute()).is_none() {
        return Ok(None);
    }
    let mut right = lists::moved(entity.clone(), to);
    // While an order is being retired, its head has an expiry and is still in its list.
    if let AnyEntity::Order(head) = &mut right {
        head.data.expires_at = None;
    }
    Ok(Some(sets(item, &right.to_item()?, names, true)))
}
