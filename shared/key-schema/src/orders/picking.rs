//! The queue of picking jobs. Paid orders wait for a picking station of the warehouse, and the
//! number of stations is limited.
//!
//! One item stores the set of the orders at stations. A condition on the set's size enforces the
//! limit. Adding an order to the set twice has no further effect. Each waiting order is another
//! item in the same partition, sorted by order id and therefore by time of placement. Adding and
//! removing are idempotent, and every step is one transaction.
//!
//! # One partition
//!
//! Every item of the queue is in the partition `PICKING`. A single partition usually limits the
//! throughput too much. Here it does not: all changes of the stations write one item anyway, and a
//! warehouse needs few writes. A partition takes 1,000 write units a second, and an order costs
//! fewer than 20 of them from its payment to its shipment. That allows 50 orders a second, or four
//! million a day.
//! Readers take only a few waiting orders from the front of the list, however long it is.

use std::collections::BTreeSet;

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::expression::{Condition, value};
use crate::id::{Born, OrderId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::order::{self, OrderStatus};
use crate::pattern::Consistency;
use crate::request::{Get, Guarded, Query, Range, Transaction};

/// The maximum number of picking stations of a warehouse. A set of 100 orders has 4 KB, and every
/// change rewrites it.
pub const MAX_STATIONS: usize = 100;

/// The orders that have a picking station.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PickingStations {
    /// The orders. DynamoDB has no empty set, so the attribute is absent if there are none.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default, with = "serde_dynamo::string_set")]
    pub jobs: BTreeSet<OrderId>,
}

impl Entity for PickingStations {
    const NAME: &'static str = "PickingStations";

    fn key(&self) -> Result<Key, KeyError> {
        stations_key()
    }
}

entity! {
    WaitingJob = "WaitingJob" {
        fixed {
            order_id: OrderId,
        }
        mutable {}
    }
}

impl Entity for WaitingJob {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        waiting_key(&self.order_id)
    }
}

fn partition() -> Result<PartitionKey, KeyError> {
    PartitionKey::new("PICKING")
}

fn stations_key() -> Result<Key, KeyError> {
    Ok(Key { pk: partition()?, sk: SortKey::new("STATIONS")? })
}

fn waiting_key(order: &OrderId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition()?, sk: SortKey::of("WAITING", &[order])? })
}

patterns! {
    STATIONS {
        id: "picking.stations",
        purpose: "Read which orders are being picked",
        request: GetItem,
        key: "PK = PICKING, SK = STATIONS",
        returns: "the orders that have a picking station",
        consistency: Consistency::Strong("an outdated read could show no free station although an \
            order has left its station"),
        callers: "staff",
    }
    WAITING {
        id: "picking.waiting",
        purpose: "List the orders that wait for a picking station",
        request: Query,
        key: "PK = PICKING, SK under WAITING#",
        returns: "waiting orders, in the order of placement",
        consistency: Consistency::Strong("the event that frees a station must see every waiting \
            order"),
        callers: "staff",
    }
    WAIT {
        id: "picking.wait",
        purpose: "Add a paid order to the waiting list",
        request: TransactWriteItems,
        key: "PK = PICKING, SK = WAITING#<order>; PK = ORDER#<order>, SK = ORDER (check)",
        requires: "the order is not in the waiting list yet, and is paid or being picked",
        callers: "system",
    }
    ADMIT {
        id: "picking.admit",
        purpose: "Give a waiting order a station",
        request: TransactWriteItems,
        key: "PK = PICKING, SK = WAITING#<order>, STATIONS; PK = ORDER#<order>, SK = ORDER (check)",
        requires: "the order waits, and is paid or being picked; it has a station already, or a \
            station is free",
        callers: "system",
    }
    LEAVE {
        id: "picking.leave",
        purpose: "Remove an order from the waiting list and from its station",
        request: TransactWriteItems,
        key: "PK = PICKING, SK = WAITING#<order>, STATIONS",
        requires: "no condition",
        callers: "system",
    }
}

/// A refusal names the action whose condition failed. The variant says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PickingAction {
    /// The order is neither paid nor being picked.
    Order,
    /// For [`wait`], the order is already in the waiting list. For [`admit`], it has left the list.
    Waiting,
    /// All stations are taken.
    Stations,
}

pub fn stations() -> Result<Get<Stored<PickingStations>>, KeyError> {
    Ok(Get::new(&STATIONS, stations_key()?))
}

/// Lists the waiting orders, in the order in which they were placed.
pub fn waiting() -> Result<Query<Stored<WaitingJob>>, KeyError> {
    Ok(Query::new(&WAITING, partition()?, Range::under("WAITING")))
}

/// Returns a check that an order is paid or being picked.
fn to_be_picked(order: &OrderId) -> Result<Guarded, EncodeError> {
    let status = |status: OrderStatus| Ok::<_, EncodeError>(Condition::Is("status", value(status)?));
    let to_be_picked = status(OrderStatus::Paid)?.or(status(OrderStatus::Picking)?);
    Ok(Guarded::check(order::key(order)?, to_be_picked))
}

/// Adds an order to the waiting list, if it is paid or being picked.
pub fn wait(job: &Stored<WaitingJob>) -> Result<Transaction<PickingAction>, EncodeError> {
    Ok(Transaction::new(&WAIT)
        .action(PickingAction::Waiting, Guarded::put(job, Condition::NotExists)?)
        .action(PickingAction::Order, to_be_picked(&job.order_id)?))
}

/// Moves a waiting order from the waiting list to a station, if it is paid or being picked, and
/// fewer than `stations` stations are taken. An order that has a station keeps it.
pub fn admit(
    order: &OrderId,
    stations: usize,
    born: &Born,
    at: Instant,
) -> Result<Transaction<PickingAction>, EncodeError> {
    let room = Condition::Lacks("jobs")
        .or(Condition::FewerEntries("jobs", stations))
        .or(Condition::Contains("jobs", value(order)?));
    let change = Change::<PickingStations>::visible(at).or_create(born, at).include("jobs", order.as_str());
    Ok(Transaction::new(&ADMIT)
        .action(PickingAction::Waiting, Guarded::delete(waiting_key(order)?, Condition::Exists))
        .action(PickingAction::Stations, Guarded::update(stations_key()?, change, room))
        .action(PickingAction::Order, to_be_picked(order)?))
}

/// Removes an order from the waiting list and from the stations. The order may be in neither of
/// them.
pub fn leave(order: &OrderId, born: &Born, at: Instant) -> Result<Transaction<PickingAction>, EncodeError> {
    let change = Change::<PickingStations>::visible(at).or_create(born, at).exclude("jobs", order.as_str());
    Ok(Transaction::new(&LEAVE)
        .action(PickingAction::Waiting, Guarded::remove(waiting_key(order)?))
        .action(PickingAction::Stations, Guarded::modify(stations_key()?, change)))
}
