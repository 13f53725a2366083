//! Tests a table that was restored from a backup. Index and archive still have data that the table
//! has lost.

use std::time::Duration;

use key_schema::archive::under;
use key_schema::order::OrderItem;
use key_schema::order::{self, OrderStatus};
use ops::archive::restore_order;
use ops::orders::retire;
use ops::search::{RebuildOptions, Rebuilt, ReconcileOptions, Start, abandon, rebuild, reconcile};
use search_index::Collection;
use serde_json::{Value, json};

use crate::archive::{ID, delivered, expire, options, read};
use crate::shop::{Bucket, Shop};
use crate::things::{order, product};

async fn rebuilt(shop: &Shop, restored: bool) -> Rebuilt {
    let options = RebuildOptions {
        collections: Collection::ALL.to_vec(),
        rate: None,
        start: Start::New,
        restored,
        longest_call: Duration::ZERO,
    };
    rebuild(&shop.search, &shop.items, &options).await.unwrap()
}

/// Returns how many documents of products are ahead of their items.
async fn ahead(shop: &Shop) -> u64 {
    let options =
        ReconcileOptions { collections: Collection::ALL.to_vec(), rate: None, dry_run: true, settle: Duration::ZERO };
    let reconciled = reconcile(&shop.search, &shop.items, &options).await.unwrap();
    let [products, orders] = &reconciled.collections[..] else { panic!("{reconciled}") };
    assert!(products.drift.repairable() == 0 && orders.drift.is_none(), "{reconciled}");
    products.drift.ahead
}

#[tokio::test]
async fn a_rebuild_after_a_restore_leaves_out_documents_that_the_table_has_lost() {
    let shop = Shop::open().await;
    // This is the state in the backup. The changes after the backup follow.
    for id in ["changed", "removed", "same"] {
        shop.put_and_deliver(&product(id, 4)).await;
    }
    shop.put_and_deliver(&product("changed", 9)).await;
    let gone = product("removed", 8);
    shop.put_and_deliver(&gone).await;
    shop.deliver(&[shop.remove(&gone).await]).await;
    shop.put_and_deliver(&product("created", 1)).await;
    shop.put_and_deliver(&order("o1", OrderStatus::Paid, 2)).await;
    // These writes restore the table. The stream has no records of them.
    shop.put(&product("changed", 4)).await;
    shop.put(&product("removed", 4)).await;
    shop.remove(&product("created", 1)).await;

    let plain = rebuilt(&shop, false).await;
    assert!(!plain.is_complete(), "the tombstone keeps the item out: {plain}");
    assert!(plain.to_string().contains("--restored"), "{plain}");
    assert!(shop.found(Collection::Products).await.contains(&("changed".to_owned(), 9)), "no alias was changed");
    abandon(&shop.search, &Collection::ALL).await.unwrap();

    let restored = rebuilt(&shop, true).await;
    assert!(restored.is_complete(), "{restored}");
    assert!(restored.collections.iter().all(|collection| collection.tombstones == 0 && collection.drift.is_none()));
    let table = ["changed", "removed", "same"].map(|id| (id.to_owned(), 4));
    assert_eq!(shop.found(Collection::Products).await, table);
    assert_eq!(shop.found(Collection::Orders).await, [("o1".to_owned(), 2)]);
    assert_eq!(ahead(&shop).await, 0);
    // Searches find the changes of the restored table.
    shop.put_and_deliver(&product("removed", 5)).await;
    assert!(shop.found(Collection::Products).await.contains(&("removed".to_owned(), 5)));
}

#[tokio::test]
async fn a_product_removed_by_hand_and_created_again_is_found_after_a_rebuild() {
    let shop = Shop::open().await;
    let first = product("p1", 4);
    shop.put_and_deliver(&first).await;
    shop.deliver(&[shop.remove(&first).await]).await;
    shop.put_and_deliver(&product("p1", 1)).await;
    assert_eq!(shop.found(Collection::Products).await, []);
    assert_eq!(ahead(&shop).await, 1);
    assert!(rebuilt(&shop, true).await.is_complete());
    assert_eq!(shop.found(Collection::Products).await, [("p1".to_owned(), 1)]);
    assert_eq!(ahead(&shop).await, 0);
}

