//! Shared test helpers: generators, and DynamoDB's JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use key_schema::item::{Item, RESERVED, is_reserved};
use serde_dynamo::AttributeValue;
use serde_json::Value;

pub use self::generators::*;

#[path = "../../../item-model/tests/suite/support.rs"]
mod generators;

/// Compares two sets and reports only the differences.
#[track_caller]
pub fn assert_same<T: Ord + Debug>(shown: &BTreeSet<T>, wanted: &BTreeSet<T>) {
    let missing: Vec<&T> = wanted.difference(shown).collect();
    let needless: Vec<&T> = shown.difference(wanted).collect();
    assert!(missing.is_empty() && needless.is_empty(), "missing: {missing:?}, needless: {needless:?}");
}

/// Returns a value in DynamoDB's JSON, with maps sorted by name.
pub fn json(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::M(map) => {
            let sorted: BTreeMap<_, _> = map.iter().collect();
            let entries = sorted.into_iter().map(|(name, value)| (name.clone(), json(value))).collect();
            Value::Object([("M".to_owned(), Value::Object(entries))].into_iter().collect())
        }
        AttributeValue::L(list) => serde_json::json!({ "L": list.iter().map(json).collect::<Vec<_>>() }),
        other => serde_json::to_value(other).unwrap(),
    }
}

/// Returns an item in DynamoDB's JSON, one attribute per line: keys, index keys, common attributes,
/// then the entity's own.
pub fn item_json(item: &Item) -> String {
    let mut lines: Vec<((usize, usize), &String, String)> =
        item.iter().map(|(name, value)| (rank(name), name, format!("  \"{name}\": {}", json(value)))).collect();
    lines.sort();
    let lines: Vec<String> = lines.into_iter().map(|(_, _, line)| line).collect();
    format!("{{\n{}\n}}", lines.join(",\n"))
}

/// Returns the rank of an attribute in [`item_json`]: the key, the keys of indexes, the common
/// attributes, then the entity's own.
fn rank(name: &str) -> (usize, usize) {
    match RESERVED.iter().position(|reserved| *reserved == name) {
        Some(place) if place < 2 => (0, place),
        Some(place) => (2, place),
        None if is_reserved(name) => (1, 0),
        None => (3, 0),
    }
}

pub fn parse_item(text: &str) -> Item {
    serde_json::from_str(text).unwrap()
}
