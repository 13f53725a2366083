//! Shared test helpers: deterministic properties, hostile texts, and DynamoDB's JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use key_schema::instant::Instant;
use key_schema::item::Item;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use serde_dynamo::AttributeValue;
use serde_json::Value;

/// Returns a configuration with the same cases in every run, so that only a code change can cause a
/// failure.
pub fn deterministic() -> Config {
    Config { cases: 512, rng_seed: RngSeed::Fixed(0x00B0_DE6A), failure_persistence: None, ..Config::default() }
}

pub fn at(text: &str) -> Instant {
    text.parse().unwrap()
}

/// Characters that the encodings treat specially, their neighbors, and some of every UTF-8 length.
const SPECIAL: &[char] = &[
    '\0',
    '\t',
    '\u{1f}',
    ' ',
    '!',
    '"',
    '#',
    '$',
    '%',
    '&',
    '\'',
    '(',
    '+',
    '-',
    '/',
    '0',
    '2',
    '9',
    'A',
    'F',
    'Z',
    '_',
    'a',
    'f',
    'z',
    '~',
    '\u{7f}',
    '\u{80}',
    'ß',
    'é',
    'ʼ',
    'ﬁ',
    '中',
    '\u{ffff}',
    '😀',
    '\u{10FFFF}',
];

/// Generates any text, with the special characters far more often than at random.
pub fn text(max_chars: usize) -> impl Strategy<Value = String> {
    let character = prop_oneof![4 => proptest::sample::select(SPECIAL), 1 => any::<char>()];
    proptest::collection::vec(character, 0..=max_chars).prop_map(|chars| chars.into_iter().collect())
}

/// Generates any bytes, with those in or near the escaped range far more often than at random.
pub fn bytes(max: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(prop_oneof![3 => 0x1e..=0x2au8, 1 => any::<u8>()], 0..=max)
}

/// Generates any instant, often within milliseconds of 1970 or of one whole second.
pub fn instant() -> impl Strategy<Value = Instant> {
    let range = Instant::MIN.as_millis()..=Instant::MAX.as_millis();
    prop_oneof![range, -3i64..=3, 1_483_271_605_998i64..=1_483_271_606_003]
        .prop_map(|millis| Instant::from_millis(millis).unwrap())
}

/// Generates any instant from 1970 on, the range of time-ordered ids.
pub fn instant_since_epoch() -> impl Strategy<Value = Instant> {
    instant().prop_map(|at| Instant::from_millis(at.as_millis().abs().min(Instant::MAX.as_millis())).unwrap())
}

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
    let mut lines: Vec<(usize, &String, String)> =
        item.iter().map(|(name, value)| (rank(name), name, format!("  \"{name}\": {}", json(value)))).collect();
    lines.sort();
    let lines: Vec<String> = lines.into_iter().map(|(_, _, line)| line).collect();
    format!("{{\n{}\n}}", lines.join(",\n"))
}

fn rank(name: &str) -> usize {
    let place = key_schema::item::RESERVED.iter().position(|reserved| *reserved == name);
    place.unwrap_or(key_schema::item::RESERVED.len())
}

/// Parses the text of [`item_json`].
pub fn parse_item(text: &str) -> Item {
    serde_json::from_str(text).unwrap()
}
