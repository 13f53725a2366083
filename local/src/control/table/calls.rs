use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use emulators::table::{Call, CallBody};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use stream_poller::Delivery;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::super::Control;
use super::super::answer::{Parameters, Problem};
use super::request::{self, Change, Keys, Request, SortKeys, text};
use crate::gateway::Cause;

/// Number of calls per page.
const PAGE: usize = 500;
/// Maximum number of items that an entry lists. The entry also has the number of all items.
const MAX_ITEMS: usize = 100;
/// Maximum number of log lines that are searched for patterns.
const LINES: usize = 20_000;

#[derive(Debug, Deserialize)]
pub(in super::super) struct Wanted {
    cursor: Option<String>,
    /// Id of the request that caused the calls.
    request: Option<String>,
    /// Name of the function that made the calls.
    function: Option<String>,
}

/// Returns a page of the newest calls, oldest first.
pub(in super::super) async fn calls(
    State(control): State<Arc<Control>>,
    Query(wanted): Query<Wanted>,
) -> Result<Json<Value>, Problem> {
    let after = Parameters { cursor: wanted.cursor }.after()?;
    let reader = Reader::new(&control);
    let kept = control.backends.proxy.calls().after(after);
    let mut found = kept.iter().filter_map(|call| {
        let cause = reader.cause(call);
        let is_wanted = wanted.function.as_ref().is_none_or(|name| call.function.as_ref() == Some(name))
            && wanted.request.as_ref().is_none_or(|id| cause.as_ref().is_some_and(|cause| cause.request_id == *id));
        is_wanted.then_some((call, cause))
    });
    let page: Vec<_> = found.by_ref().take(PAGE).collect();
    let last = page.last().map(|(call, _)| call.seq.to_string());
    let next_cursor = found.next().and(last);
    let items: Vec<Value> = page.into_iter().map(|(call, cause)| reader.entry(call, cause)).collect();
    Ok(Json(json!({"items": items, "next_cursor": next_cursor})))
}

/// Returns one call, with its response.
pub(in super::super) async fn call(
    State(control): State<Arc<Control>>,
    Path(seq): Path<u64>,
) -> Result<Json<Value>, Problem> {
    let kept = control.backends.proxy.calls().after(seq.saturating_sub(1));
    let call = kept.first().filter(|call| call.seq == seq);
    let call = call.ok_or_else(|| Problem::not_found(format!("the call {seq} is not among the newest calls")))?;
    let reader = Reader::new(&control);
    let mut entry = reader.entry(call, reader.cause(call));
    if let Some(members) = entry.as_object_mut() {
        members.insert("response".to_owned(), shown(&call.response));
    }
    Ok(Json(entry))
}

/// Reads calls. The log lines and the known entities are read once for all calls of a page.
pub(super) struct Reader<'c> {
    control: &'c Control,
    keys: Keys,
    /// The patterns that each invocation has logged, by trace id.
    logged: HashMap<String, BTreeSet<String>>,
    /// The entities of recently changed items, by partition key and sort key.
    entities: HashMap<(String, String), String>,
}

impl<'c> Reader<'c> {
    pub(super) fn new(control: &'c Control) -> Self {
        let mut logged = HashMap::<String, BTreeSet<String>>::new();
        for line in control.functions.lines(None, "\"patterns\"", LINES) {
            let Ok(line) = line.text.parse::<Value>() else { continue };
            let Some(trace) = line.get("xray_trace_id").and_then(Value::as_str) else { continue };
            let costs = line.get("patterns").and_then(Value::as_array).into_iter().flatten();
            let patterns = costs.filter_map(|cost| cost.get("pattern")?.as_str()).map(str::to_owned);
            logged.entry(trace.to_owned()).or_default().extend(patterns);
        }
        Self { control, keys: Keys::of(&control.table), logged, entities: entities(control) }
    }

    pub(super) fn read(&self, call: &Call) -> (Value, Request) {
        let body = json_of(&call.request);
        let request = request::read(&call.operation, &body, &self.keys);
        (body, request)
    }

    fn cause(&self, call: &Call) -> Option<Cause> {
        self.control.explorer.causes.of(trace_id(call)?)
    }

    fn entry(&self, call: &Call, cause: Option<Cause>) -> Value {
        let (_, request) = self.read(call);
        let response = json_of(&call.response);
        // A function logs only the patterns of successful calls.
        let is_done = call.status == Some(200);
        let logged = trace_id(call).filter(|_| is_done).and_then(|trace| self.logged.get(trace));
        let route = cause.as_ref().map(|cause| &*cause.route);
        let patterns = self.control.explorer.matcher().find(&request, route, call.function.as_deref(), logged);
        let error = response.get("__type").and_then(Value::as_str);
        let error = error.map(|name| name.rsplit('#').next().unwrap_or(name));
        let message = response.get("message").or_else(|| response.get("Message"));
        let error = error.or_else(|| call.status.is_none().then_some("NoResponse"));
        let items = self.items(&request, &response);
        let listed: Vec<Value> = items.iter().take(MAX_ITEMS).map(Item::shown).collect();
        json!({
            "seq": call.seq,
            "at": OffsetDateTime::from(call.at).format(&Rfc3339).ok(),
            "request": cause.as_ref().map(|cause| &cause.request_id),
            "route": route,
            "function": call.function,
            "trace": trace_id(call),
            "operation": call.operation,
            "index": request.index,
            "pattern": if let [pattern] = patterns.as_slice() { Some(pattern) } else { None },
            "patterns": patterns,
            "body": shown(&call.request),
            "status": call.status,
            "error": error,
            "message": error.and(message),
            "consumed": consumed(call, &request, &response).into_iter().map(Units::shown).collect::<Vec<_>>(),
            "items": listed,
            "item_count": items.len(),
            "response_bytes": call.response.size,
            "micros": call.micros,
        })
    }

