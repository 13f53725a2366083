//! `GET /_local/stream`: the newest records of the table's stream, and what became of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use axum::Json;
use axum::extract::{Query, State};
use bus::{EventId, Kind, Origin};
use key_schema::id::Born;
use key_schema::key::{Key, PartitionKey, SortKey};
use search_index::{Collection, document_id};
use serde_json::{Value, json};
use stream_poller::{Delivery, MappingDelivery, Verdict};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::Control;
use super::answer::{Parameters, Problem};

/// Number of records per page. It is small, because a page has two images of each item.
const PAGE: usize = 200;
/// Number of the newest events among which the events of the records are searched.
const EVENTS: u64 = 5000;
const TTL: &str = "dynamodb.amazonaws.com";

/// Returns a page of the newest records, oldest first.
pub(super) async fn records(
    State(control): State<Arc<Control>>,
    Query(parameters): Query<Parameters>,
) -> Result<Json<Value>, Problem> {
    let mut page = control.poller.deliveries(parameters.after()?, PAGE + 1);
    let has_more = page.len() > PAGE;
    page.truncate(PAGE);
    let last = page.last().map(|delivery| delivery.seq.to_string());
    let events = Events::newest(&control);
    let indexed = indexed(&control, &page).await;
    let items: Vec<Value> = page.iter().map(|delivery| entry(&control, delivery, &events, &indexed)).collect();
    Ok(Json(json!({"items": items, "next_cursor": last.filter(|_| has_more)})))
}

/// A record's own parts.
struct Change<'r> {
    record: &'r Value,
}

impl<'r> Change<'r> {
    fn of(delivery: &'r Delivery) -> Self {
        Self { record: delivery.record.event() }
    }

    fn part(&self, name: &str) -> Option<&'r Value> {
        self.record.get("dynamodb")?.get(name)
    }

    fn key(&self, name: &str) -> &'r str {
        self.part("Keys").and_then(|keys| text(keys, name)).unwrap_or_default()
    }

    /// Returns the newest image: the new image or, for a removal, the old image.
    fn image(&self) -> Option<&'r Value> {
        self.part("NewImage").or_else(|| self.part("OldImage"))
    }

    fn entity(&self) -> Option<&'r str> {
        text(self.image()?, "entity")
    }

    /// Returns the names of the attributes that a modification changed.
    fn changed(&self) -> Vec<&'r String> {
        let image = |name: &str| self.part(name).and_then(Value::as_object);
        let (Some(old), Some(new)) = (image("OldImage"), image("NewImage")) else { return Vec::new() };
        let mut names: Vec<&String> =
            new.iter().filter(|(name, value)| old.get(*name) != Some(*value)).map(first).collect();
        names.extend(old.keys().filter(|name| !new.contains_key(*name)));
        names.sort_unstable();
        names
    }
}

fn first<'v>((name, _): (&'v String, &'v Value)) -> &'v String {
    name
}

fn text<'v>(item: &'v Value, name: &str) -> Option<&'v str> {
    item.get(name)?.get("S")?.as_str()
}

fn number(item: &Value, name: &str) -> Option<u64> {
    item.get(name)?.get("N")?.as_str()?.parse().ok()
}

fn entry(control: &Control, delivery: &Delivery, events: &Events, indexed: &HashMap<String, u64>) -> Value {
    let change = Change::of(delivery);
    let (partition, sort) = (change.key(&control.table.key.partition), change.key(&control.table.key.sort));
    let event = change.record.get("eventName");
    let removed_by = change.record.pointer("/userIdentity/principalId").and_then(Value::as_str);
    let mut sinks: Vec<Value> = delivery.mappings.iter().map(mapping).collect();
    sinks.extend(index_sink(&change, partition, sort, indexed));
    sinks.extend(events.of(&control.backends.table, &change, partition, sort));
    json!({
        "seq": delivery.seq,
        "at": instant(delivery.record.created()),
        "read": instant(delivery.read),
        "sequence_number": delivery.record.sequence().as_str(),
        "event": event,
        "PK": partition,
        "SK": sort,
        "entity": change.entity(),
        "ttl": removed_by == Some(TTL),
        // The id of the request that wrote the item.
        "request": change.part("NewImage").and_then(|image| text(image, "req")),
        "changed": change.changed(),
        "old": change.part("OldImage"),
        "new": change.part("NewImage"),
        "sinks": sinks,
    })
}

