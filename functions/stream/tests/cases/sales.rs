//! Tests of derived sales: in every schedule of deliveries the rows match the order's state.

use key_schema::instant::Instant;
use key_schema::item::{IMPORTED, Stored};
use key_schema::order::{Order, OrderStatus};
use key_schema::region::{self, SaleRegion};
use key_schema::sales;
use serde_json::json;

use crate::derived::Shop;
use crate::support::{Scripted, consumer, earliest, insert, line, modify, order, remove};

#[tokio::test]
async fn the_lines_of_a_placed_order_are_sales_of_their_products() {
    let shop = Shop::open().await;
    let pending = order("o1", OrderStatus::Pending, 1, 2);
    shop.place(&pending).await;
    shop.deliver(&[&[insert("1", &pending)]]).await;
    let listed = shop.listed("p2").await;
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].order_id.as_str(), listed[0].quantity, listed[0].total.amount), ("o1", 2, 129));
    assert_eq!(shop.rows("o1").await.len(), 2);
}

#[tokio::test]
async fn the_lines_of_a_placed_order_are_purchases_of_its_customer_until_it_is_cancelled() {
    let shop = Shop::open().await;
    let (pending, cancelled) = (order("o1", OrderStatus::Pending, 1, 2), order("o1", OrderStatus::Cancelled, 2, 2));
    let other = order("o2", OrderStatus::Pending, 1, 1);
    shop.place(&pending).await;
    shop.place(&other).await;
    let placed = [insert("1", &pending), insert("2", &other)];
    shop.deliver(&[&placed]).await;
    assert_eq!(shop.bought("c1").await, ["p1 in o2", "p2 in o1", "p1 in o1"]);
    assert!(shop.bought("c2").await.is_empty());
    shop.put(&cancelled).await;
    // A second delivery of the old record restores nothing.
    shop.deliver(&[&[modify("3", &pending, &cancelled)], &placed]).await;
    assert_eq!(shop.bought("c1").await, ["p1 in o2"]);
}

/// Returns an order after a claim by c1, in the next version.
fn claimed(order: &Stored<Order>) -> Stored<Order> {
    let mut claimed = order.clone();
    claimed.data.customer_id = "c1".parse().unwrap();
    claimed.meta.version += 1;
    claimed.meta.rev += 1;
    claimed
}

fn of_guest(status: OrderStatus) -> Stored<Order> {
    let mut order = order("o1", status, 1, 2);
    order.data.customer_id = "guest:1".parse().unwrap();
    order
}

#[tokio::test]
async fn the_purchases_of_a_guest_follow_the_order_to_the_customer_who_claims_it() {
    for status in [OrderStatus::Pending, OrderStatus::Shipped] {
        let shop = Shop::open().await;
        let placed = of_guest(status);
        let claimed = claimed(&placed);
        shop.place(&placed).await;
        shop.deliver(&[&[insert("1", &placed)]]).await;
        assert_eq!(shop.bought("guest:1").await, ["p2 in o1", "p1 in o1"]);
        let (sold, listed) = (shop.sold("p1").await, shop.listed("p1").await);
        shop.put(&claimed).await;
        shop.deliver(&[&[modify("2", &placed, &claimed)]]).await;
        assert_eq!(shop.bought("c1").await, ["p2 in o1", "p1 in o1"]);
        assert!(shop.bought("guest:1").await.is_empty());
        assert_eq!((shop.sold("p1").await, shop.listed("p1").await), (sold, listed), "nothing was sold twice");
        // Old records change nothing.
        shop.deliver(&[&[insert("1", &placed), modify("2", &placed, &claimed)]]).await;
        assert_eq!((shop.bought("c1").await.len(), shop.sold("p1").await), (2, sold));
    }
}