    /// Returns the items that a read returned, or that a write names. An update does not name its
    /// entity, so the entity comes from the stream.
    fn items(&self, request: &Request, response: &Value) -> Vec<Item> {
        let keys = &self.keys;
        let returned = |item: &Value| {
            Some(Item {
                partition: text(item, &keys.table.partition)?.to_owned(),
                sort: text(item, &keys.table.sort)?.to_owned(),
                entity: text(item, "entity").map(str::to_owned),
                change: Change::Read,
            })
        };
        match &*request.operation {
            "GetItem" => response.get("Item").and_then(returned).into_iter().collect(),
            "Query" | "Scan" => {
                let items = response.get("Items").and_then(Value::as_array).into_iter().flatten();
                items.filter_map(returned).collect()
            }
            "BatchGetItem" => {
                let tables = response.get("Responses").and_then(Value::as_object).into_iter().flat_map(Map::values);
                tables.filter_map(Value::as_array).flatten().filter_map(returned).collect()
            }
            _ => {
                let named = request.places.iter().filter_map(|place| {
                    let SortKeys::One(sort) = &place.sort else { return None };
                    let key = (place.partition.clone(), sort.clone());
                    let entity = place.entity.as_ref().or_else(|| self.entities.get(&key)).cloned();
                    Some(Item { partition: key.0, sort: key.1, entity, change: place.change })
                });
                named.collect()
            }
        }
    }
}

/// Returns the entities of the items in the newest stream records.
fn entities(control: &Control) -> HashMap<(String, String), String> {
    let key = &control.table.key;
    let entity = |delivery: Delivery| {
        let change = delivery.record.event().get("dynamodb")?;
        let keys = change.get("Keys")?;
        let image = change.get("NewImage").or_else(|| change.get("OldImage"))?;
        let item = (text(keys, &key.partition)?.to_owned(), text(keys, &key.sort)?.to_owned());
        Some((item, text(image, "entity")?.to_owned()))
    };
    control.poller.deliveries(0, usize::MAX).into_iter().filter_map(entity).collect()
}

/// Returns the id in a call's trace header.
fn trace_id(call: &Call) -> Option<&str> {
    telemetry::correlation::trace_id(call.trace.as_deref()?)
}

/// Returns a body as JSON. A body that was too large is null.
pub(super) fn json_of(body: &CallBody) -> Value {
    std::str::from_utf8(&body.bytes).ok().and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// Returns a body as JSON, or its size if it was too large.
fn shown(body: &CallBody) -> Value {
    if body.is_cut() { json!({"cut": true, "bytes": body.size}) } else { json_of(body) }
}

/// The units that a call consumed on the table or on an index.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Units {
    on: String,
    pub(super) read: f64,
    pub(super) write: f64,
}

impl Units {
    fn shown(self) -> Value {
        json!({"on": self.on, "read": self.read, "write": self.write})
    }

    pub(super) fn is_on(&self, index: Option<&str>) -> bool {
        self.on == index.unwrap_or("table")
    }
}

/// Returns the units that the table reported. The list is empty if the caller did not request a
/// report of a read.
pub(super) fn consumed(call: &Call, request: &Request, response: &Value) -> Vec<Units> {
    let own = call.consumed.as_ref().and_then(|text| std::str::from_utf8(text).ok()?.parse::<Value>().ok());
    let Some(report) = own.as_ref().or_else(|| response.get("ConsumedCapacity")) else { return Vec::new() };
    let is_read = matches!(&*call.operation, "GetItem" | "Query" | "Scan" | "BatchGetItem" | "TransactGetItems");
    let mut all = BTreeMap::<String, f64>::new();
    let mut add = |on: &str, report: &Value| {
        let units = report.get("CapacityUnits").and_then(Value::as_f64).unwrap_or_default();
        if units > 0.0 {
            *all.entry(on.to_owned()).or_default() += units;
        }
    };
    for table in report.as_array().map_or_else(|| std::slice::from_ref(report), Vec::as_slice) {
        let indexes = table.get("GlobalSecondaryIndexes").and_then(Value::as_object);
        match (table.get("Table"), indexes) {
            (None, None) => add(request.index.as_deref().unwrap_or("table"), table),
            (own, indexes) => {
                own.into_iter().for_each(|report| add("table", report));
                indexes.into_iter().flatten().for_each(|(name, report)| add(name, report));
            }
        }
    }
    let units = |(on, units): (String, f64)| {
        let (read, write) = if is_read { (units, 0.0) } else { (0.0, units) };
        Units { on, read, write }
    };
    // The table comes first.
    let mut all: Vec<Units> = all.into_iter().map(units).collect();
    all.sort_by_key(|units| units.on != "table");
    all
}

/// An item that a call returned or changed.
struct Item {
    partition: String,
    sort: String,
    entity: Option<String>,
    change: Change,
}

impl Item {
    fn shown(&self) -> Value {
        json!({"PK": self.partition, "SK": self.sort, "entity": self.entity, "change": self.change.as_str()})
    }
}
