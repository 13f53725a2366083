use item_model::prelude::*;

use super::{ADD_LOG, LOG, LogLine, OrderAction, OrderStatus, key};
use crate::encoding::join;
use crate::expression::{Condition, first_alive, value};
use crate::id::{LogId, OrderId};
use crate::index::GSI1;
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Meta, Stored};
use crate::key::{IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::lists;
use crate::request::{Guarded, Query, Range, Transaction};
use crate::shard::Shards;

entity! {
    /// A line of the log that staff keep about an order. Each line has its own partition, so a long
    /// log does not enlarge the order's item collection. One index key puts the line into the log
    /// of its order. A second index key puts it into the list of its day ([`super::daily_log`]).
    OrderLog = "OrderLog" {
        fixed {
            id: LogId,
            order_id: OrderId,
            at: Instant,
            /// The member of staff who wrote the line.
            by: String,
            /// The number of shards with which the line's index key in the list of its day is
            /// computed ([`crate::lists`]).
            #[serde(skip_serializing_if = "lists::is_first", default = "lists::first")]
            list_shards: Shards,
        }
        mutable by OrderLogChanges {
            text: String,
        }
    }
}

impl Entity for OrderLog {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        log_key(&self.id)
    }

    fn index_keys(&self, _: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        let of_order = IndexKey {
            index: GSI1,
            partition: log_partition(&self.order_id)?,
            sort: SortKey::new(join(&self.at.to_string(), &[&self.id]))?,
        };
        Ok(vec![of_order, self.day_key()?])
    }
}

pub(super) fn log_key(id: &LogId) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("LOG", &[id])?, sk: SortKey::new("LOG")? })
}

pub(super) fn log_partition(order: &OrderId) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("ORDERLOG", &[order])
}

fn alive(now: Instant) -> Condition {
    Condition::Lacks("expires_at").or(Condition::AtLeast("expires_at", first_alive(now)))
}

/// Adds a line to an order's log. DynamoDB refuses the write if the order does not exist, has
/// expired, or is invisible (status `placing`).
pub fn add_log(line: &Stored<OrderLog>) -> Result<Transaction<OrderAction>, EncodeError> {
    let placed = Condition::IsNot("status", value(OrderStatus::Placing)?);
    let visible = Condition::Exists.and(alive(line.at)).and(placed);
    Ok(Transaction::new(&ADD_LOG)
        .action(OrderAction::History, Guarded::put(line, Condition::NotExists)?)
        .action(OrderAction::Order, Guarded::check(key(&line.order_id)?, visible)))
}

/// Lists an order's log, oldest line first.
pub fn log(order: &OrderId) -> Result<Query<LogLine>, KeyError> {
    Ok(Query::new(&LOG, log_partition(order)?, Range::All))
}
