//! Tests the largest entries that request bodies can make: no page of them exceeds Lambda's limit.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::{BTreeSet, HashMap};

use http_api::MAX_PAGE_BYTES;
use http_api::sample::with_page_bytes;
use key_schema::customer::MAX_ADDRESSES;
use key_schema::document::MAX_SECTIONS;
use key_schema::item::{Item, entity_name};
use serde_dynamo::AttributeValue;
use serde_json::Value;

use super::{Function, List, PAGE, all};
use crate::loaded::LoadedTable;

/// Attributes with a client's text, and the maximum number of bytes that a body can give them.
const TEXTS: [(&str, usize); 9] = [
    ("brand", 128),
    ("description", 2000),
    ("device", 200),
    ("name", 200),
    ("note", 500),
    ("package_size", 64),
    ("summary", 2000),
    ("text", 8000),
    ("title", 200),
];

/// Returns a text of quotation marks. They take the most bytes: `\\\"` for each in a response.
fn quotes(bytes: usize) -> AttributeValue {
    AttributeValue::S("\"".repeat(bytes))
}

fn numbered(n: usize) -> String {
    format!("{n:02}{}", "\"".repeat(126))
}

/// Returns the item with the longest texts, which have only quotation marks.
fn largest(mut item: Item) -> Item {
    let entity = entity_name(&item).unwrap().to_owned();
    for (name, bytes) in TEXTS {
        // The texts of a MetricPoint stay, because the name of the metric is part of the key.
        if entity != "MetricPoint" && matches!(item.get(name), Some(AttributeValue::S(_))) {
            item.inner_mut().insert(name.to_owned(), quotes(bytes));
        }
    }
    if entity == "Customer" {
        let fields = [("street", 200), ("city", 128), ("postal_code", 32), ("region", 128), ("country", 128)];
        let address: HashMap<_, _> = fields.iter().map(|(name, bytes)| ((*name).to_owned(), quotes(*bytes))).collect();
        let addresses = (0..MAX_ADDRESSES).map(|n| (numbered(n), AttributeValue::M(address.clone()))).collect();
        item.inner_mut().insert("addresses".to_owned(), AttributeValue::M(addresses));
    }
    if entity == "DocumentVersion" {
        let sections = (0..MAX_SECTIONS).map(|n| (numbered(n), AttributeValue::N("1".to_owned()))).collect();
        item.inner_mut().insert("sections".to_owned(), AttributeValue::M(sections));
        item.inner_mut().insert("note".to_owned(), quotes(500));
    }
    item
}

/// Returns the number of bytes that a body takes inside the JSON string of Lambda's response.
fn wire(body: &Value) -> usize {
    serde_json::to_string(&body.to_string()).unwrap().len()
}

/// Returns the function that serves a list with this many of the largest entries.
async fn filled(list: &List, items: u64) -> Box<dyn Function> {
    let loaded = LoadedTable::create().await.unwrap();
    loaded.load(list.around.iter().cloned().map(Ok)).await.unwrap();
    loaded.load((0..items).map(|n| (list.item)(n).map(largest))).await.unwrap();
    let function = (list.function)(loaded.services().unwrap()).unwrap();
    // The value is not dropped, so that the table exists until the program ends.
    std::mem::forget(loaded);
    function
}

/// Returns all entries of a list, and the size of each page in bytes. A page has at most `limit`
/// entries and `bytes` bytes.
async fn pages(list: &List, function: &dyn Function, limit: usize, bytes: usize) -> (Vec<String>, Vec<usize>) {
    let (mut entries, mut sizes, mut cursor) = (Vec::new(), Vec::new(), None::<String>);
    loop {
        let answer = with_page_bytes(bytes, function.send(list.page(limit, cursor.as_deref()))).await;
        assert_eq!(answer.status, 200, "{}: {}", list.name(), answer.body);
        let page = answer.body["items"].as_array().unwrap();
        assert!(!page.is_empty() || sizes.is_empty(), "{}: an empty page", list.name());
        entries.extend(page.iter().map(Value::to_string));
        sizes.push(wire(&answer.body));
        match answer.body["next_cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => return (entries, sizes),
        }
    }
}

/// Reads the pages of every list that [`all`] returns. [`super::tests`] checks that only searches
/// and leaderboards are missing there.
#[tokio::test]
async fn pages_of_the_largest_entries_fit_into_a_response_and_lose_no_entry() {
    const ENTRIES: usize = 120;
    let mut early = BTreeSet::new();
    for list in all().unwrap() {
        let (function, name) = (filled(&list, 120).await, list.name());
        let (whole, sizes) = pages(&list, &*function, PAGE, usize::MAX).await;
        assert_eq!((whole.len(), whole.iter().collect::<BTreeSet<_>>().len()), (ENTRIES, ENTRIES), "{name}");
        if sizes.iter().any(|bytes| *bytes > MAX_PAGE_BYTES) {
            early.insert(name.clone());
        }
        let (found, sizes) = pages(&list, &*function, PAGE, MAX_PAGE_BYTES).await;
        assert!(found == whole, "{name}: an entry is missing, duplicate or out of order");
        assert!(sizes.iter().all(|bytes| *bytes <= MAX_PAGE_BYTES), "{name}: {sizes:?}");
        // With a small limit, too, each page ends before it exceeds the limit.
        let longest = whole.iter().map(String::len).max().unwrap_or_default();
        let most = 4_000 + 2 * longest;
        // The test requests `few` entries, which are still more than a small page can hold. The
        // function reads all of them from the table, so `few` is smaller if the entries are long.
        let few = if longest < 1_000 { 60 } else { 12 };
        let (found, sizes) = pages(&list, &*function, few, most).await;
        assert!(found == whole, "{name}: on small pages an entry is missing, duplicate or out of order");
        assert!(sizes.iter().all(|bytes| *bytes <= most), "{name}: {sizes:?} are more than {most}");
        assert!(sizes.len() > ENTRIES / few, "{name}: {} pages", sizes.len());
    }
    assert!(early.contains("GET /v1/customers?tier=silver"), "no page of customers ends early: {early:?}");
}
