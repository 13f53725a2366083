//! Measures requests, and computes the write units that DynamoDB charges for them.

use std::collections::BTreeMap;

use fixture::TestTable;
use key_schema::index::INDEXES;
use key_schema::item::{Entity, FromItem, Item, Stored, entity_name, index_entry_size, key_of, size};
use key_schema::key::{Index, Key};
use key_schema::pattern::Pattern;
use key_schema::request::{BatchGet, BatchWrite, Get, Query, Single, Transaction, Write};
use serde_dynamo::AttributeValue;
use table::Table;

/// The key of the table's own write units. The other keys are the names of indexes.
const TABLE: &str = "table";

/// The cost of one use of a pattern.
pub(super) struct Cost {
    pub(super) pattern: &'static Pattern,
    pub(super) on: String,
    pub(super) requests: u32,
    pub(super) read_units: f64,
    /// The write units of the table and of each index.
    pub(super) write_units: BTreeMap<&'static str, usize>,
    pub(super) items: u32,
    pub(super) bytes: u64,
    /// The number of items of each entity. For a write, these are the changed items. For a read,
    /// they are the items at its keys or in its range.
    pub(super) entities: BTreeMap<String, u32>,
}

pub(super) struct Bench {
    pub(super) test: TestTable,
    pub(super) table: Table,
    pub(super) costs: Vec<Cost>,
}

impl Bench {
    pub(super) async fn create() -> Self {
        let test = TestTable::create().await;
        let table = test.table();
        Self { test, table, costs: Vec::new() }
    }

    /// Returns all items of the table with a Scan, which only tests and `ops` may use.
    pub(super) async fn everything(&self) -> BTreeMap<Key, Item> {
        let mut all = BTreeMap::new();
        let mut pages = self
            .test
            .client()
            .scan()
            .table_name(self.test.name())
            .consistent_read(true)
            .into_paginator()
            .items()
            .send();
        while let Some(item) = pages.next().await {
            let item: Item = item.unwrap().into();
            all.insert(key_of(&item).unwrap(), item);
        }
        all
    }

