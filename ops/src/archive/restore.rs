use std::collections::BTreeMap;
use std::fmt;

use futures::{StreamExt as _, TryStreamExt as _};
use key_schema::archive::{self as names, restore, restored};
use key_schema::entity::AnyEntity;
use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::item::{Entity as _, Item, Stored};
use key_schema::order::{self, CustomerOrder, Order, OrderItem};
use serde::Serialize;
use serde_dynamo::AttributeValue;
use storage::objects::ObjectStore;
use stream::archive::{self, Archived};
use stream::sequence::SequenceNumber;
use table::Table;

use crate::error::OpsError;

const PAGE: u16 = 1_000;
const CONCURRENCY: usize = 16;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Restored {
    pub restored: u64,
    /// The number of items that already existed, because they were restored earlier or created
    /// again.
    #[serde(rename = "there")]
    pub existing: u64,
    pub failed: Vec<String>,
}

impl Restored {
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.failed.is_empty()
    }

    pub(crate) fn add(&mut self, mut other: Self) {
        self.restored += other.restored;
        self.existing += other.existing;
        self.failed.append(&mut other.failed);
    }

    fn failed(reason: impl fmt::Display) -> Self {
        Self { failed: vec![reason.to_string()], ..Self::default() }
    }
}

impl fmt::Display for Restored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} items restored, {} existed already", self.restored, self.existing)?;
        for reason in &self.failed {
            writeln!(f, "NOT RESTORED: {reason}")?;
        }
        Ok(())
    }
}

/// Restores the item of an object, or the whole order if the item is an order's head. A restored
/// session or cart expires at `until`.
///
/// A line or another part of an order is restored alone only if the order's head exists and has no
/// `expires_at`. Without the head, no reader would find the part, and the part would never expire.
pub async fn restore_object(
    table: &Table,
    store: &ObjectStore,
    name: &str,
    until: Instant,
) -> Result<Restored, OpsError> {
    let Some(body) = store.get(name).await? else { return Ok(Restored::failed(format_args!("{name} does not exist"))) };
    let archived = match decode(name, &body) {
        Ok(archived) => archived,
        Err(reason) => return Ok(Restored::failed(reason)),
    };
    match restored(archived.item, Instant::now(), until) {
        Ok(AnyEntity::Order(order)) => restore_order(table, store, &order.id).await,
        Ok(entity) => match headless(table, &entity).await? {
            Some(reason) => Ok(Restored::failed(format_args!("{name}: {reason}"))),
            None => put(table, &entity).await,
        },
        Err(error) => Ok(Restored::failed(format_args!("{name}: {error}"))),
    }
}

/// Returns the reason why a part of an order cannot be restored alone. Returns `None` if nothing
/// prevents it, or if the item belongs to no order.
async fn headless(table: &Table, entity: &AnyEntity) -> Result<Option<String>, OpsError> {
    let id = match entity {
        AnyEntity::OrderLine(line) => &line.order_id,
        AnyEntity::OrderStatusEvent(event) => &event.order_id,
        AnyEntity::Payment(payment) => &payment.order_id,
        AnyEntity::PaymentOperation(operation) => &operation.order_id,
        AnyEntity::CustomerOrder(copy) => &copy.id,
        _ => return Ok(None),
    };
    let items = table.query(&order::read_for_update(id)?).await?.items;
    let lives_on = |item: &OrderItem| matches!(item, OrderItem::Order(head) if head.expires_at.is_none());
    Ok((!items.iter().any(lives_on)).then(|| {
        format!("it is a part of order {id}, whose head does not exist: give the name of the head, or --order {id}")
    }))
}

/// Restores an order: its lines, history and payments, its customer's copy, and then its head.
///
/// The items of an order reach the archive one by one, so some may be missing. The head is written
/// only if all lines of the order exist. The head stores the number of lines. It does not store the
/// number of status changes, so the history is not checked.
pub async fn restore_order(table: &Table, store: &ObjectStore, id: &OrderId) -> Result<Restored, OpsError> {
    let head_key = order::head(id)?.key().clone();
    let mut items = newest(store, &names::collection(&head_key.pk)).await?;
    let mut result = Restored::default();
    let Some(head) = items.remove(&archive::hash(&head_key)) else {
        return Ok(Restored::failed(format_args!("order {id}: its head is not in the archive")));
    };
    let now = Instant::now();
    // Only a session or a cart would use the second `now`. A restored order has no time to live.
    let entity = |item: Item| restored(item, now, now).map_err(OpsError::failed);
    let AnyEntity::Order(head) = entity(head)? else {
        return Ok(Restored::failed(format_args!("order {id}: the archived object is not an order's head")));
    };
    let copy_key = CustomerOrder::of(&head).key()?;
    let copy = newest(store, &names::under(&copy_key.pk, &copy_key)).await?;
    if copy.is_empty() {
        return Ok(Restored::failed(format_args!("order {id}: the customer's copy is not in the archive")));
    }
    for item in items.into_values().chain(copy.into_values()) {
        result.add(put(table, &entity(item)?).await?);
        if !result.is_complete() {
            // Without its head the order stays invisible to clients. The next attempt completes it.
            return Ok(result);
        }
    }
    if let Some(reason) = lacking(table, &head).await? {
        result.failed.push(reason);
        return Ok(result);
    }
    result.add(put(table, &AnyEntity::Order(head)).await?);
    Ok(result)
}