#[tokio::test]
async fn the_records_of_a_claim_a_placement_and_a_cancellation_may_arrive_in_any_order() {
    let placed = of_guest(OrderStatus::Pending);
    let claimed = claimed(&placed);
    let mut cancelled = claimed.clone();
    cancelled.data.status = OrderStatus::Cancelled;
    cancelled.meta.version += 1;
    cancelled.meta.rev += 1;
    let records = [insert("1", &placed), modify("2", &placed, &claimed), modify("3", &claimed, &cancelled)];
    for sequence in [[1, 0, 2], [2, 1, 0], [2, 0, 1]] {
        let shop = Shop::open().await;
        shop.place(&claimed).await;
        shop.deliver(&[&[records[sequence[0]].clone()]]).await;
        assert_eq!(shop.bought("c1").await.len(), 2, "{sequence:?}");
        shop.put(&cancelled).await;
        shop.deliver(&[&sequence.map(|at| records[at].clone())]).await;
        assert!(shop.bought("c1").await.is_empty() && shop.bought("guest:1").await.is_empty(), "{sequence:?}");
        assert_eq!(shop.listed("p1").await, []);
    }
}

/// An export contains the sales as separate items, so the sink must not derive them again.
#[tokio::test]
async fn the_sales_of_an_imported_order_are_not_derived() {
    let shop = Shop::open().await;
    let pending = order("o1", OrderStatus::Pending, 1, 1);
    shop.place(&pending).await;
    let mut imported = insert("1", &pending);
    imported["dynamodb"]["NewImage"]["req"] = json!({"S": IMPORTED});
    shop.deliver(&[&[imported]]).await;
    assert!(shop.rows("o1").await.is_empty());
    shop.deliver(&[&[insert("2", &pending)]]).await;
    assert_eq!(shop.sold("p1").await, (1, 1));
}

#[tokio::test]
async fn the_sales_of_an_order_that_exceeds_one_transaction_are_all_derived() {
    let shop = Shop::open().await;
    let large = order("o1", OrderStatus::Pending, 1, 161);
    shop.place(&large).await;
    shop.deliver(&[&[insert("1", &large)]]).await;
    assert_eq!(shop.rows("o1").await.len(), 161);
}

#[tokio::test]
async fn nothing_is_derived_from_invisible_orders_or_from_steps_that_change_no_sale() {
    let shop = Shop::open().await;
    let [placing, pending, paid] =
        [OrderStatus::Placing, OrderStatus::Pending, OrderStatus::Paid].map(|status| order("o1", status, 1, 1));
    shop.place(&paid).await;
    shop.deliver(&[&[insert("1", &placing)], &[modify("2", &pending, &paid)]]).await;
    assert!(shop.rows("o1").await.is_empty());
    assert!(shop.table.meter().take().is_empty(), "no item was read");
    shop.deliver(&[&[modify("3", &placing, &pending)]]).await;
    assert_eq!(shop.rows("o1").await.len(), 1);
}

#[tokio::test]
async fn cancelling_and_returning_reverse_the_sales() {
    for (before, after) in
        [(OrderStatus::Picking, OrderStatus::Cancelled), (OrderStatus::Delivered, OrderStatus::Returned)]
    {
        let shop = Shop::open().await;
        let (sold, reversed) = (order("o1", before, 4, 1), order("o1", after, 5, 1));
        shop.place(&sold).await;
        shop.deliver(&[&[insert("1", &sold)]]).await;
        assert_eq!(shop.listed("p1").await.len(), 1);
        shop.put(&reversed).await;
        shop.deliver(&[&[modify("2", &sold, &reversed)]]).await;
        assert_eq!(shop.listed("p1").await, []);
        assert_eq!(shop.rows("o1").await["LINE#00000000000000000001"], ("1".into(), "5".into(), true));
    }
}

#[tokio::test]
async fn a_later_change_of_an_order_reads_no_lines() {
    let shop = Shop::open().await;
    let (pending, shipped) = (order("o1", OrderStatus::Pending, 1, 3), order("o1", OrderStatus::Shipped, 2, 3));
    shop.place(&pending).await;
    shop.deliver(&[&[insert("1", &pending)]]).await;
    shop.put(&shipped).await;
    let _ = shop.table.meter().take();
    shop.deliver(&[&[modify("2", &pending, &shipped)]]).await;
    let read: Vec<&str> = shop.table.meter().take().iter().map(|measured| measured.pattern.id).collect();
    assert!(!read.contains(&"orders.lines") && read.contains(&"orders.head"), "{read:?}");
    assert!(shop.rows("o1").await.values().all(|(_, rev, _)| rev == "2"));
}