    pub(super) fn reads<'a>(&mut self, on: &str, items: impl IntoIterator<Item = &'a Item>) {
        let measured = self.table.meter().take();
        let [one] = measured.as_slice() else { panic!("one pattern at a time: {measured:?}") };
        self.costs.push(Cost {
            pattern: one.pattern,
            on: on.to_owned(),
            requests: one.requests,
            read_units: one.capacity_units,
            write_units: BTreeMap::new(),
            items: one.items,
            bytes: one.bytes,
            entities: entities(items),
        });
    }

    pub(super) async fn get<T: FromItem>(&mut self, on: &str, get: Get<T>) -> T {
        let found = self.table.get(&get).await.unwrap().expect(on);
        let all = self.everything().await;
        self.reads(on, all.get(get.key()));
        found
    }

    pub(super) async fn batch_get<T: FromItem>(&mut self, on: &str, get: BatchGet<T>) {
        assert!(self.table.batch_get(&get).await.unwrap().iter().any(Option::is_some), "{on}");
        let all = self.everything().await;
        self.reads(on, get.keys().iter().filter_map(|key| all.get(key)));
    }

    pub(super) async fn query<T: FromItem>(&mut self, on: &str, expected: usize, query: Query<T>) {
        assert_eq!(self.table.query(&query).await.unwrap().items.len(), expected, "{on}");
        let all = self.everything().await;
        self.reads(on, all.values().filter(|item| is_in(item, &query)));
    }

    pub(super) async fn writes(&mut self, on: &str, before: BTreeMap<Key, Item>, factor: usize, checks: usize) {
        let after = self.everything().await;
        let measured = self.table.meter().take();
        let [one] = measured.as_slice() else { panic!("one pattern at a time: {measured:?}") };
        let changed = before.keys().chain(after.keys()).collect::<std::collections::BTreeSet<_>>();
        let mut units = BTreeMap::from([(TABLE, 0)]);
        let mut touched = Vec::new();
        for key in changed {
            let (old, new) = (before.get(key), after.get(key));
            if old != new {
                touched.extend(new.or(old));
                *units.entry(TABLE).or_default() +=
                    factor * write_units(old.into_iter().chain(new).map(size).max().unwrap_or(0));
                for index in INDEXES {
                    *units.entry(index.name()).or_default() += index_units(old, new, index);
                }
            }
        }
        assert!(units.values().sum::<usize>() > 0, "{on} changed nothing");
        *units.entry(TABLE).or_default() += checks;
        units.retain(|_, units| *units > 0);
        if factor == 1 {
            let all = units.values().sum::<usize>() as f64;
            assert_eq!(one.capacity_units, all, "{on}: the table reports other units than the test computes");
        }
        self.costs.push(Cost {
            pattern: one.pattern,
            on: on.to_owned(),
            requests: one.requests,
            read_units: 0.0,
            write_units: units,
            items: 0,
            bytes: 0,
            entities: entities(touched),
        });
    }

    /// Writes an item without any condition, and without measuring it.
    pub(super) async fn seed<T: Entity>(&self, item: &Stored<T>) {
        let put = self.test.client().put_item().table_name(self.test.name());
        put.set_item(Some(item.to_item().unwrap().into())).send().await.unwrap();
    }

    pub(super) async fn write(&mut self, on: &str, write: Single<()>) {
        let before = self.everything().await;
        self.table.write(&write).await.unwrap().unwrap();
        self.writes(on, before, 1, 0).await;
    }

    pub(super) async fn update<T: FromItem>(&mut self, on: &str, write: Single<T>) -> T {
        let before = self.everything().await;
        let item = self.table.update(&write).await.unwrap().unwrap();
        self.writes(on, before, 1, 0).await;
        item
    }

    pub(super) async fn batch_write(&mut self, on: &str, write: BatchWrite) {
        let before = self.everything().await;
        assert!(self.table.batch_write(&write).await.unwrap().is_empty());
        self.writes(on, before, 1, 0).await;
    }

    pub(super) async fn transact<L: Clone + std::fmt::Debug>(&mut self, on: &str, transaction: Transaction<L>) {
        let before = self.everything().await;
        self.table.transact(&transaction).await.unwrap().unwrap();
        let checked = transaction.actions().iter().filter_map(|(_, guarded)| match &guarded.write {
            Write::Check { key } => before.get(key),
            _ => None,
        });
        let checks = checked.map(|item| 2 * write_units(size(item))).sum();
        self.writes(on, before, 2, checks).await;
    }
}

fn entities<'a>(items: impl IntoIterator<Item = &'a Item>) -> BTreeMap<String, u32> {
    let mut entities = BTreeMap::new();
    for item in items {
        *entities.entry(entity_name(item).unwrap().to_owned()).or_default() += 1;
    }
    entities
}

/// Returns whether the item is in the range of a query.
fn is_in<T>(item: &Item, query: &Query<T>) -> bool {
    let [partition, sort] =
        query.index().map_or(["PK", "SK"], |index| [index.partition_attribute(), index.sort_attribute()]);
    let text = |name: &str| match item.get(name) {
        Some(AttributeValue::S(text)) => Some(text.as_str()),
        _ => None,
    };
    let (Some(partition), Some(sort)) = (text(partition), text(sort)) else { return false };
    query.partitions().iter().any(|known| known.as_str() == partition)
        && query.bounds().is_some_and(|bounds| bounds.contains(sort))
}

/// Returns one unit for each started KB, and at least one.
pub(super) fn write_units(bytes: usize) -> usize {
    bytes.div_ceil(1024).max(1)
}

fn index_units(old: Option<&Item>, new: Option<&Item>, index: Index) -> usize {
    let entry = |item: Option<&Item>| {
        let item = item?;
        let size = index_entry_size(item, index)?;
        let keys = [index.partition_attribute(), index.sort_attribute()].map(|name| item.get(name).cloned());
        let shown: Vec<_> = index.projected().iter().map(|name| item.get(*name).cloned()).collect();
        Some((size, keys, shown))
    };
    match (entry(old), entry(new)) {
        (None, None) => 0,
        (None, Some((size, ..))) | (Some((size, ..)), None) => write_units(size),
        (Some((before, old_keys, _)), Some((after, new_keys, _))) if old_keys != new_keys => {
            write_units(before) + write_units(after)
        }
        (Some((_, _, old)), Some((_, _, new))) if old == new => 0,
        (Some((before, ..)), Some((after, ..))) => write_units(before.max(after)),
    }
}
