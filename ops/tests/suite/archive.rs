//! Tests that closed orders are retired, expire into the archive, and are restored completely.

use std::sync::Arc;
use std::time::Duration;

use fixture::seed;
use key_schema::archive::under;
use key_schema::instant::Instant;
use key_schema::item::{Entity, Stored};
use key_schema::order::{self, CustomerOrder, OrderItem, OrderLine, OrderStatus, OrderStatusEvent};
use ops::archive::{list, restore_object, restore_order};
use ops::orders::{RetireOptions, retire};
use search_index::Collection;
use serde_json::Value;
use stream::audit::Audit;
use stream::consumer::Consumer;
use table::Table;

use crate::shop::{Bucket, Shop};
use crate::things::{order, with_meta};

pub const ID: &str = "o1";

/// Writes all items of a delivered order with two lines.
pub async fn delivered(shop: &Shop) {
    let head = order(ID, OrderStatus::Delivered, 5);
    shop.put_and_deliver(&head).await;
    for line in [1, 2] {
        let data = seed::line(&head.id, line, format!("p{line}").parse().unwrap());
        shop.put(&with_meta(OrderLine { unit_price: head.total, total: head.total, ..data }, 1)).await;
    }
    shop.put(&with_meta(order::history(&head, OrderStatus::Pending, head.placed_at, "c1", None), 1)).await;
    shop.put(&with_meta(CustomerOrder::of(&head), 5)).await;
}

/// Reads all items of the order except the customer's copy.
pub async fn read(table: &Table) -> Vec<OrderItem> {
    table.query(&order::read_for_update(&ID.parse().unwrap()).unwrap()).await.unwrap().items
}

/// Removes the order as DynamoDB removes expired items. The audit consumer takes the records.
pub async fn expire(shop: &Shop, bucket: &Bucket) {
    let table = Arc::new(shop.table.table());
    let audit = Audit::new(table.clone(), Arc::new(bucket.store.clone()), 2);
    let consumer =
        Consumer::new(vec![Box::new(audit)], Box::new(crate::shop::PanickingQuarantine), stream::Settings::default());
    let mut records = Vec::new();
    for item in read(&table).await {
        records.push(match item {
            OrderItem::Order(item) => gone(shop, &item).await,
            OrderItem::OrderLine(item) => gone(shop, &item).await,
            OrderItem::OrderStatusEvent(item) => gone::<OrderStatusEvent>(shop, &item).await,
            OrderItem::Payment(item) => gone(shop, &item).await,
            OrderItem::PaymentOperation(item) => gone(shop, &item).await,
        });
    }
    let copies = order::of_customer(&"c1".parse().unwrap(), None, None).unwrap();
    for copy in table.query(&copies).await.unwrap().items {
        records.push(gone(shop, &copy).await);
    }
    crate::shop::deliver_to(&consumer, &records).await;
    // The search index gets the records too.
    shop.deliver(&records).await;
}

async fn gone<T: Entity>(shop: &Shop, item: &Stored<T>) -> Value {
    let mut record = shop.remove(item).await;
    record["userIdentity"] = serde_json::json!({"type": "Service", "principalId": "dynamodb.amazonaws.com"});
    record
}

pub fn options(dry_run: bool) -> RetireOptions {
    RetireOptions { before: Instant::now(), grace: Duration::ZERO, rate: None, dry_run }
}

#[tokio::test]
async fn a_retired_order_expires_and_its_restore_makes_it_complete_and_searchable_again() {
    let (shop, bucket) = (Shop::open().await, Bucket::open().await);
    let table = shop.table.table();
    delivered(&shop).await;
    shop.put(&order("open", OrderStatus::Paid, 1)).await;

    assert_eq!(retire(&table, &options(true)).await.unwrap().orders, 1);
    let retired = retire(&table, &options(false)).await.unwrap();
    assert_eq!((retired.orders, retired.failed.len()), (1, 0), "{retired}");
    assert_eq!(retire(&table, &options(false)).await.unwrap().orders, 0, "a second run has nothing to do");

    expire(&shop, &bucket).await;
    assert!(read(&table).await.is_empty());
    assert_eq!(shop.found(Collection::Orders).await, []);

    let id = ID.parse().unwrap();
    let restored = restore_order(&table, &bucket.store, &id).await.unwrap();
    assert_eq!((restored.restored, restored.is_complete()), (5, true), "{restored}");
    let items = read(&table).await;
    assert_eq!(items.len(), 4);
    let Some(OrderItem::Order(head)) = items.iter().find(|item| matches!(item, OrderItem::Order(_))) else { panic!() };
    assert_eq!((head.expires_at, head.status), (None, OrderStatus::Delivered));
    shop.put_and_deliver(head).await;
    assert_eq!(shop.found(Collection::Orders).await, [(ID.to_owned(), head.meta.rev)]);

    let again = restore_order(&table, &bucket.store, &id).await.unwrap();
    assert_eq!((again.restored, again.existing, again.is_complete()), (0, 5, true), "{again}");
    assert_eq!(read(&table).await, items);
}

