//! Templates of keys: each part of a golden item's key is replaced by the name of its attribute.

use std::collections::BTreeSet;

use key_schema::counter;
use key_schema::encoding::{self, NewestFirst, Part as _, split};
use key_schema::id::CounterName;
use key_schema::instant::Instant;
use key_schema::item::Item;
use serde_dynamo::AttributeValue;

use crate::world::World;

/// Attributes that are never compared with a part: the keys themselves, and attributes that no key
/// contains.
const SKIPPED: [&str; 7] = ["PK", "SK", "entity", "version", "rev", "born", "ttl"];

/// Turns a key into its template: `ORDER#0197…` → `ORDER#<id>`. A part that equals an attribute's
/// value gets the attribute's name. The complement, year, month or day of an instant gets a name
/// such as `<day of at>`. A shard becomes `<shard>`. Any other part stays literal.
pub fn template(item: &Item, key: &str) -> String {
    let values = values(item);
    let parts = split(key).unwrap();
    let named: Vec<String> =
        parts.iter().map(|part| name(part, &values).unwrap_or_else(|| encoding::encode(part))).collect();
    named.join("#")
}

fn name(part: &str, values: &[(String, String)]) -> Option<String> {
    let exact = values.iter().find(|(_, value)| value == part).map(|(name, _)| format!("<{name}>"));
    let reversed = || {
        let of = values.iter().find(|(_, value)| {
            let mut text = String::new();
            value.parse::<Instant>().is_ok_and(|at| {
                NewestFirst(at).write(&mut text);
                text == part
            })
        })?;
        Some(format!("<complement of {}>", of.0))
    };
    let shard = || (part.len() == 20 && part.bytes().all(|byte| byte.is_ascii_digit())).then(|| "<shard>".to_owned());
    let year = || {
        let of =
            values.iter().find(|(name, value)| part.len() == 4 && name.ends_with("_at") && value.starts_with(part))?;
        Some(format!("<year of {}>", of.0))
    };
    let month = || {
        let of = values
            .iter()
            .find(|(name, value)| part.len() == "2017-01".len() && name.ends_with("_at") && value.starts_with(part))?;
        Some(format!("<month of {}>", of.0))
    };
    let day = || {
        let of = values.iter().find(|(name, value)| {
            part.len() == "2017-01-01".len() && (name == "at" || name.ends_with("_at")) && value.starts_with(part)
        })?;
        Some(format!("<day of {}>", of.0))
    };
    exact.or_else(reversed).or_else(shard).or_else(year).or_else(month).or_else(day)
}

/// Returns every value that a part may come from, as the text that a decoded part would have. The
/// entity's own attributes come first, then the common attributes.
fn values(item: &Item) -> Vec<(String, String)> {
    let mut values = Vec::new();
    let mut names: Vec<&String> =
        item.keys().filter(|name| !SKIPPED.contains(&name.as_str()) && !name.starts_with("GSI")).collect();
    names.sort_by_key(|name| (["created_at", "updated_at"].contains(&name.as_str()), *name));
    for name in names {
        collect(name, &item[name.as_str()], &mut values);
    }
    values
}

fn collect(name: &str, value: &AttributeValue, into: &mut Vec<(String, String)>) {
    match value {
        AttributeValue::S(text) => into.push((name.to_owned(), text.clone())),
        AttributeValue::N(number) => {
            into.extend(number.parse().map(|number: u64| (name.to_owned(), format!("{number:020}"))))
        }
        AttributeValue::M(map) => {
            map.iter().for_each(|(field, value)| collect(&format!("{name}.{field}"), value, into))
        }
        AttributeValue::L(list) => {
            list.iter().enumerate().for_each(|(at, value)| collect(&format!("{name}[{at}]"), value, into))
        }
        _ => {}
    }
}

#[test]
fn parts_are_named_by_the_attributes_that_they_came_from() {
    let shown = |name: &str, attribute: &str| {
        let golden = crate::goldens::golden(name);
        let AttributeValue::S(key) = &golden.item[attribute] else { panic!("not a string") };
        template(&golden.item, key)
    };
    assert_eq!(shown("Customer", "PK"), "CUSTOMER#<id>");
    assert_eq!(shown("Customer", "GSI2PK"), "TIER#<tier>#<shard>");
    assert_eq!(shown("Customer", "GSI2SK"), "<created_at>#<id>");
    assert_eq!(shown("Order-placing", "GSI1SK"), "<unfinished.since>#<id>");
    assert_eq!(shown("OrderLine", "SK"), "ITEM#<line>");
    assert_eq!(shown("Sale", "GSI3PK"), "PRODUCTSALES#<product_id>#<year of placed_at>");
    assert_eq!(shown("IdempotencyRecord", "PK"), "IDEMPOTENCY#<scope.caller>#<scope.key>");
    assert_eq!(shown("CategoryNode", "SK"), "CHILD#<path[2]>");
    assert_eq!(shown("Expiration", "PK"), "AUDIT#<day of removed_at>#<shard>");
    assert_eq!(shown("CustomerQuestion", "SK"), "QUESTION#<complement of asked_at>#<id>");
    assert_eq!(shown("RecentReview", "PK"), "RECENTREVIEWS#<month of written_at>#<shard>");
    assert_eq!(shown("MetricPoint", "PK"), "METRIC#<name>#<day of at>#<shard>");
    assert_eq!(shown("CounterShard", "PK"), "COUNTER#<name>#<shard>");
    assert_eq!(shown("Stock", "PK"), "STOCK#<product_id>#<location>#<shard>");
    assert_eq!(shown("UnsettledObject", "GSI1SK"), "<since>#<product_id>#<id>");
}

/// A client chooses ids and names. No choice may give an item the key of another entity.
#[test]
fn no_two_entities_can_have_the_same_key() {
    let mut templates = BTreeSet::new();
    for golden in crate::goldens::goldens(&World::plain()) {
        let text = |name: &str| match &golden.item[name] {
            AttributeValue::S(text) => text.clone(),
            _ => panic!("not a string"),
        };
        let [pk, sk] = ["PK", "SK"].map(|name| template(&golden.item, &text(name)));
        templates.insert((text("entity"), pk, sk));
    }
    let mut colliding = BTreeSet::new();
    for (one, pk, sk) in &templates {
        for (other, other_pk, other_sk) in templates.iter().filter(|(other, ..)| one < other) {
            if may_be_equal(pk, other_pk) && may_be_equal(sk, other_sk) {
                colliding.insert(format!("{one} {other}"));
            }
        }
    }
    // The name of the counter of invoices is reserved. The period of a tally is never `RANK`.
    assert_eq!(colliding.into_iter().collect::<Vec<_>>(), ["Counter InvoiceCounter", "Rank Tally"]);
    assert!(counter::is_reserved(&CounterName::new("invoices").unwrap()));
}

/// Returns whether two templates can give the same key. An attribute can have any text.
fn may_be_equal(one: &str, other: &str) -> bool {
    let (one, other): (Vec<_>, Vec<_>) = (one.split('#').collect(), other.split('#').collect());
    let is_equal = |(one, other): (&&str, &&str)| one == other || one.starts_with('<') || other.starts_with('<');
    one.len() == other.len() && one.iter().zip(&other).all(is_equal)
}