/// Reads the present items of an order, and returns the reason why its head cannot be written yet.
async fn lacking(table: &Table, head: &Stored<Order>) -> Result<Option<String>, OpsError> {
    let (mut lines, mut is_expired) = (0_u64, false);
    for item in table.query(&order::read_for_update(&head.id)?).await?.items {
        match item {
            OrderItem::OrderLine(line) => {
                lines += 1;
                is_expired |= line.expires_at.is_some();
            }
            OrderItem::OrderStatusEvent(event) => is_expired |= event.expires_at.is_some(),
            OrderItem::Payment(payment) => is_expired |= payment.expires_at.is_some(),
            OrderItem::PaymentOperation(operation) => is_expired |= operation.expires_at.is_some(),
            OrderItem::Order(_) => {}
        }
    }
    if is_expired {
        return Ok(Some(EXPIRING.to_owned()));
    }
    let (id, count) = (&head.id, head.line_count);
    Ok((lines != count).then(|| {
        format!("order {id}: only {lines} of its {count} lines exist or are archived: try again when all are archived")
    }))
}

const EXPIRING: &str = "a part of the order has expired and is not yet removed: try again in some days";

/// Writes an item if its key does not exist.
async fn put(table: &Table, entity: &AnyEntity) -> Result<Restored, OpsError> {
    match table.write(&restore(entity)?).await? {
        Ok(()) => Ok(Restored { restored: 1, ..Restored::default() }),
        Err(refusal) if is_expiring(entity, refusal.item.as_ref()) => Ok(Restored::failed(EXPIRING)),
        Err(_) => Ok(Restored { existing: 1, ..Restored::default() }),
    }
}

/// Returns whether the item that has the key belongs to a retired order that DynamoDB has removed
/// only in part. DynamoDB will remove this item too, so a restore must wait. The check uses
/// `expires_at`, because a retirement sets it on the head first, and sets the head's time to live
/// last.
fn is_expiring(entity: &AnyEntity, present: Option<&Item>) -> bool {
    let lives_on = !matches!(entity, AnyEntity::Session(_) | AnyEntity::Cart(_));
    lives_on && present.is_some_and(|present| present.get("expires_at").is_some())
}

/// Returns the archived items under a prefix, by the hash of their key. If several items with one
/// key have expired, the result has the item with the highest `rev`. Among items with this `rev`,
/// it has the one that was removed last. Sequence numbers cannot be compared, because a table that
/// was restored from a backup has a new stream.
async fn newest(store: &ObjectStore, prefix: &str) -> Result<BTreeMap<String, Item>, OpsError> {
    let mut found: BTreeMap<String, (u64, Archived)> = BTreeMap::new();
    let mut after = None;
    // The loop ends, because every page starts after the previous one.
    loop {
        let page = store.list(prefix, after.as_deref(), PAGE).await?;
        let archived = futures::stream::iter(page.items)
            .map(|object| async move {
                let Some(hash) = parse(&object.name) else { return Ok(None) };
                let Some(body) = store.get(&object.name).await? else { return Ok(None) };
                let archived = decode(&object.name, &body).map_err(OpsError::Failed)?;
                let rev = rev(&archived.item).ok_or_else(|| OpsError::Failed(format!("{} has no rev", object.name)))?;
                Ok::<_, OpsError>(Some((hash, rev, archived)))
            })
            .buffered(CONCURRENCY)
            .try_collect::<Vec<_>>()
            .await?;
        for (hash, rev, archived) in archived.into_iter().flatten() {
            match found.get(&hash) {
                Some((known, other)) if (*known, other.removed_at) > (rev, archived.removed_at) => {}
                _ => drop(found.insert(hash, (rev, archived))),
            }
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(found.into_iter().map(|(hash, (_, archived))| (hash, archived.item)).collect()),
        }
    }
}

/// Returns the hash of the item's key from an object's name.
fn parse(name: &str) -> Option<String> {
    let (hash, removal) = name.rsplit('/').next()?.strip_suffix(".json")?.split_once('-')?;
    removal.parse::<SequenceNumber>().ok()?;
    Some(hash.to_owned())
}

fn rev(item: &Item) -> Option<u64> {
    match item.get("rev")? {
        AttributeValue::N(rev) => rev.parse().ok(),
        _ => None,
    }
}

fn decode(name: &str, body: &[u8]) -> Result<Archived, String> {
    serde_json::from_slice(body).map_err(|error| format!("{name} is no archived item: {error}"))
}
