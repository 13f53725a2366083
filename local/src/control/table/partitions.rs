use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::{Query, State};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::Control;
use super::super::answer::Problem;
use super::request::{Keys, text};
use super::requests::{PATIENCE, ask};

/// Number of partitions per page.
const PAGE: usize = 1000;
/// For this time the pages of a list come from one scan.
const FRESH: Duration = Duration::from_secs(10);

#[derive(Debug, Deserialize)]
pub(in super::super) struct Parameters {
    /// Name of the index. Without it, the list has the partitions of the table.
    index: Option<String>,
    /// The beginning of the partitions' keys.
    #[serde(default)]
    prefix: String,
    cursor: Option<String>,
}

/// The result of a scan.
pub(super) struct Cached {
    index: Option<String>,
    at: Instant,
    found: BTreeMap<String, Partition>,
    /// Whether the scan reached the end in time.
    is_complete: bool,
}

#[derive(Debug, Default)]
struct Partition {
    items: u64,
    entities: BTreeMap<String, u64>,
    bytes: usize,
}

/// Returns a page of the partitions, sorted by key.
pub(in super::super) async fn partitions(
    State(control): State<Arc<Control>>,
    Query(Parameters { index, prefix, cursor }): Query<Parameters>,
) -> Result<Json<Value>, Problem> {
    let index = index.filter(|index| !index.is_empty());
    let after = cursor.map(|cursor| String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok());
    if after == Some(None) {
        return Err(Problem::bad_request("the cursor does not belong to this list"));
    }
    let after = after.flatten();
    // The lock is held during the scan, so that several pages at once cause one scan.
    let mut cached = control.explorer.partitions.lock().await;
    let is_later_page = after.is_some();
    let usable =
        cached.as_ref().is_some_and(|cached| cached.index == index && is_later_page && cached.at.elapsed() < FRESH);
    if !usable {
        *cached = Some(scan(&control, index.as_deref()).await?);
    }
    let Some(cached) = cached.as_ref() else { return Err(Problem::not_found("there is no list")) };
    let begin = after.clone().unwrap_or_else(|| prefix.clone());
    let mut matching = cached
        .found
        .range(begin..)
        .filter(|(key, _)| after.as_ref().is_none_or(|after| *key > after))
        .take_while(|(key, _)| key.starts_with(&prefix));
    let page: Vec<_> = matching.by_ref().take(PAGE).collect();
    let last = page.last().map(|(key, _)| URL_SAFE_NO_PAD.encode(key));
    let next_cursor = matching.next().and(last);
    let item = |(key, partition): (&String, &Partition)| {
        let Partition { items, entities, bytes } = partition;
        json!({"key": key, "items": items, "entities": entities, "bytes": bytes})
    };
    let items: Vec<Value> = page.into_iter().map(item).collect();
    Ok(Json(json!({"items": items, "next_cursor": next_cursor, "complete": cached.is_complete})))
}

/// Counts the items of all partitions. The scan reads whole items, because DynamoDB does not return
/// the size of an item.
async fn scan(control: &Control, index: Option<&str>) -> Result<Cached, Problem> {
    let keys = Keys::of(&control.table);
    let key = keys.on(index).ok_or_else(|| {
        let names: Vec<&String> = keys.indexes.keys().collect();
        Problem::not_found(format!("there is no index {}; the indexes are {names:?}", index.unwrap_or_default()))
    })?;
    let at = Instant::now();
    let mut request = json!({"TableName": control.backends.table});
    if let (Some(index), Some(members)) = (index, request.as_object_mut()) {
        members.insert("IndexName".to_owned(), index.into());
    }
    let mut found = BTreeMap::<String, Partition>::new();
    loop {
        let (status, mut page) = ask(control, "Scan", &request).await?;
        if status != 200 {
            return Err(Problem::failed(&page));
        }
        for item in page.get("Items").and_then(Value::as_array).into_iter().flatten() {
            let Some(name) = text(item, &key.partition) else { continue };
            let partition = match found.get_mut(name) {
                Some(partition) => partition,
                None => found.entry(name.to_owned()).or_default(),
            };
            partition.items += 1;
            partition.bytes += item_size(item);
            let entity = text(item, "entity").unwrap_or_default();
            match partition.entities.get_mut(entity) {
                Some(count) => *count += 1,
                None => drop(partition.entities.insert(entity.to_owned(), 1)),
            }
        }
        let last = page.get_mut("LastEvaluatedKey").map(Value::take).filter(Value::is_object);
        let is_complete = last.is_none();
        if is_complete || at.elapsed() > PATIENCE {
            return Ok(Cached { index: index.map(str::to_owned), at: Instant::now(), found, is_complete });
        }
        if let (Some(last), Some(members)) = (last, request.as_object_mut()) {
            members.insert("ExclusiveStartKey".to_owned(), last);
        }
    }
}

/// Returns the size of an item in bytes, as DynamoDB counts it.
fn item_size(item: &Value) -> usize {
    let attributes = item.as_object().into_iter().flatten();
    attributes.map(|(name, value)| name.len() + value_size(value)).sum()
}

fn value_size(value: &Value) -> usize {
    let Some((kind, value)) = value.as_object().and_then(|members| members.iter().next()) else { return 0 };
    let text = |value: &Value| value.as_str().map_or(0, str::len);
    let list = || value.as_array().into_iter().flatten();
    match kind.as_str() {
        "S" => text(value),
        "N" => number_size(value),
        "B" => text(value) / 4 * 3,
        "SS" => list().map(text).sum(),
        "NS" => list().map(number_size).sum(),
        "BS" => list().map(|value| text(value) / 4 * 3).sum(),
        "L" => 3 + list().map(|value| 1 + value_size(value)).sum::<usize>(),
        "M" => {
            let members = value.as_object().into_iter().flatten();
            3 + members.map(|(name, value)| 1 + name.len() + value_size(value)).sum::<usize>()
        }
        _ => 1,
    }
}

/// A number takes a byte for two digits, and one more byte.
fn number_size(value: &Value) -> usize {
    let digits = value.as_str().unwrap_or_default().bytes().filter(u8::is_ascii_digit).count();
    digits.div_ceil(2) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_an_item_has_names_and_values() {
        let item = json!({
            "PK": {"S": "añ"}, "n": {"N": "-12.5"}, "b": {"B": "AAAA"}, "t": {"BOOL": true}, "s": {"SS": ["ab", "c"]},
            "l": {"L": [{"S": "x"}, {"NULL": true}]}, "m": {"M": {"k": {"S": "xy"}}},
        });
        assert_eq!(item_size(&item), (2 + 3) + (1 + 3) + (1 + 3) + (1 + 1) + (1 + 3) + (1 + 3 + 4) + (1 + 3 + 4));
    }
}
