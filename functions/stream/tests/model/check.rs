//! The checks after complete delivery: the consumer's data must match the table and its history.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use key_schema::entity::AnyEntity;
use key_schema::item::FromItem as _;
use key_schema::key::Key;
use search_index::document_id;
use stream::batch::Batch;
use stream::documents;

use crate::history::rules;
use crate::run::Spent;
use crate::world::{World, event};

/// Checks all data. An error describes the first difference.
pub fn check(world: &World) -> Result<(), String> {
    let items: BTreeMap<&Key, AnyEntity> =
        world.table.items().map(|(key, item)| (key, AnyEntity::from_item(item.clone()).unwrap())).collect();
    index(world, &items)?;
    bus(world)?;
    audit(world, &items)?;
    sales(&items)?;
    copies(&items)
}

/// Checks that each document shows its item, and that there are no other documents.
fn index(world: &World, items: &BTreeMap<&Key, AnyEntity>) -> Result<(), String> {
    let mut expected = BTreeMap::new();
    for (key, item) in items {
        let id = document_id(key.pk.as_str(), key.sk.as_str());
        if let Some(operation) = documents::written(id.clone(), item) {
            expected.insert(id, Arc::new(operation.unwrap()));
        }
    }
    same("index", &expected, &world.index)
}

/// Checks that exactly the history's events were published, and that the events of each item were
/// published in order.
fn bus(world: &World) -> Result<(), String> {
    let mut expected: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for shard in &world.stream {
        let event = event(shard);
        for record in &Batch::decode(&event).unwrap().records {
            let event = rules().event(record).unwrap().map(|event| event.id.to_string());
            expected.entry(format!("{:?}", record.key)).or_default().extend(event);
        }
    }
    let all: BTreeSet<&String> = expected.values().flatten().collect();
    same("bus", &all, &world.bus.iter().collect())?;
    for (key, expected) in &expected {
        let first = world.bus.iter().filter(|id| expected.contains(id)).collect();
        same(&format!("order of the events of {key}"), &expected.iter().collect::<Vec<_>>(), &first)?;
    }
    Ok(())
}

/// Checks that each event was published at most once, plus once for each crash or failure.
pub fn repeated(world: &World, spent: Spent) -> Result<(), String> {
    match world.times.iter().find(|(_, times)| **times > 1 + spent.crashes + spent.failures) {
        Some((id, times)) => Err(format!("an event was published {times} times: {id}")),
        None => Ok(()),
    }
}

/// Checks that every expired item has one object, and one entry that names it.
fn audit(world: &World, items: &BTreeMap<&Key, AnyEntity>) -> Result<(), String> {
    let removed = world.stream.iter().flatten().filter(|record| record.contains(r#""eventName":"REMOVE""#)).count();
    let named: Vec<&str> = items
        .values()
        .filter_map(|item| if let AnyEntity::Expiration(entry) = item { entry.archive.as_deref() } else { None })
        .collect();
    same("archive", &removed, &world.archive.len())?;
    same("audit", &world.archive.keys().map(String::as_str).collect::<Vec<_>>(), &named)
}

/// Checks that the rows of an order agree with its head, and the counters with the rows.
fn sales(items: &BTreeMap<&Key, AnyEntity>) -> Result<(), String> {
    let mut counted = (0, 0, 0);
    let mut counters = (0, 0, 0);
    let mut rows = 0;
    for item in items.values() {
        match item {
            AnyEntity::Order(order) => {
                if order.status.is_sale() {
                    counted = (2, 1, 258);
                }
                rows += 2;
            }
            AnyEntity::Sale(_) | AnyEntity::SaleRegion(_) => rows -= 1,
            AnyEntity::ProductSales(sales) => (counters.0, counters.1) = (sales.quantity, sales.orders),
            AnyEntity::RegionSales(sales) => counters.2 += sales.amount,
            _ => {}
        }
    }
    same("rows", &0, &rows)?;
    same("counters", &counted, &counters)
}

/// Checks that the copies on the product and in its membership agree with their sources.
fn copies(items: &BTreeMap<&Key, AnyEntity>) -> Result<(), String> {
    for item in items.values() {
        let AnyEntity::Product(product) = item else { continue };
        for other in items.values() {
            match other {
                AnyEntity::Stock(stock) => same("in_stock", &stock.in_stock(), &product.copied.in_stock)?,
                AnyEntity::ReviewStats(stats) => {
                    let copied = (product.copied.rating_count, product.copied.rating_sum);
                    same("rating", &(stats.rating_count, stats.rating_sum), &copied)?;
                }
                AnyEntity::Membership(member) => same("membership", &product.name, &member.name)?,
                _ => {}
            }
        }
    }
    Ok(())
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, expected: &T, found: &T) -> Result<(), String> {
    if expected == found { Ok(()) } else { Err(format!("{what}: expected {expected:#?}\nfound {found:#?}")) }
}
