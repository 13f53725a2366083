//! Tests of two releases that run at the same time. During a deployment and after a rollback, old
//! code reads new items, and new code reads old items.
//!
//! The items in `released/` were written by a release, and they never change. With `UPDATE_DOCS=1`
//! one of the tests adds the golden items that are new.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use key_schema::entity::AnyEntity;
use key_schema::item::{FromItem as _, Stored};
use key_schema::product::Stock;
use serde_dynamo::AttributeValue;

use crate::goldens::{golden, goldens};
use crate::support::{item_json, parse_item};
use crate::world::World;

fn released(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/released").join(name)
}

#[test]
fn items_of_earlier_releases_can_be_read() {
    let mut kept = BTreeSet::new();
    for entry in std::fs::read_dir(released("")).unwrap() {
        let path = entry.unwrap().path();
        let item = parse_item(&std::fs::read_to_string(&path).unwrap());
        if let Err(error) = AnyEntity::from_item(item) {
            panic!("{}: {error}: a release must read all stored items", path.display());
        }
        kept.insert(path.file_stem().unwrap().to_string_lossy().into_owned());
    }
    for golden in goldens(&World::plain()) {
        if !kept.contains(golden.name) {
            assert!(std::env::var_os("UPDATE_DOCS").is_some(), "{} has no sample in `released` yet", golden.name);
            std::fs::write(released(&format!("{}.json", golden.name)), item_json(&golden.item)).unwrap();
        }
    }
}

/// Every profile of an earlier release has a claim on its address, so the address counts as
/// verified. Otherwise its customer would get no mail after the upgrade.
#[test]
fn a_profile_of_an_earlier_release_counts_as_verified() {
    let item = parse_item(&std::fs::read_to_string(released("Customer.json")).unwrap());
    assert!(!item.contains_key("email_verified"));
    let AnyEntity::Customer(customer) = AnyEntity::from_item(item).unwrap() else { panic!("not a customer") };
    assert!(customer.email_verified);
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
