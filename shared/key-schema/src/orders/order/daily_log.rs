//! The log lines of all orders by day.
//!
//! A day has several partitions in the index. The shard is computed from the id of the order, so
//! the writes of a busy day are spread over these partitions. The index projects the id of a line,
//! but not its author, and already projects 20 attributes, the most that DynamoDB allows. So a
//! reader reads the lines of a page by key.

use item_model::prelude::*;
use serde::Deserialize;

use super::OrderLog;
use crate::encoding::join;
use crate::id::LogId;
use crate::index::GSI3;
use crate::item::Stored;
use crate::key::{IndexKey, KeyError, PartitionKey, SortKey};
use crate::pattern::Consistency;
use crate::request::{BatchGet, Query, Range};
use crate::shard::Layout;

patterns! {
    OF_DAY {
        id: "orders.log-of-day",
        purpose: "List the log lines of all orders on a day",
        request: ShardedQuery on GSI3,
        key: "GSI3PK = LOGDAY#<day>#<shard>, GSI3SK = <at>#<id>",
        returns: "ids of log lines, oldest first",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
    READ {
        id: "orders.log-lines",
        purpose: "Read the log lines of a page",
        request: BatchGetItem,
        key: "PK = LOG#<id>, SK = LOG, for each id",
        returns: "the log lines",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
}

/// A log line as the list of a day returns it. The id is enough to read the line by key.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LoggedLine {
    pub id: LogId,
}

view!(LoggedLine of OrderLog);

impl OrderLog {
    /// Returns the key of the line in the list of its day.
    pub(super) fn day_key(&self) -> Result<IndexKey, KeyError> {
        Ok(IndexKey {
            index: GSI3,
            partition: day_partition(&self.at.day(), self.list_shards.of(self.order_id.as_str()))?,
            sort: SortKey::new(join(&self.at.to_string(), &[&self.id]))?,
        })
    }
}

fn day_partition(day: &str, shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("LOGDAY", &[&day, &shard])
}

/// Lists the log lines of all orders on a day (`2017-01-01`, UTC), oldest first. `layout` is the
/// list's present layout.
pub fn of_day(day: &str, layout: Layout) -> Result<Query<LoggedLine>, KeyError> {
    Query::in_layout(&OF_DAY, layout, |shard| Ok(vec![day_partition(day, shard)?]), Range::All)
}

pub fn read<'a>(ids: impl IntoIterator<Item = &'a LogId>) -> Result<BatchGet<Stored<OrderLog>>, KeyError> {
    Ok(BatchGet::new(&READ, ids.into_iter().map(super::log::log_key).collect::<Result<_, _>>()?))
}
