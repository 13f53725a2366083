//! The data that the local system stores, as text. Sent mails and the objects of the bucket `Media`
//! are not included.

use std::collections::BTreeSet;

use local::System;
use serde_json::{Value as Json, json};

use crate::control::all;
use crate::support::client::http;
use crate::support::table::scan;

/// Names of the `/_local` lists with stored data outside of the table and the index.
const LISTS: [&str; 4] = ["archive", "events", "failures", "quarantine"];

/// Stored texts, each with the kind of its place: an item's entity, the index of a search document,
/// or a name in [`LISTS`].
pub struct StoredTexts(Vec<(String, String)>);

impl StoredTexts {
    pub async fn read(system: &System) -> Self {
        let item = |item: Json| (item["entity"]["S"].as_str().unwrap().to_owned(), item.to_string().to_lowercase());
        let mut texts: Vec<(String, String)> = scan(system).await.into_values().map(item).collect();
        for collection in ["products", "orders"] {
            let url = format!("{}/{}-{collection}-v1/_search", system.search_url(), system.table());
            let query = json!({ "query": { "match_all": {} }, "size": 1000 });
            let found: Json = http().post(url).json(&query).send().await.unwrap().json().await.unwrap();
            let hits = found["hits"]["hits"].as_array().unwrap_or_else(|| panic!("{found}"));
            texts.extend(hits.iter().map(|hit| (format!("index of {collection}"), hit.to_string().to_lowercase())));
        }
        for list in LISTS {
            let things = all(system, &format!("/_local/{list}")).await;
            texts.extend(things.iter().map(|thing| (list.to_owned(), thing.to_string().to_lowercase())));
        }
        Self(texts)
    }

    pub fn places_of(&self, mark: &str) -> BTreeSet<&str> {
        self.0.iter().filter(|(_, text)| text.contains(mark)).map(|(place, _)| place.as_str()).collect()
    }

    pub fn count(&self, place: &str) -> usize {
        self.0.iter().filter(|(kind, _)| kind == place).count()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}
