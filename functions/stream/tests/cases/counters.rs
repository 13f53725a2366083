//! Tests of the products' counters: they are exact in every schedule of deliveries.

use std::slice::from_ref;

use futures::future::join_all;
use key_schema::item::Stored;
use key_schema::order::{Order, OrderStatus};
use key_schema::region::{self, SaleRegion};
use key_schema::sales;
use serde_json::Value;

use crate::derived::Shop;
use crate::support::{consumer, earliest, insert, line, modify, order};

/// Returns orders and the records of their changes: one order is placed, one cancelled, one
/// returned, and one placed and paid.
fn history() -> (Vec<Stored<Order>>, Vec<Value>) {
    use OrderStatus::{Cancelled, Delivered, Paid, Pending, Returned};
    let placed = |id| order(id, Pending, 1, 2);
    let (cancelled, delivered, returned) =
        (order("b", Cancelled, 2, 2), order("c", Delivered, 5, 2), order("c", Returned, 6, 2));
    let paid = order("d", Paid, 2, 2);
    let records = vec![
        insert("1", &placed("a")),
        insert("2", &placed("b")),
        insert("3", &placed("c")),
        modify("4", &placed("b"), &cancelled),
        insert("5", &placed("d")),
        modify("6", &delivered, &returned),
        modify("7", &placed("d"), &paid),
    ];
    (vec![placed("a"), cancelled, returned, paid], records)
}

async fn assert_exact(shop: &Shop, seed: u64) {
    // Orders a and d each have one piece of p1 and two of p2.
    assert_eq!((shop.sold("p1").await, shop.sold("p2").await), ((2, 2), (4, 2)), "seed {seed}");
    assert_eq!(shop.totals("US").await, ["unknown/online/2017-01-01: 2 for 516 USD"], "seed {seed}");
}

#[tokio::test]
async fn case_37_counters_are_exact_when_records_are_repeated_and_reordered() {
    for seed in 0..12 {
        let (orders, records) = history();
        let shop = Shop::open().await;
        for order in &orders {
            shop.place(order).await;
        }
        let mut random = fastrand::Rng::with_seed(seed);
        let mut delivered = [records.clone(), records].concat();
        random.shuffle(&mut delivered);
        let batches: Vec<&[Value]> = delivered.chunks(random.usize(1..=5)).collect();
        shop.deliver(&batches).await;
        assert_exact(&shop, seed).await;
    }
}

#[tokio::test]
async fn case_37_counters_stay_exact_while_old_records_are_delivered_again() {
    let shop = Shop::open().await;
    let [pending, paid, cancelled] = [(OrderStatus::Pending, 1), (OrderStatus::Paid, 2), (OrderStatus::Cancelled, 3)]
        .map(|(status, rev)| order("a", status, rev, 1));
    let (placed, settled, called_off) =
        (insert("1", &pending), modify("2", &pending, &paid), modify("3", &paid, &cancelled));
    shop.place(&pending).await;
    shop.deliver(&[from_ref(&placed)]).await;
    assert_eq!(shop.sold("p1").await, (1, 1));
    shop.put(&paid).await;
    shop.deliver(&[&[placed.clone(), settled.clone()]]).await;
    assert_eq!(shop.sold("p1").await, (1, 1));
    shop.put(&cancelled).await;
    shop.deliver(&[&[settled.clone(), placed.clone()], from_ref(&called_off)]).await;
    shop.deliver(&[&[placed, settled, called_off]]).await;
    assert_eq!(shop.sold("p1").await, (0, 0));
    assert_eq!(shop.totals("US").await, ["unknown/online/2017-01-01: 0 for 0 USD"]);
}

#[tokio::test]
async fn case_11_a_batch_that_is_delivered_twice_counts_once() {
    let (orders, records) = history();
    let shop = Shop::open().await;
    for order in &orders {
        shop.place(order).await;
    }
    shop.deliver(&[&records, &records]).await;
    assert_exact(&shop, 0).await;
}

#[tokio::test]
async fn three_consumers_that_take_the_same_batch_at_once_count_it_once() {
    for seed in 0..6 {
        let (orders, records) = history();
        let shop = Shop::open().await;
        for order in &orders {
            shop.place(order).await;
        }
        let consumers = [shop.sink(), shop.sink(), shop.sink()].map(|sink| consumer([sink]).0);
        let answers = join_all(consumers.iter().map(|consumer| earliest(consumer, &records))).await;
        assert_eq!(answers, [None, None, None]);
        assert_exact(&shop, seed).await;
    }
}

#[tokio::test]
async fn each_line_of_an_order_of_161_lines_is_counted_once_despite_a_crash() {
    let shop = Shop::open().await;
    let large = order("o1", OrderStatus::Pending, 1, 161);
    shop.place(&large).await;
    let lines: Vec<_> = (1..=161).map(|number| line("o1", number)).collect();
    let counted_at = SaleRegion::of(&large, None, region::store_of(&large));
    let transactions =
        sales::apply(&large, &lines, &sales::Derived::default(), counted_at, large.meta.updated_at).unwrap();
    assert!(transactions.len() == 7 && transactions.iter().all(|transaction| transaction.check_size().is_ok()));
    // A consumer crashed after the second of seven transactions.
    for transaction in &transactions[..2] {
        shop.table.transact(transaction).await.unwrap().unwrap();
    }
    let batch = [insert("1", &large)];
    shop.deliver(&[&batch, &batch]).await;
    for number in [1, 32, 33, 64, 65, 161] {
        assert_eq!(shop.sold(&format!("p{number}")).await, (number, 1));
    }
    assert_eq!(shop.totals("US").await, ["unknown/online/2017-01-01: 1 for 20769 USD"]);
    let cancelled = order("o1", OrderStatus::Cancelled, 2, 161);
    shop.put(&cancelled).await;
    shop.deliver(&[&[modify("2", &large, &cancelled)], &batch]).await;
    assert_eq!((shop.sold("p1").await, shop.sold("p161").await), ((0, 0), (0, 0)));
    assert_eq!(shop.totals("US").await, ["unknown/online/2017-01-01: 0 for 0 USD"]);
}

#[tokio::test]
async fn two_lines_of_one_product_are_added_up() {
    let shop = Shop::open().await;
    let twice = order("o1", OrderStatus::Pending, 1, 2);
    shop.place(&twice).await;
    let mut second = line("o1", 2);
    second.data.product_id = "p1".parse().unwrap();
    shop.put(&second).await;
    shop.deliver(&[&[insert("1", &twice)]]).await;
    assert_eq!(shop.sold("p1").await, (3, 2));
}