/// Returns the name and the content of the archived head of the order.
async fn archived_head(bucket: &Bucket) -> (String, Value) {
    let key = order::head(&ID.parse().unwrap()).unwrap().key().clone();
    let names = bucket.names().await;
    let name = names.into_iter().find(|name| name.starts_with(&under(&key.pk, &key))).unwrap();
    let body = bucket.store.get(&name).await.unwrap().unwrap();
    (name, serde_json::from_slice(&body).unwrap())
}

#[tokio::test]
async fn the_last_state_of_a_twice_expired_order_is_restored_despite_a_new_stream() {
    for (rev, removed_at) in [(1, "2030-01-01T00:00:00.000Z"), (0, "2016-01-01T00:00:00.000Z")] {
        let (shop, bucket) = (Shop::open().await, Bucket::open().await);
        let table = shop.table.table();
        delivered(&shop).await;
        retire(&table, &options(false)).await.unwrap();
        expire(&shop, &bucket).await;
        let (_, last) = archived_head(&bucket).await;
        // The same item expired earlier, in a stream with larger sequence numbers. Its earlier
        // archive entry has a lower rev, or the same rev and an earlier time of removal.
        let mut earlier = last.clone();
        let known: u64 = last["item"]["rev"]["N"].as_str().unwrap().parse().unwrap();
        earlier["item"]["rev"] = json!({"N": (known - rev).to_string()});
        earlier["item"]["status"] = json!({"S": "cancelled"});
        earlier["removed_at"] = removed_at.into();
        let key = order::head(&ID.parse().unwrap()).unwrap().key().clone();
        bucket.put(&format!("{}{}.json", under(&key.pk, &key), "9".repeat(30)), &earlier.to_string());

        let restored = restore_order(&table, &bucket.store, &ID.parse().unwrap()).await.unwrap();
        assert!(restored.is_complete(), "{restored}");
        let items = read(&table).await;
        let Some(OrderItem::Order(head)) = items.iter().find(|item| matches!(item, OrderItem::Order(_))) else {
            panic!("{items:?}")
        };
        assert_eq!((head.status, head.meta.rev), (OrderStatus::Delivered, known + 2));
    }
}

#[tokio::test]
async fn an_order_is_not_restored_before_all_its_lines_are_in_the_archive() {
    let (shop, bucket) = (Shop::open().await, Bucket::open().await);
    let table = shop.table.table();
    delivered(&shop).await;
    retire(&table, &options(false)).await.unwrap();
    let items = read(&table).await;
    let Some(OrderItem::OrderLine(line)) = items.iter().find(|item| matches!(item, OrderItem::OrderLine(_))) else {
        panic!("{items:?}")
    };
    expire(&shop, &bucket).await;
    let key = key_schema::item::Entity::key(&line.data).unwrap();
    let names = bucket.names().await;
    let name = names.iter().find(|name| name.starts_with(&under(&key.pk, &key))).unwrap();
    let body = bucket.store.get(name).await.unwrap().unwrap();
    bucket.store.delete(name).await.unwrap();
    let id = ID.parse().unwrap();
    let has_head = |items: &[OrderItem]| items.iter().any(|item| matches!(item, OrderItem::Order(_)));

    // The record of the line's removal has not arrived yet.
    let restored = restore_order(&table, &bucket.store, &id).await.unwrap();
    assert!(!restored.is_complete() && restored.failed[0].contains("1 of its 2 lines"), "{restored}");
    assert!(!has_head(&read(&table).await), "the head is restored only after its lines");
    // DynamoDB has not removed the line yet.
    shop.put(line).await;
    assert!(!restore_order(&table, &bucket.store, &id).await.unwrap().is_complete());
    assert!(!has_head(&read(&table).await));

    shop.remove(line).await;
    bucket.put(name, std::str::from_utf8(&body).unwrap());
    let restored = restore_order(&table, &bucket.store, &id).await.unwrap();
    assert_eq!((restored.restored, restored.existing, restored.is_complete()), (2, 3, true), "{restored}");
    assert_eq!(read(&table).await.len(), 4);
}
