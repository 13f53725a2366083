//! Tests that an index is rebuilt while clients write to it and read it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use key_schema::item::Stored;
use key_schema::order::OrderStatus;
use key_schema::product::Product;
use ops::OpsError;
use ops::search::{RebuildOptions, Rebuilt, Start, abandon, rebuild};
use search_index::Collection;
use serde_json::{Value, json};

use crate::shop::Shop;
use crate::things::{order, product, retired};

const STABLE: usize = 300;
const CHANGING: u64 = 60;

async fn rebuilt(shop: &Shop, start: Start) -> Result<Rebuilt, OpsError> {
    let options = RebuildOptions {
        collections: Collection::ALL.to_vec(),
        rate: None,
        start,
        restored: false,
        longest_call: Duration::ZERO,
    };
    rebuild(&shop.search, &shop.items, &options).await
}

/// Writes products to table and index. The products do not change during the test. Returns their
/// ids.
async fn stable(shop: &Shop) -> BTreeSet<String> {
    let mut records = Vec::new();
    for number in 0..STABLE {
        records.push(shop.put(&product(&format!("s{number:03}"), 1)).await);
    }
    shop.deliver(&records).await;
    // All documents must be visible before the searches begin.
    shop.search.refresh().await.unwrap();
    (0..STABLE).map(|number| format!("s{number:03}")).collect()
}

/// Writes and removes products until `stop` is set, and delivers the records late in small batches.
/// It delivers some records again, much later. Returns the documents that the index must contain at
/// the end, with their revs.
async fn write(shop: &Shop, stop: &AtomicBool) -> BTreeMap<String, u64> {
    let mut revs: BTreeMap<String, (u64, bool)> = BTreeMap::new();
    let (mut late, mut delivered): (Vec<Value>, Vec<Value>) = (Vec::new(), Vec::new());
    let mut turn: u64 = 0;
    while !stop.load(Ordering::Relaxed) || turn < 2 * CHANGING {
        turn += 1;
        let id = format!("c{:02}", turn.wrapping_mul(7) % CHANGING);
        let (rev, there) = revs.get(&id).copied().unwrap_or((0, false));
        let rev = rev + 1;
        let (record, live) = match turn % 11 {
            3 => (shop.put(&retired(&id, rev)).await, false),
            // The rev of a removal's tombstone is the item's rev plus one.
            5 if there => (shop.remove(&product(&id, rev - 1)).await, false),
            _ => (shop.put(&product(&id, rev)).await, true),
        };
        revs.insert(id, (rev, live));
        late.push(record);
        if late.len() >= 10 {
            let mut batch: Vec<Value> = late.drain(..7).collect();
            shop.deliver(&batch).await;
            delivered.append(&mut batch);
            let again = usize::try_from(turn).unwrap() % delivered.len();
            shop.deliver(&delivered[again..=again]).await;
        }
        tokio::task::yield_now().await;
    }
    shop.deliver(&late).await;
    shop.deliver(&delivered).await;
    revs.into_iter().filter(|(_, (_, live))| *live).map(|(id, (rev, _))| (id, rev)).collect()
}

/// Searches until `stop` is set, and more than three times. Each search must find all products in
/// `whole`. Returns the number of searches.
async fn read(shop: &Shop, whole: &BTreeSet<String>, stop: &AtomicBool) -> usize {
    let mut looks = 0;
    while !stop.load(Ordering::Relaxed) || looks <= 3 {
        looks += 1;
        let page = shop.search.list(Collection::Products, 10_000, None).await.unwrap();
        let found: BTreeSet<String> = page.items.into_iter().map(|document| document.id).collect();
        let lacking: Vec<&String> = whole.difference(&found).collect();
        assert!(lacking.is_empty(), "search {looks} found {} products, but not {lacking:?}", found.len());
        tokio::task::yield_now().await;
    }
    looks
}

