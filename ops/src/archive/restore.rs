//! Bringing archived items back.

use std::collections::BTreeMap;
use std::fmt;

use futures::{StreamExt as _, TryStreamExt as _};
use key_schema::archive::{self as names, restore, restored};
use key_schema::entity::AnyEntity;
use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::item::{Entity as _, Item, Stored};
use key_schema::order::{self, CustomerOrder, Order};
use objects::ObjectStore;
use serde::Serialize;
use serde_dynamo::AttributeValue;
use stream::archive::{self, Archived};
use stream::sequence::SequenceNumber;
use table::{Table, WriteError};

use crate::error::OpsError;

/// Objects that are listed at once.
const PAGE: u16 = 1_000;
/// Objects that are read at once.
const CONCURRENCY: usize = 16;

/// What came of restoring.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Restored {
    /// Items that are back.
    pub restored: u64,
    /// Items that were there already, restored before or made anew.
    pub there: u64,
    /// What could not be restored, and why.
    pub failed: Vec<String>,
}

impl Restored {
    /// Whether everything is there.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.failed.is_empty()
    }

    pub(crate) fn add(&mut self, mut other: Self) {
        self.restored += other.restored;
        self.there += other.there;
        self.failed.append(&mut other.failed);
    }

    fn failed(reason: impl fmt::Display) -> Self {
        Self { failed: vec![reason.to_string()], ..Self::default() }
    }
}

impl fmt::Display for Restored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} items restored, {} were there already", self.restored, self.there)?;
        for reason in &self.failed {
            writeln!(f, "NOT RESTORED: {reason}")?;
        }
        Ok(())
    }
}

/// Restores the item of an object; for the head of an order, the order. Another part of an order comes back alone only while the head is there: without
/// it nobody would find it, and it would never expire. A session or cart then lives `until` an instant.
///
/// # Errors
/// [`OpsError`].
pub async fn restore_object(
    table: &Table,
    store: &ObjectStore,
    name: &str,
    until: Instant,
) -> Result<Restored, OpsError> {
    let Some(body) = store.get(name).await? else { return Ok(Restored::failed(format_args!("{name} is not there"))) };
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

/// Why a part of an order cannot come back alone; `None` when it can, or when it is no part of an order.
async fn headless(table: &Table, entity: &AnyEntity) -> Result<Option<String>, OpsError> {
    let id = match entity {
        AnyEntity::OrderLine(line) => &line.order_id,
        AnyEntity::OrderStatusEvent(event) => &event.order_id,
        AnyEntity::CustomerOrder(copy) => &copy.id,
        _ => return Ok(None),
    };
    let items = table.query(&order::edit(id)?).await?.items;
    let lives_on = |item: &AnyEntity| matches!(item, AnyEntity::Order(head) if head.expires_at.is_none());
    Ok((!items.iter().any(lives_on)).then(|| {
        format!("it is a part of order {id}, whose head is not there: give the name of the head, or --order {id}")
    }))
}

/// Restores an order: its lines and history, its customer's copy, and its head, in this order. The head is put only when every line that it counts is
/// there: the archive gets an order item by item, and may not have all of it yet. How many steps its history has nobody counts.
///
/// # Errors
/// [`OpsError`].
pub async fn restore_order(table: &Table, store: &ObjectStore, id: &OrderId) -> Result<Restored, OpsError> {
    let head_key = order::head(id)?.key().clone();
    let mut items = newest(store, &names::collection(&head_key.pk)).await?;
    let mut result = Restored::default();
    let Some(head) = items.remove(&archive::hash(&head_key)) else {
        return Ok(Restored::failed(format_args!("order {id}: its head is not in the archive")));
    };
    // Orders keep no time to live, so until when does not matter.
    let now = Instant::now();
    let entity = |item: Item| restored(item, now, now).map_err(OpsError::failed);
    let AnyEntity::Order(head) = entity(head)? else {
        return Ok(Restored::failed(format_args!("order {id}: what was archived as its head is none")));
    };
    let copy_key = copy_of(&head).key()?;
    let copy = newest(store, &names::under(&copy_key.pk, &copy_key)).await?;
    if copy.is_empty() {
        return Ok(Restored::failed(format_args!("order {id}: its copy is not in the archive")));
    }
    for item in items.into_values().chain(copy.into_values()) {
        result.add(put(table, &entity(item)?).await?);
        if !result.is_complete() {
            // Without its head the order is not found, and the next attempt completes it.
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

/// What is lacking of an order but its head, as the table has it now.
async fn lacking(table: &Table, head: &Stored<Order>) -> Result<Option<String>, OpsError> {
    let (mut lines, mut going) = (0_u64, false);
    for item in table.query(&order::edit(&head.id)?).await?.items {
        match item {
            AnyEntity::OrderLine(line) => {
                lines += 1;
                going |= line.expires_at.is_some();
            }
            AnyEntity::OrderStatusEvent(event) => going |= event.expires_at.is_some(),
            _ => {}
        }
    }
    if going {
        return Ok(Some(GOING.to_owned()));
    }
    let (id, count) = (&head.id, head.line_count);
    Ok((lines != count).then(|| {
        format!("order {id}: {lines} of its {count} lines are there or in the archive: try again when all are archived")
    }))
}

/// Why an order cannot be restored that DynamoDB has removed in part only.
const GOING: &str = "a part of the order has expired and is not yet removed: try again in some days";

/// Puts an item where there is none.
async fn put(table: &Table, entity: &AnyEntity) -> Result<Restored, OpsError> {
    match table.write(&restore(entity)?).await {
        Ok(()) => Ok(Restored { restored: 1, ..Restored::default() }),
        Err(WriteError::Refused(present)) if is_going(entity, present.as_deref()) => Ok(Restored::failed(GOING)),
        Err(WriteError::Refused(_)) => Ok(Restored { there: 1, ..Restored::default() }),
        Err(WriteError::Table(error)) => Err(error.into()),
    }
}

/// Whether what lies there is part of a retired order that DynamoDB has removed in part only: it would go while the rest comes back. Judged by
/// `expires_at`, which the head has before it has its time to live.
fn is_going(entity: &AnyEntity, present: Option<&Item>) -> bool {
    let lives_on = !matches!(entity, AnyEntity::Session(_) | AnyEntity::Cart(_));
    lives_on && present.is_some_and(|present| present.get("expires_at").is_some())
}

/// The archived items under a prefix by the hash of their key; of a key that expired more than once the one with the highest `rev`, and of those the
/// one that was removed last. Not that of the highest sequence number: the stream of a table that was restored from a backup counts anew.
async fn newest(store: &ObjectStore, prefix: &str) -> Result<BTreeMap<String, Item>, OpsError> {
    let mut found: BTreeMap<String, (u64, Archived)> = BTreeMap::new();
    let mut after = None;
    // Ends with the objects: every page begins behind the one before.
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

/// The hash of the key that an object is named for.
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

/// The copy in its customer's list, as far as its key needs.
fn copy_of(head: &Order) -> CustomerOrder {
    CustomerOrder {
        id: head.id.clone(),
        customer_id: head.customer_id.clone(),
        placed_at: head.placed_at,
        reference: None,
        total: head.total,
        line_count: head.line_count,
        shipped_at: None,
        status: head.status,
        carrier: None,
        tracking: None,
        expires_at: None,
    }
}
