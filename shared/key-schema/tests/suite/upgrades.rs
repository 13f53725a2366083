//! Tests of two releases that run at the same time. During a deployment and after a rollback, old
//! code reads new items, and new code reads old items.
//!
//! `released/items.json` has stored items of released forms. Until the first tag it has only
//! today's items, and `UPDATE_DOCS=1` rewrites it. From the first tag on, a sample never changes,
//! and `UPDATE_DOCS=1` only adds samples.

use std::collections::BTreeMap;
use std::path::Path;

use key_schema::entity::AnyEntity;
use key_schema::item::{Entity as _, FromItem as _, Item, Stored};
use key_schema::product::{self, Stock};
use serde_dynamo::AttributeValue;

use crate::goldens::{golden, goldens};
use crate::support::json;
use crate::world::World;

/// Returns the samples as one JSON object, with one item per line.
fn text(samples: &BTreeMap<String, Item>) -> String {
    let sample = |(name, item): (&String, &Item)| {
        let attributes: BTreeMap<_, _> = item.iter().map(|(name, value)| (name, json(value))).collect();
        format!("{name:?}: {}", serde_json::to_string(&attributes).unwrap())
    };
    format!("{{\n{}\n}}\n", samples.iter().map(sample).collect::<Vec<_>>().join(",\n"))
}

#[test]
fn an_item_of_every_released_form_is_read_and_written_back() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/released/items.json");
    let today = goldens(&World::plain()).into_iter().map(|golden| (golden.name.to_owned(), golden.item)).collect();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, text(&today)).unwrap();
    }
    let released: BTreeMap<String, Item> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for (name, item) in &released {
        let entity = AnyEntity::from_item(item.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(AnyEntity::from_item(entity.to_item().unwrap()).unwrap(), entity, "{name}");
    }
    assert_eq!(text(&released), text(&today), "UPDATE_DOCS=1 cargo test -p bodega-key-schema rewrites the samples");
}

/// The stock of an earlier table has another key, and lacks two attributes.
#[test]
fn a_stock_that_is_not_moved_yet_is_read_like_its_first_shard() {
    let new = golden("Stock").item;
    let mut old = new.clone();
    let id = World::plain().product;
    let key = product::old_stock(&id).unwrap().key().clone();
    assert_eq!((key.pk.as_str(), key.sk.as_str()), ("PRODUCT#1082185", "PRODUCT#STOCK"));
    for (name, text) in [("PK", key.pk.as_str()), ("SK", key.sk.as_str())] {
        old.inner_mut().insert(name.to_owned(), AttributeValue::S(text.to_owned()));
    }
    for name in ["location", "shard"] {
        old.inner_mut().remove(name).unwrap();
    }
    let read = Stored::<Stock>::from_item(old).unwrap();
    assert!(product::is_old_stock(&read, &key) && !product::is_old_stock(&read, &read.key().unwrap()));
    assert_eq!(read.to_item().unwrap(), new);
}

#[test]
fn an_attribute_of_a_later_release_is_ignored() {
    for golden in goldens(&World::plain()) {
        let mut item = golden.item.clone();
        item.inner_mut().insert("of_a_later_release".to_owned(), AttributeValue::S("?".to_owned()));
        assert_eq!(AnyEntity::from_item(item).unwrap(), golden.entity, "{}", golden.name);
    }
}

#[test]
fn an_item_with_attributes_of_a_later_release_is_read() {
    let mut item = golden("Stock").item;
    item.inner_mut()
        .insert("added_next_year".into(), AttributeValue::M([("a".to_owned(), AttributeValue::Null(true))].into()));
    assert_eq!(Stored::<Stock>::from_item(item).unwrap(), World::plain().stock());
}
