//! Case 25: drift is found, repaired and reported.

use std::time::Duration;

use key_schema::entity::AnyEntity;
use key_schema::item::Stored;
use key_schema::order::OrderStatus;
use key_schema::product::Product;
use ops::search::{Drift, ReconcileOptions, Reconciled, reconcile};
use search_index::{BulkOperation, Collection};

use crate::shop::{Shop, id_of};
use crate::things::{order, product, retired};

async fn compared(shop: &Shop, dry_run: bool) -> Reconciled {
    let collections = Collection::ALL.to_vec();
    let options = ReconcileOptions { collections, rate: None, dry_run, settle: Duration::ZERO };
    reconcile(&shop.search, &shop.items, &options).await.unwrap()
}

fn drift(reconciled: &Reconciled, collection: Collection) -> &Drift {
    let collections = &reconciled.collections;
    &collections.iter().find(|reconciled| reconciled.collection == collection.name()).unwrap().drift
}

/// Writes to the index behind the consumer's back.
async fn write(shop: &Shop, operation: BulkOperation) {
    assert!(shop.search.bulk(&[operation]).await.unwrap()[0].is_durable());
}

fn document(item: Stored<Product>) -> BulkOperation {
    stream::documents::written(id_of(&item), &AnyEntity::Product(item)).unwrap().unwrap()
}

#[tokio::test]
async fn case_25_drift_injected_by_hand_is_found_repaired_and_reported() {
    let shop = Shop::open().await;
    shop.put_and_deliver(&product("good", 3)).await;
    shop.put_and_deliver(&order("o1", OrderStatus::Paid, 2)).await;
    shop.put(&product("missing", 1)).await;
    shop.put_and_deliver(&product("stale", 4)).await;
    shop.put(&product("stale", 5)).await;
    shop.put(&product("different", 2)).await;
    let mut other = product("different", 2);
    other.data.brand = "Forged".to_owned();
    write(&shop, document(other)).await;
    write(&shop, document(product("nobody", 7))).await;
    shop.put_and_deliver(&product("gone", 1)).await;
    shop.put(&retired("gone", 2)).await;
    shop.put(&order("o2", OrderStatus::Pending, 1)).await;

    let looked = compared(&shop, true).await;
    assert!(!looked.is_clean());
    let seen = drift(&looked, Collection::Products);
    assert_eq!((seen.missing, seen.stale, seen.different, seen.orphaned), (1, 2, 1, 1), "{seen:?}");
    assert_eq!(seen.fields.get("brand"), Some(&1));
    assert_eq!(drift(&looked, Collection::Orders).missing, 1);
    assert_eq!(compared(&shop, true).await, looked, "looking repairs nothing");

    let repaired = compared(&shop, false).await;
    assert!(repaired.is_clean());
    assert_eq!(drift(&repaired, Collection::Products).repairable(), 5);

    let found: Vec<(String, u64)> = vec![("different", 2), ("good", 3), ("missing", 1), ("stale", 5)]
        .into_iter()
        .map(|(id, rev)| (id.to_owned(), rev))
        .collect();
    assert_eq!(shop.found(Collection::Products).await, found);
    assert_eq!(shop.found(Collection::Orders).await, [("o1".to_owned(), 2), ("o2".to_owned(), 1)]);
    assert_eq!(shop.stored(Collection::Products, &product("nobody", 7)).await.unwrap().rev, 8);
    let again = compared(&shop, true).await;
    assert!(again.is_clean(), "{again}");
}

#[tokio::test]
async fn a_document_ahead_of_its_item_is_reported_and_left_to_a_rebuild() {
    let shop = Shop::open().await;
    shop.put_and_deliver(&product("p1", 9)).await;
    // As a restore from a backup would.
    shop.put(&product("p1", 4)).await;
    let repaired = compared(&shop, false).await;
    assert!(!repaired.is_clean());
    assert_eq!(drift(&repaired, Collection::Products).ahead, 1);
    assert_eq!(shop.found(Collection::Products).await, [("p1".to_owned(), 9)]);
}

#[tokio::test]
async fn a_late_record_does_not_undo_a_repair() {
    let shop = Shop::open().await;
    let late = shop.put(&product("p1", 1)).await;
    let removal = shop.remove(&product("p1", 1)).await;
    shop.put_and_deliver(&product("p2", 1)).await;
    write(&shop, document(product("p1", 1))).await;
    let repaired = compared(&shop, false).await;
    assert_eq!(drift(&repaired, Collection::Products).orphaned, 1);
    shop.deliver(&[late.clone(), removal, late]).await;
    assert_eq!(shop.found(Collection::Products).await, [("p2".to_owned(), 1)]);
}

#[tokio::test]
async fn an_item_that_cannot_be_read_is_counted_and_stops_nothing() {
    let shop = Shop::open().await;
    shop.put(&product("p1", 1)).await;
    let mut item = product("broken", 1).to_item().unwrap();
    item.inner_mut().remove("name");
    let put = shop.table.client().put_item().table_name(shop.table.name());
    put.set_item(Some(item.into())).send().await.unwrap();
    let repaired = compared(&shop, false).await;
    let drift = drift(&repaired, Collection::Products);
    assert_eq!((drift.missing, drift.unreadable), (1, 1));
    assert!(!repaired.is_clean());
}
