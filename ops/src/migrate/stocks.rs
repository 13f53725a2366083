//! The migration `stock-partitions`. **Remove it with the release after the first one.**

use key_schema::entity::AnyEntity;
use key_schema::item::{Entity as _, key_of};
use key_schema::key::Key;
use key_schema::product::{self, Stock};

use super::catalogue::{Migration, Plan, Seen};
use crate::error::OpsError;
use crate::items::{Repair, RepairWrite};

/// The reason why a stock keeps its old key: an import has written it beside the present stock.
const BOTH: &str = "the product has a stock under the present key, too: `ops verify --fix` deletes the old one";

/// Moves each stock from the partition of its product to the partition of its first shard.
///
/// The write has the conditions of [`key_schema::product::move_stock`], with which functions move a
/// stock: the old item is unchanged, and the new key is free.
pub(super) struct StockPartitions;

impl Migration for StockPartitions {
    fn name(&self) -> &'static str {
        "stock-partitions"
    }

    fn about(&self) -> &'static str {
        "stocks in the partition of their product, which get a partition of their own"
    }

    fn entities(&self) -> &[&'static str] {
        &[Stock::NAME]
    }

    fn needs(&self, entity: &AnyEntity) -> Result<Vec<Key>, OpsError> {
        let AnyEntity::Stock(stock) = entity else { return Ok(Vec::new()) };
        Ok(vec![stock.key()?, product::old_stock(&stock.product_id)?.key().clone()])
    }

    fn plan(&self, seen: &Seen<'_>) -> Result<Plan, OpsError> {
        let AnyEntity::Stock(stock) = seen.entity else { return Ok(Plan::Done) };
        let Some(key) = key_of(seen.item).filter(|key| product::is_old_stock(stock, key)) else {
            return Ok(Plan::Done);
        };
        if seen.others.contains_key(&stock.key()?) {
            // Usually a function has moved the stock since the command read it.
            return Ok(if seen.others.contains_key(&key) { Plan::Keep(BOTH) } else { Plan::Done });
        }
        let change = RepairWrite::Move { old: seen.item.clone(), new: stock.to_item()? };
        Ok(Plan::Write(vec![Repair { checks: Vec::new(), change }]))
    }
}
