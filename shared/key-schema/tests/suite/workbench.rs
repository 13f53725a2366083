//! The table as a data model for NoSQL Workbench, with the golden items as its data. `NOSQL_WORKBENCH`
//! names a file to which the test writes the model.

use std::collections::{BTreeMap, BTreeSet};

use key_schema::entity::AnyEntity;
use key_schema::index::INDEXES;
use key_schema::item::key_of;
use key_schema::key::{Index, Key};
use serde::Serialize;
use serde_json::Value;

use crate::goldens::{Golden, goldens};
use crate::support::json;
use crate::world::World;

#[test]
fn the_model_for_nosql_workbench_has_every_entity() {
    let model = model();
    let shown: BTreeSet<&str> =
        model.data_model[0].table_data.iter().filter_map(|item| item["entity"]["S"].as_str()).collect();
    assert_eq!(shown, AnyEntity::NAMES.iter().copied().collect());
    if let Some(path) = std::env::var_os("NOSQL_WORKBENCH") {
        std::fs::write(path, serde_json::to_string_pretty(&model).unwrap() + "\n").unwrap();
    }
}

/// NoSQL Workbench has one column per attribute. It could not show an attribute with two types, and
/// an index of its data model could not project the attribute.
#[test]
fn an_attribute_has_one_type_in_all_entities() {
    for (name, kinds) in attribute_types() {
        assert_eq!(kinds.len(), 1, "{name} has the types {kinds:?}");
    }
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Model {
    model_name: &'static str,
    model_metadata: Metadata,
    data_model: [Table; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Metadata {
    author: &'static str,
    date_created: &'static str,
    date_last_modified: &'static str,
    description: &'static str,
    #[serde(rename = "AWSService")]
    service: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Table {
    table_name: &'static str,
    key_attributes: KeyAttributes,
    non_key_attributes: Vec<Attribute>,
    global_secondary_indexes: Vec<SecondaryIndex>,
    table_data: Vec<BTreeMap<String, Value>>,
    data_access: DataAccess,
    billing_mode: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct KeyAttributes {
    partition_key: Attribute,
    sort_key: Attribute,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Attribute {
    attribute_name: String,
    attribute_type: String,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct SecondaryIndex {
    index_name: &'static str,
    key_attributes: KeyAttributes,
    projection: Projection,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Projection {
    projection_type: &'static str,
    non_key_attributes: &'static [&'static str],
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct DataAccess {
    my_sql: BTreeMap<String, String>,
}

fn model() -> Model {
    let attributes = attribute_types().into_iter().filter(|(name, _)| !["PK", "SK"].contains(&name.as_str()));
    let table = Table {
        table_name: "Bodega",
        key_attributes: keys("PK", "SK"),
        non_key_attributes: attributes
            .flat_map(|(name, kinds)| kinds.into_iter().map(move |kind| attribute(&name, &kind)))
            .collect(),
        global_secondary_indexes: INDEXES.iter().map(|index| secondary(*index)).collect(),
        table_data: sample()
            .values()
            .map(|golden| golden.item.iter().map(|(name, value)| (name.clone(), json(value))).collect())
            .collect(),
        data_access: DataAccess { my_sql: BTreeMap::new() },
        billing_mode: "PAY_PER_REQUEST",
    };
    Model {
        model_name: "Bodega",
        model_metadata: Metadata {
            author: "Bodega",
            date_created: "Nov 20, 2026, 12:00 PM",
            date_last_modified: "Nov 20, 2026, 12:00 PM",
            description: "Bodega's table. Generated from shared/key-schema; docs/access-patterns explains it.",
            service: "Amazon DynamoDB",
            version: "3.0",
        },
        data_model: [table],
    }
}

fn secondary(index: Index) -> SecondaryIndex {
    SecondaryIndex {
        index_name: index.name(),
        key_attributes: keys(index.partition_attribute(), index.sort_attribute()),
        projection: Projection { projection_type: "INCLUDE", non_key_attributes: index.projected() },
    }
}

fn keys(partition: &str, sort: &str) -> KeyAttributes {
    KeyAttributes { partition_key: attribute(partition, "S"), sort_key: attribute(sort, "S") }
}

fn attribute(name: &str, kind: &str) -> Attribute {
    Attribute { attribute_name: name.to_owned(), attribute_type: kind.to_owned() }
}

/// Returns the golden items by key. If several items share a key, it returns the item with the most
/// attributes.
fn sample() -> BTreeMap<Key, Golden> {
    let mut sample: BTreeMap<Key, Golden> = BTreeMap::new();
    for golden in goldens(&World::plain()) {
        let key = key_of(&golden.item).unwrap();
        if sample.get(&key).is_none_or(|known| known.item.len() < golden.item.len()) {
            sample.insert(key, golden);
        }
    }
    sample
}

/// Returns the types of each attribute: `S`, `N`, `BOOL`, `L`, `M` or `SS`.
fn attribute_types() -> BTreeMap<String, BTreeSet<String>> {
    let mut types: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for golden in goldens(&World::plain()) {
        for (name, value) in golden.item.iter() {
            let kind = json(value).as_object().unwrap().keys().next().unwrap().clone();
            types.entry(name.clone()).or_default().insert(kind);
        }
    }
    types
}
