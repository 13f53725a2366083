//! Relations between orders and the picking queue: its waiting jobs and its stations. A message
//! changes the queue some time after the order changes, so a difference may disappear by itself.

use key_schema::entity::AnyEntity;
use key_schema::item::{Entity as _, Stored};
use key_schema::key::Key;
use key_schema::order::{self, Order, OrderStatus};
use key_schema::picking::{self, PickingStations, WaitingJob};

use super::{Problem, Seen, Skip};
use crate::error::OpsError;
use crate::verify::report::Kind;

pub(super) fn needs(entity: &AnyEntity, keys: &mut Vec<Key>) -> Result<(), OpsError> {
    match entity {
        AnyEntity::Order(item) if is_to_be_picked(item) => {
            keys.extend([waiting(item).key()?, picking::stations()?.key().clone()]);
        }
        AnyEntity::WaitingJob(item) => keys.push(order::head(&item.order_id)?.key().clone()),
        AnyEntity::PickingStations(item) => {
            for id in &item.jobs {
                keys.push(order::head(id)?.key().clone());
            }
        }
        _ => {}
    }
    Ok(())
}

pub(super) fn check(entity: &AnyEntity, seen: &Seen<'_>) -> Result<Vec<Problem>, Skip> {
    match entity {
        AnyEntity::Order(item) if is_to_be_picked(item) && !item.is_expired(seen.now) => {
            let waits = seen.find::<WaitingJob>(&waiting(item).key()?)?.is_some();
            let stations = seen.find::<PickingStations>(picking::stations()?.key())?;
            if waits || stations.is_some_and(|stations| stations.jobs.contains(&item.id)) {
                return Ok(Vec::new());
            }
            let what = "the order is to be picked, but neither waits nor has a picking station";
            Ok(vec![Problem::new(Kind::Behind, what).lagging()])
        }
        AnyEntity::WaitingJob(item) => {
            let key = order::head(&item.order_id)?.key().clone();
            if seen.find::<Order>(&key)?.is_some_and(|head| is_to_be_picked(&head)) {
                return Ok(Vec::new());
            }
            let problem = Problem::new(Kind::Orphan, "the waiting order is not to be picked").lagging();
            Ok(vec![problem.repaired_by(seen.delete(&key))])
        }
        AnyEntity::PickingStations(item) => jobs(item, seen),
        _ => Ok(Vec::new()),
    }
}

fn is_to_be_picked(order: &Order) -> bool {
    matches!(order.status, OrderStatus::Paid | OrderStatus::Picking)
}

fn waiting(order: &Order) -> WaitingJob {
    WaitingJob { order_id: order.id.clone() }
}

/// Checks that each order at a station is to be picked. The repair frees a station whose order is
/// not to be picked.
fn jobs(item: &Stored<PickingStations>, seen: &Seen<'_>) -> Result<Vec<Problem>, Skip> {
    let mut stale = Vec::new();
    for id in &item.jobs {
        let key = order::head(id)?.key().clone();
        if seen.find::<Order>(&key)?.is_none_or(|head| !is_to_be_picked(&head)) {
            stale.push((id, key));
        }
    }
    if stale.is_empty() {
        return Ok(Vec::new());
    }
    let problem = Problem::new(Kind::Link, format!("{} orders at stations are not to be picked", stale.len()));
    let repairs = seen.without(item, "jobs", &stale, |stations, id| _ = stations.jobs.remove(*id))?;
    Ok(vec![problem.lagging().repaired_in_steps(repairs)])
}