#[tokio::test]
async fn the_audit_of_a_day_names_the_object_by_which_an_order_is_restored() {
    let (shop, bucket) = (Shop::open().await, Bucket::open().await);
    let table = shop.table.table();
    delivered(&shop).await;
    retire(&table, &options(false)).await.unwrap();
    expire(&shop, &bucket).await;
    assert_eq!(bucket.names().await.len(), 5);
    // The stream records of this test have the date 2017-01-01.
    let listed = list(&table, "2017-01-01").await.unwrap();
    let [entry] = &listed.expirations[..] else { panic!("{listed}") };
    assert_eq!(entry.kind, "Order");
    let key = order::head(&ID.parse().unwrap()).unwrap().key().clone();
    let name = entry.archive.as_deref().unwrap();
    assert!(name.starts_with(&under(&key.pk, &key)));
    let restored = restore_object(&table, &bucket.store, name, Instant::now()).await.unwrap();
    assert_eq!(restored.restored, 5, "{restored}");
    assert!(list(&table, "yesterday").await.is_err());
}

#[tokio::test]
async fn an_order_is_not_restored_while_some_of_its_items_are_not_removed_yet() {
    let (shop, bucket) = (Shop::open().await, Bucket::open().await);
    let table = shop.table.table();
    delivered(&shop).await;
    retire(&table, &options(false)).await.unwrap();
    let before = read(&table).await;
    expire(&shop, &bucket).await;
    // DynamoDB has not removed this line yet.
    let Some(OrderItem::OrderLine(line)) = before.iter().find(|item| matches!(item, OrderItem::OrderLine(_))) else {
        panic!()
    };
    shop.put(line).await;
    let id = ID.parse().unwrap();
    let restored = restore_order(&table, &bucket.store, &id).await.unwrap();
    assert!(!restored.is_complete());
    assert!(
        !read(&table).await.iter().any(|item| matches!(item, OrderItem::Order(_))),
        "the head is restored only after its lines"
    );
    shop.remove(line).await;
    assert!(restore_order(&table, &bucket.store, &id).await.unwrap().is_complete());
    assert_eq!(read(&table).await.len(), 4);
}

#[tokio::test]
async fn a_part_of_an_order_is_not_restored_without_the_head() {
    let (shop, bucket) = (Shop::open().await, Bucket::open().await);
    let table = shop.table.table();
    delivered(&shop).await;
    retire(&table, &options(false)).await.unwrap();
    expire(&shop, &bucket).await;
    let head = order::head(&ID.parse().unwrap()).unwrap().key().clone();
    let head = under(&head.pk, &head);
    let (heads, parts): (Vec<_>, Vec<_>) = bucket.names().await.into_iter().partition(|name| name.starts_with(&head));
    assert_eq!((heads.len(), parts.len()), (1, 4));
    for part in &parts {
        let restored = restore_object(&table, &bucket.store, part, Instant::now()).await.unwrap();
        assert_eq!((restored.restored, restored.failed.len()), (0, 1), "{restored}");
        assert!(restored.failed[0].contains(&format!("--order {ID}")), "{restored}");
    }
    assert!(read(&table).await.is_empty());
    assert!(restore_object(&table, &bucket.store, &heads[0], Instant::now()).await.unwrap().is_complete());
    let again = restore_object(&table, &bucket.store, &parts[0], Instant::now()).await.unwrap();
    assert_eq!((again.existing, again.is_complete()), (1, true), "{again}");
}
