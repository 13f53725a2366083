//! Tests that `ops search` finds, repairs and reports differences between index and table.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::config::interceptors::AfterDeserializationInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_sdk_dynamodb::operation::batch_get_item::BatchGetItemOutput;
use key_schema::entity::AnyEntity;
use key_schema::item::Stored;
use key_schema::order::OrderStatus;
use key_schema::product::Product;
use ops::Items;
use ops::search::{Drift, ReconcileOptions, Reconciled, prune, reconcile};
use search_index::{BulkOperation, Collection, SearchClient, SearchConfig};

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

/// Writes to the index without the stream's consumer.
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
    let named: Vec<(&str, &str)> = seen.named.iter().map(|named| (named.kind, named.key.as_str())).collect();
    let expected = [
        ("different", "PRODUCT#different PRODUCT"),
        ("missing", "PRODUCT#missing PRODUCT"),
        ("orphaned", "PRODUCT#nobody PRODUCT"),
        ("stale", "PRODUCT#gone PRODUCT"),
        ("stale", "PRODUCT#stale PRODUCT"),
    ];
    assert_eq!(named, expected, "in the summary as text and as JSON");
    assert!(looked.to_string().contains("different  PRODUCT#different PRODUCT: brand"), "{looked}");
    assert_eq!(drift(&looked, Collection::Orders).missing, 1);
    assert_eq!(compared(&shop, true).await, looked, "a comparison repairs nothing");

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
    // The table has an older rev than the index, as after a restore from a backup.
    shop.put(&product("p1", 4)).await;
    let repaired = compared(&shop, false).await;
    assert!(!repaired.is_clean());
    assert_eq!(drift(&repaired, Collection::Products).ahead, 1);
    assert_eq!(shop.found(Collection::Products).await, [("p1".to_owned(), 9)]);
}

/// Changes an item right after the first strong read of items, and delivers the record to the
/// index.
struct ChangesBehind {
    shop: Arc<Shop>,
    newer: Stored<Product>,
    done: AtomicBool,
}

impl fmt::Debug for ChangesBehind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChangesBehind")
    }
}

impl Intercept for ChangesBehind {
    fn name(&self) -> &'static str {
        "ChangesBehind"
    }

    fn read_after_deserialization(
        &self,
        context: &AfterDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let items_were_read =
            context.output_or_error().is_ok_and(|output| output.downcast_ref::<BatchGetItemOutput>().is_some());
        if items_were_read && !self.done.swap(true, Ordering::Relaxed) {
            let change = self.shop.put_and_deliver(&self.newer);
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(change));
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_not_ahead_if_its_item_changes_between_two_reads() {
    let shop = Arc::new(Shop::open().await);
    shop.put_and_deliver(&product("p1", 4)).await;
    // The record of this change has not been delivered.
    shop.put(&product("p1", 5)).await;
    let behind = ChangesBehind { shop: shop.clone(), newer: product("p1", 6), done: AtomicBool::new(false) };
    let config = shop.table.client().config().to_builder().interceptor(behind).build();
    let items = Items::new(aws_sdk_dynamodb::Client::from_conf(config), shop.table.name().to_owned());
    let collections = vec![Collection::Products];
    let options = ReconcileOptions { collections, rate: None, dry_run: false, settle: Duration::ZERO };
    let repaired = reconcile(&shop.search, &items, &options).await.unwrap();
    assert!(repaired.is_clean(), "{repaired}");
    assert_eq!(repaired.collections[0].in_flight, 1, "{repaired}");
    assert_eq!(shop.found(Collection::Products).await, [("p1".to_owned(), 6)]);
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
async fn an_item_that_cannot_be_read_is_counted_and_the_other_items_are_repaired() {
    let shop = Shop::open().await;
    shop.put(&product("p1", 1)).await;
    shop.put_broken(&product("broken", 1), "name").await;
    let repaired = compared(&shop, false).await;
    let drift = drift(&repaired, Collection::Products);
    assert_eq!((drift.missing, drift.unreadable), (1, 1));
    assert!(!repaired.is_clean());
}

#[tokio::test]
async fn a_repair_that_the_engine_refuses_as_old_is_reported_as_unrepaired() {
    let shop = Shop::open().await;
    shop.put_and_deliver(&product("p1", 1)).await;
    shop.put_and_deliver(&product("p2", 1)).await;
    shop.delete_document(&product("p1", 1)).await;
    let repaired = compared(&shop, false).await;
    let seen = drift(&repaired, Collection::Products);
    assert_eq!((seen.missing, seen.unrepaired), (1, 1), "{seen:?}");
    assert!(!repaired.is_clean());
    assert!(repaired.to_string().contains("again after that"), "{repaired}");
    assert_eq!(shop.found(Collection::Products).await, [("p2".to_owned(), 1)]);

    // The engine accepts a rev that is higher than the remembered rev.
    shop.put(&product("p1", 3)).await;
    let repaired = compared(&shop, false).await;
    assert_eq!(drift(&repaired, Collection::Products).unrepaired, 0);
    assert!(repaired.is_clean(), "{repaired}");
    assert_eq!(shop.found(Collection::Products).await, [("p1".to_owned(), 3), ("p2".to_owned(), 1)]);
}

#[tokio::test]
async fn pruning_reports_that_there_is_no_index_to_prune() {
    let shop = Shop::open().await;
    let pruned = prune(&shop.search).await.unwrap();
    assert_eq!((pruned.exit_code(), pruned.render(false).as_str()), (0, "no index is left over"));
    let config = SearchConfig::new(&shop.endpoint, &format!("{}-of-somebody-else", shop.prefix)).unwrap();
    let pruned = prune(&SearchClient::new(&config)).await.unwrap();
    assert_eq!(pruned.exit_code(), 1);
    assert!(pruned.render(false).contains("there are no indices"), "{pruned:?}");
}