fn mapping(mapping: &MappingDelivery) -> Value {
    let lost = "the destination could not store the record";
    let (verdict, error) = match mapping.verdict {
        Verdict::Filtered => ("filtered", None),
        Verdict::Waiting => ("waiting", None),
        Verdict::Retrying => ("retrying", mapping.error.as_deref()),
        Verdict::Delivered => ("delivered", None),
        Verdict::Discarded => ("discarded", mapping.error.as_deref()),
        Verdict::Lost => ("discarded", Some(lost)),
    };
    json!({
        "name": mapping.function, "kind": "mapping", "verdict": verdict, "attempts": mapping.attempts, "error": error,
        "at": mapping.at.and_then(instant),
    })
}

/// Returns the document's state if the record changes a document of the search index.
fn index_sink(change: &Change<'_>, partition: &str, sort: &str, indexed: &HashMap<String, u64>) -> Option<Value> {
    collection(change)?;
    let rev = number(change.image()?, "rev")?;
    // The tombstone of a removed item has the next `rev`.
    let rev = if change.part("NewImage").is_some() { rev } else { rev.saturating_add(1) };
    let has = indexed.get(&document_id(partition, sort)).copied();
    let verdict = if has.is_some_and(|has| has >= rev) { "delivered" } else { "waiting" };
    Some(json!({"name": "search index", "kind": "sink", "verdict": verdict, "rev": rev, "indexed_rev": has}))
}

fn collection(change: &Change<'_>) -> Option<Collection> {
    match change.entity()? {
        "Product" => Some(Collection::Products),
        "Order" => Some(Collection::Orders),
        _ => None,
    }
}

/// Returns the `rev` of each indexed document of the page. Without an answer of the search engine
/// the list is empty.
async fn indexed(control: &Control, page: &[Delivery]) -> HashMap<String, u64> {
    let mut revs = HashMap::new();
    for wanted in [Collection::Products, Collection::Orders] {
        let of = page.iter().map(Change::of).filter(|change| collection(change) == Some(wanted));
        let key = &control.table.key;
        let ids: Vec<String> =
            of.map(|change| document_id(change.key(&key.partition), change.key(&key.sort))).collect();
        if ids.is_empty() {
            continue;
        }
        let Ok(stored) = control.index.stored(wanted, &ids).await else { continue };
        revs.extend(ids.into_iter().zip(stored).filter_map(|(id, stored)| Some((id, stored?.rev))));
    }
    revs
}

/// The newest events of the bus: their types by their ids.
struct Events(HashMap<String, String>);

impl Events {
    fn newest(control: &Control) -> Self {
        let events = &control.backends.events;
        // With `u64::MAX`, the page is empty, and its `next` is the number of all events.
        let all = events.published(u64::MAX, 1).next;
        let page = events.published(all.saturating_sub(EVENTS), usize::MAX);
        let known = page.items.into_iter().filter_map(|event| {
            let id = event.detail.get("id")?.as_str()?.to_owned();
            Some((id, event.detail_type))
        });
        Self(known.collect())
    }

    /// Returns the published events that the record caused.
    fn of(&self, table: &str, change: &Change<'_>, partition: &str, sort: &str) -> Vec<Value> {
        let ids = || {
            let image = change.part("NewImage")?;
            let key = Key { pk: PartitionKey::new(partition).ok()?, sk: SortKey::new(sort).ok()? };
            let born = Born::new(text(image, "born")?).ok()?;
            let origin = Origin { table, key: &key, born: &born, rev: number(image, "rev")? };
            Some(Kind::ALL.iter().map(|kind| EventId::derive(origin, *kind)).collect::<Vec<_>>())
        };
        let ids = ids().unwrap_or_default().into_iter();
        let published = ids.filter_map(|id| self.0.get(id.as_str()).map(|kind| (id, kind)));
        let sink = |(id, kind): (EventId, &String)| {
            json!({
                "name": "event bus", "kind": "sink", "verdict": "delivered", "event_id": id.as_str(), "event": kind,
            })
        };
        published.map(sink).collect()
    }
}

fn instant(at: SystemTime) -> Option<String> {
    OffsetDateTime::from(at).format(&Rfc3339).ok()
}