#[tokio::test]
async fn case_03_a_retry_after_a_partial_failure_does_not_repeat_successful_writes() {
    let shop = Shop::open().await;
    let (a, b) = (order("a", OrderStatus::Pending, 1, 1), order("b", OrderStatus::Pending, 1, 1));
    shop.place(&a).await;
    shop.place(&b).await;
    let other = Scripted::failing("other", &["1"]);
    let (consumer, _) = consumer([shop.sink(), other.boxed()]);
    let batch = [insert("1", &a), insert("2", &b)];
    assert_eq!(earliest(&consumer, &batch).await.as_deref(), Some("1"));
    // The quantity in the row is changed, so that a second write of the row would be visible.
    let mut marked = sales::derive(&b, &line("b", 1).data);
    marked.data.quantity = 77;
    shop.put(&marked).await;
    other.recover();
    assert_eq!(earliest(&consumer, &batch).await, None);
    assert_eq!(shop.rows("b").await["LINE#00000000000000000001"].0, "77");
}

#[tokio::test]
async fn case_11_a_batch_that_is_delivered_twice_leaves_the_same_rows() {
    let shop = Shop::open().await;
    let pending = order("o1", OrderStatus::Pending, 1, 3);
    shop.place(&pending).await;
    let batch = [insert("1", &pending)];
    shop.deliver(&[&batch]).await;
    let once = shop.rows("o1").await;
    shop.deliver(&[&batch, &batch]).await;
    assert_eq!(shop.rows("o1").await, once);
}

#[tokio::test]
async fn case_12_an_old_record_that_is_replayed_after_the_cancellation_restores_no_sale() {
    let shop = Shop::open().await;
    let (pending, cancelled) = (order("o1", OrderStatus::Pending, 1, 1), order("o1", OrderStatus::Cancelled, 2, 1));
    shop.place(&pending).await;
    let placed = [insert("1", &pending)];
    shop.deliver(&[&placed]).await;
    shop.put(&cancelled).await;
    shop.deliver(&[&[modify("2", &pending, &cancelled)], &placed]).await;
    assert_eq!(shop.listed("p1").await, []);
    assert!(shop.rows("o1").await["LINE#00000000000000000001"].2);
}

#[tokio::test]
async fn case_13_the_records_of_an_order_may_arrive_in_any_order() {
    let [pending, cancelled] =
        [(OrderStatus::Pending, 1), (OrderStatus::Cancelled, 2)].map(|(status, rev)| order("o1", status, rev, 2));
    let (placed, called_off) = (insert("1", &pending), modify("2", &pending, &cancelled));
    for batch in [[placed.clone(), called_off.clone()], [called_off, placed]] {
        let shop = Shop::open().await;
        shop.place(&cancelled).await;
        shop.deliver(&[&batch[..1], &batch[1..]]).await;
        assert!(shop.rows("o1").await.values().all(|(_, rev, reversed)| rev == "2" && *reversed));
        assert_eq!(shop.rows("o1").await.len(), 2);
    }
}

#[tokio::test]
async fn a_slow_consumer_with_an_older_head_overwrites_no_newer_row() {
    let shop = Shop::open().await;
    let (pending, cancelled) = (order("o1", OrderStatus::Pending, 1, 1), order("o1", OrderStatus::Cancelled, 2, 1));
    shop.place(&cancelled).await;
    shop.deliver(&[&[modify("2", &pending, &cancelled)]]).await;
    // An earlier consumer read the head before the cancellation and writes only now.
    let counted_at = SaleRegion::of(&pending, None, region::store_of(&pending));
    for late in
        sales::apply(&pending, &[line("o1", 1)], &sales::Derived::default(), counted_at, Instant::now()).unwrap()
    {
        assert!(shop.table.transact(&late).await.unwrap().is_err());
    }
    assert_eq!(shop.listed("p1").await, []);
    assert_eq!(shop.sold("p1").await, (0, 0));
}