#[tokio::test]
async fn case_24_a_rebuild_during_writes_misses_no_document_and_leaves_none_stale() {
    let shop = Shop::open().await;
    let whole = stable(&shop).await;
    shop.put_and_deliver(&order("o1", OrderStatus::Paid, 2)).await;
    shop.put_and_deliver(&order("o2", OrderStatus::Placing, 1)).await;
    // The old index has a tombstone of this product, and the table has no item. The product's first
    // record is delivered again after the rebuild.
    let removed = product("removed", 4);
    let late = shop.put(&removed).await;
    let removal = shop.remove(&removed).await;
    shop.deliver(&[late.clone(), removal]).await;

    let stop = AtomicBool::new(false);
    let (rebuilt, expected, looks) = tokio::join!(
        async {
            let rebuilt = rebuilt(&shop, Start::New).await;
            stop.store(true, Ordering::Relaxed);
            rebuilt.unwrap()
        },
        write(&shop, &stop),
        read(&shop, &whole, &stop),
    );
    assert!(rebuilt.is_complete(), "{rebuilt}");
    assert!(looks > 3);
    shop.deliver(&[late]).await;

    let stable = whole.into_iter().map(|id| (id, 1));
    let expected: Vec<(String, u64)> = expected.into_iter().chain(stable).collect();
    let found = shop.found(Collection::Products).await;
    assert_eq!(found, expected);
    assert_eq!(shop.found(Collection::Orders).await, [("o1".to_owned(), 2)]);
    let [products, orders] = &rebuilt.collections[..] else { panic!("{rebuilt}") };
    assert_eq!((products.new.as_str(), orders.tombstones), (format!("{}-products-v2", shop.prefix).as_str(), 1));
    assert!(products.tombstones >= 1);
}

#[tokio::test]
async fn case_26_readers_never_see_an_empty_or_half_index_after_a_change_of_the_mapping() {
    let today = today();
    let mut yesterday = today.clone();
    yesterday["mappings"]["properties"]["package_size"] = json!({"type": "text", "analyzer": "words"});
    let shop = Shop::with_index(&yesterday).await;
    let whole = stable(&shop).await;
    assert_eq!(package_size(&shop, "v1").await, yesterday["mappings"]["properties"]["package_size"]);

    let stop = AtomicBool::new(false);
    let (rebuilt, looks) = tokio::join!(
        async {
            let rebuilt = rebuilt(&shop, Start::New).await;
            stop.store(true, Ordering::Relaxed);
            rebuilt.unwrap()
        },
        read(&shop, &whole, &stop),
    );
    assert!(rebuilt.is_complete() && looks > 3, "{looks} searches, {rebuilt}");
    assert_eq!(package_size(&shop, "v2").await, today["mappings"]["properties"]["package_size"]);
    let read = shop.search.indices(Collection::Products).await.unwrap();
    let read: Vec<(u64, bool)> = read.iter().map(|index| (index.number, index.read)).collect();
    assert_eq!(read, [(1, false), (2, true)], "the old index remains, and searches do not use it");
}

async fn package_size(shop: &Shop, version: &str) -> Value {
    let name = format!("{}-products-{version}", shop.prefix);
    shop.ask(&name).await[&name]["mappings"]["properties"]["package_size"].clone()
}

