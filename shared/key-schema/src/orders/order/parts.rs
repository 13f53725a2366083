//! Reads of an order's head with only the lines, or with only the history.
//!
//! The sort keys of the lines are before the head's sort key, and the sort keys of the history are
//! after it. So one Query reads either part together with the head. A caller of these functions
//! needs the head to check the client's right to see the order.

use item_model::prelude::*;

use super::partition;
use super::requests::{COLLECTION, OrderItem};
use crate::id::OrderId;
use crate::key::KeyError;
use crate::pattern::Consistency;
use crate::request::{Query, Range};

patterns! {
    WITH_LINES {
        id: "orders.with-lines",
        purpose: "Read an order's lines with its head",
        request: Query,
        key: "PK = ORDER#<id>, SK from ITEM# to ORDER",
        returns: "lines, head",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    WITH_HISTORY {
        id: "orders.with-history",
        purpose: "Read an order's history with its head",
        request: Query,
        key: "PK = ORDER#<id>, SK from ORDER to STATUS$",
        returns: "head, history",
        consistency: Consistency::Strong("a mail about a change must have the change's message"),
        callers: "owner",
    }
}

/// Reads an order's lines, then the head.
pub fn with_lines(id: &OrderId) -> Result<Query<OrderItem>, KeyError> {
    let range = Range::Between("ITEM#".into(), "ORDER".into());
    Ok(Query::new(&WITH_LINES, partition(id)?, range).limit(COLLECTION))
}

/// Reads an order's head, then the history.
pub fn with_history(id: &OrderId) -> Result<Query<OrderItem>, KeyError> {
    let range = Range::Between("ORDER".into(), "STATUS$".into());
    Ok(Query::new(&WITH_HISTORY, partition(id)?, range).limit(COLLECTION))
}