#[tokio::test]
async fn outdated_and_missing_rows_get_the_state_of_the_head() {
    let shop = Shop::open().await;
    let (pending, cancelled) = (order("o1", OrderStatus::Pending, 1, 3), order("o1", OrderStatus::Cancelled, 2, 3));
    shop.place(&cancelled).await;
    shop.put(&sales::derive(&cancelled, &line("o1", 1).data)).await;
    shop.put(&sales::derive(&pending, &line("o1", 2).data)).await;
    shop.deliver(&[&[modify("2", &pending, &cancelled)]]).await;
    let rows = shop.rows("o1").await;
    assert_eq!(rows.len(), 3);
    assert!(rows.values().all(|(_, rev, reversed)| rev == "2" && *reversed));
}

#[tokio::test]
async fn the_sales_of_an_order_remain_after_an_operator_has_removed_the_order() {
    let shop = Shop::open().await;
    let pending = order("o1", OrderStatus::Pending, 1, 1);
    shop.place(&pending).await;
    shop.deliver(&[&[insert("1", &pending)], &[remove("2", &pending)]]).await;
    assert_eq!(shop.listed("p1").await.len(), 1);
    // The order of this record does not exist, so nothing is derived.
    shop.deliver(&[&[insert("3", &order("o2", OrderStatus::Pending, 1, 1))]]).await;
    assert!(shop.rows("o2").await.is_empty());
}

#[tokio::test]
async fn the_record_of_an_order_with_an_unreadable_head_is_quarantined() {
    let shop = Shop::open().await;
    let pending = order("o1", OrderStatus::Pending, 1, 1);
    let mut broken = pending.to_item().unwrap();
    broken.inner_mut().insert("status".into(), serde_dynamo::AttributeValue::S("teleported".into()));
    shop.test.put_item(broken).await;
    let (consumer, shelf) = consumer([shop.sink()]);
    assert_eq!(earliest(&consumer, &[insert("1", &pending)]).await, None);
    assert_eq!((shelf.sequences(), shelf.kept()[0].kind), (vec!["1".to_owned()], "malformed_source"));
}

/// The number of shards is on the order's line, so the consumer does not read the product.
#[tokio::test]
async fn new_sales_of_a_hot_product_are_counted_in_several_items_and_late_or_reversed_ones_in_the_first() {
    let shop = Shop::open().await;
    let further = async || -> i64 {
        let counted = shop.table.batch_get(&sales::counts(&"p1".parse().unwrap()).unwrap()).await.unwrap();
        counted.iter().flatten().map(|sales| sales.quantity).sum()
    };
    let (mut placed, each) = (Vec::new(), 1);
    for (number, age) in [("o1", 0), ("o2", 60), ("o3", 600), ("o4", 1_700), ("old", 1_900)] {
        let mut order = order(number, OrderStatus::Pending, 1, 1);
        order.meta.created_at = Instant::now().plus_seconds(-age);
        let mut line = line(number, 1);
        line.data.stock_shards = Some(64);
        shop.put(&order).await;
        shop.put(&line).await;
        shop.deliver(&[&[insert("1", &order)]]).await;
        placed.push(order);
    }
    assert_eq!((shop.sold("p1").await, further().await), ((each, 1), 4 * each));
    let mut cancelled = placed[0].clone();
    (cancelled.data.status, cancelled.meta.rev) = (OrderStatus::Cancelled, 2);
    shop.put(&cancelled).await;
    shop.deliver(&[&[modify("2", &placed[0], &cancelled)], &[insert("1", &placed[0])]]).await;
    assert_eq!((shop.sold("p1").await, further().await), ((0, 0), 4 * each));
    // Both together are the rows that are not reversed.
    for counted in shop.table.batch_get(&sales::counts(&"p1".parse().unwrap()).unwrap()).await.unwrap() {
        if let Some(fold) = counted.and_then(|counted| sales::fold(&counted).unwrap()) {
            shop.table.transact(&fold).await.unwrap().unwrap();
        }
    }
    assert_eq!((shop.sold("p1").await, further().await), ((4 * each, 4), 0));
}