#[tokio::test]
async fn a_rebuild_that_was_stopped_is_resumed_or_abandoned_and_never_forgotten() {
    let shop = Shop::open().await;
    let items: Vec<Stored<Product>> = (0..5).map(|number| product(&format!("p{number}"), 1)).collect();
    for item in &items {
        shop.put_and_deliver(item).await;
    }
    assert!(matches!(rebuilt(&shop, Start::Resume).await, Err(OpsError::Usage(_))));
    shop.search.begin_rebuild(Collection::Products).await.unwrap();
    // Both indices get this change.
    shop.put_and_deliver(&product("p0", 2)).await;
    assert!(matches!(rebuilt(&shop, Start::New).await, Err(OpsError::Usage(_))));

    abandon(&shop.search, &Collection::ALL).await.unwrap();
    assert_eq!(shop.search.indices(Collection::Products).await.unwrap().len(), 1);

    shop.search.begin_rebuild(Collection::Products).await.unwrap();
    shop.put_and_deliver(&product("p1", 2)).await;
    let resumed = rebuilt(&shop, Start::Resume).await.unwrap();
    let [products] = &resumed.collections[..] else { panic!("{resumed}") };
    assert_eq!((products.swapped, products.written, products.documents), (true, 4, 5), "{resumed}");
    let revs: Vec<u64> = shop.found(Collection::Products).await.into_iter().map(|(_, rev)| rev).collect();
    assert_eq!(revs, [2, 2, 1, 1, 1]);
}

#[tokio::test]
async fn tombstones_are_copied_only_after_the_longest_call_that_may_not_know_the_new_index() {
    let shop = Shop::open().await;
    let longest_call = Duration::from_millis(300);
    let options = RebuildOptions {
        collections: vec![Collection::Products],
        rate: None,
        start: Start::New,
        restored: false,
        longest_call,
    };
    let began = Instant::now();
    assert!(rebuild(&shop.search, &shop.items, &options).await.unwrap().is_complete());
    assert!(began.elapsed() >= longest_call, "{:?}", began.elapsed());
}

#[tokio::test]
async fn there_is_no_swap_if_the_new_index_refuses_documents() {
    let shop = Shop::open().await;
    shop.put_and_deliver(&product("p1", 1)).await;
    // A rebuild is in progress, and its mapping is wrong.
    let mut mistake = today();
    mistake["mappings"]["properties"]["brand"] = json!({"type": "long"});
    mistake["aliases"] = json!({format!("{}-products-write-v2", shop.prefix): {}});
    shop.make_index("products-v2", &mistake).await;

    let rebuilt = rebuilt(&shop, Start::Resume).await.unwrap();
    let [products] = &rebuilt.collections[..] else { panic!("{rebuilt}") };
    assert!(!products.swapped && !rebuilt.is_complete(), "{rebuilt}");
    assert!(products.drift.refused > 0, "{rebuilt}");
    assert_eq!(shop.found(Collection::Products).await, [("p1".to_owned(), 1)]);
    abandon(&shop.search, &[Collection::Products]).await.unwrap();
    assert_eq!(shop.search.indices(Collection::Products).await.unwrap().len(), 1);
}

/// The old index may still have the document of an item that cannot be read any more.
#[tokio::test]
async fn there_is_no_swap_if_an_item_cannot_be_read_and_the_rebuild_names_its_key() {
    let shop = Shop::open().await;
    shop.put_and_deliver(&product("p1", 1)).await;
    shop.put_and_deliver(&product("p2", 1)).await;
    shop.put_broken(&product("p1", 2), "price").await;
    let refused = rebuilt(&shop, Start::New).await.unwrap();
    let [products, orders] = &refused.collections[..] else { panic!("{refused}") };
    assert!(!products.swapped && orders.swapped && !refused.is_complete(), "{refused}");
    assert!(refused.to_string().contains("unreadable  PRODUCT#p1 PRODUCT: malformed Product"), "{refused}");
    let found: Vec<String> = shop.found(Collection::Products).await.into_iter().map(|(id, _)| id).collect();
    assert_eq!(found, ["p1", "p2"]);

    shop.put_and_deliver(&product("p1", 3)).await;
    let resumed = rebuilt(&shop, Start::Resume).await.unwrap();
    assert!(resumed.is_complete(), "{resumed}");
    assert_eq!(shop.found(Collection::Products).await, [("p1".to_owned(), 3), ("p2".to_owned(), 1)]);
}

fn today() -> Value {
    serde_json::from_str(include_str!("../../../shared/search-index/src/indices/products.json")).unwrap()
}
