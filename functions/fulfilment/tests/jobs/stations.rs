//! Tests of the stations: the limit holds, every order gets a station, and no step has its effect
//! twice.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::{join, join_all};
use key_schema::id::OrderId;
use key_schema::order::OrderStatus;
use serde_json::Value;

use crate::support::{Warehouse, moved, order, paid, take};

#[tokio::test]
async fn the_first_orders_get_the_stations_and_the_other_orders_wait_in_turn() {
    let warehouse = Warehouse::open(2).await;
    for number in [3, 1, 4, 2] {
        warehouse.pay(&order(number)).await;
    }
    assert_eq!(warehouse.jobs().await, BTreeSet::from([order(1), order(3)]));
    assert_eq!(warehouse.waiting().await, [order(2), order(4)]);

    warehouse.set(&order(3), OrderStatus::Shipped).await;
    assert!(warehouse.take(&[moved(&order(3), "picking", "shipped")]).await.is_empty());
    assert_eq!(warehouse.jobs().await, BTreeSet::from([order(1), order(2)]));
    assert_eq!(warehouse.waiting().await, [order(4)]);
}

#[tokio::test]
async fn stations_may_all_become_free_and_be_used_again() {
    let warehouse = Warehouse::open(1).await;
    for number in 1..=3 {
        warehouse.pay(&order(number)).await;
        assert_eq!(warehouse.jobs().await, BTreeSet::from([order(number)]));
        warehouse.set(&order(number), OrderStatus::Cancelled).await;
        assert!(warehouse.take(&[moved(&order(number), "paid", "cancelled")]).await.is_empty());
        assert!(warehouse.jobs().await.is_empty() && warehouse.waiting().await.is_empty());
    }
}

#[tokio::test]
async fn an_order_whose_payment_event_repeats_has_one_station() {
    let warehouse = Warehouse::open(3).await;
    for _ in 0..3 {
        warehouse.pay(&order(1)).await;
    }
    let again = paid(&order(1));
    assert!(warehouse.take(&[again.clone(), again.clone(), again.clone()]).await.is_empty());
    join_all((0..10).map(|_| warehouse.take(std::slice::from_ref(&again)))).await;
    assert_eq!(warehouse.jobs().await, BTreeSet::from([order(1)]));
    assert!(warehouse.waiting().await.is_empty());
}

#[tokio::test]
async fn an_order_keeps_its_station_while_it_is_picked() {
    let warehouse = Warehouse::open(1).await;
    warehouse.pay(&order(1)).await;
    warehouse.set(&order(1), OrderStatus::Picking).await;
    assert!(warehouse.take(&[moved(&order(1), "paid", "picking"), paid(&order(1))]).await.is_empty());
    assert_eq!(warehouse.jobs().await, BTreeSet::from([order(1)]));
    assert!(warehouse.waiting().await.is_empty());
}

#[tokio::test]
async fn an_order_that_is_cancelled_while_it_waits_is_never_picked() {
    let warehouse = Warehouse::open(1).await;
    for number in 1..=3 {
        warehouse.pay(&order(number)).await;
    }
    warehouse.set(&order(2), OrderStatus::Cancelled).await;
    assert!(warehouse.take(&[moved(&order(2), "paid", "cancelled")]).await.is_empty());
    assert_eq!(warehouse.waiting().await, [order(3)]);
    warehouse.set(&order(1), OrderStatus::Shipped).await;
    assert!(warehouse.take(&[moved(&order(1), "picking", "shipped")]).await.is_empty());
    assert_eq!(warehouse.jobs().await, BTreeSet::from([order(3)]));
}

/// The event of the cancellation is late, and a station becomes free before the event arrives.
#[tokio::test]
async fn a_cancelled_order_whose_event_is_late_gets_no_station() {
    let warehouse = Warehouse::open(1).await;
    for number in 1..=4 {
        warehouse.pay(&order(number)).await;
    }
    warehouse.set(&order(2), OrderStatus::Cancelled).await;
    warehouse.set(&order(1), OrderStatus::Shipped).await;
    assert!(warehouse.take(&[moved(&order(1), "picking", "shipped")]).await.is_empty());
    assert_eq!(warehouse.jobs().await, BTreeSet::from([order(3)]));
    assert_eq!(warehouse.waiting().await, [order(4)]);
    assert!(warehouse.take(&[moved(&order(2), "paid", "cancelled")]).await.is_empty());
    assert_eq!(warehouse.jobs().await, BTreeSet::from([order(3)]));
    assert_eq!(warehouse.waiting().await, [order(4)]);
}

#[tokio::test]
async fn a_late_payment_event_of_a_shipped_or_cancelled_order_changes_nothing() {
    let warehouse = Warehouse::open(1).await;
    for (number, status, to) in [(1, OrderStatus::Shipped, "shipped"), (2, OrderStatus::Cancelled, "cancelled")] {
        warehouse.pay(&order(number)).await;
        warehouse.set(&order(number), status).await;
        assert!(warehouse.take(&[moved(&order(number), "picking", to)]).await.is_empty());
        // The payment message arrives late: first alone, then together with a second copy of the
        // message that the order is shipped or cancelled.
        assert!(warehouse.take(&[paid(&order(number))]).await.is_empty());
        assert!(warehouse.take(&[moved(&order(number), "picking", to), paid(&order(number))]).await.is_empty());
        assert!(warehouse.jobs().await.is_empty() && warehouse.waiting().await.is_empty());
    }
    // This message belongs to an order that does not exist.
    assert!(warehouse.take(&[paid(&order(9))]).await.is_empty());
    assert!(warehouse.jobs().await.is_empty() && warehouse.waiting().await.is_empty());
}

#[tokio::test]
async fn a_lower_number_of_stations_removes_no_order_and_admits_orders_only_below_that_number() {
    let warehouse = Warehouse::open(3).await;
    for number in 1..=4 {
        warehouse.pay(&order(number)).await;
    }
    let smaller = warehouse.with(2);
    let leave = |number: u8| {
        let (warehouse, smaller) = (&warehouse, &smaller);
        async move {
            warehouse.set(&order(number), OrderStatus::Shipped).await;
            assert!(take(smaller, &[moved(&order(number), "picking", "shipped")]).await.is_empty());
            (warehouse.jobs().await.len(), warehouse.waiting().await.len())
        }
    };
    assert_eq!(leave(1).await, (2, 1));
    assert_eq!(leave(2).await, (2, 0));
}

/// Fifty orders are paid at once and picked at three stations, while another task observes the
/// stations.
#[tokio::test(flavor = "multi_thread")]
async fn at_most_three_of_many_paid_orders_are_picked_at_once_and_all_are_picked_in_the_end() {
    const ORDERS: u8 = 50;
    let warehouse = Warehouse::open(3).await;
    let orders: Vec<OrderId> = (1..=ORDERS).map(order).collect();
    join_all(orders.iter().map(|id| warehouse.set(id, OrderStatus::Paid))).await;

    let over = AtomicBool::new(false);
    let watch = async {
        let mut looks = 0;
        while !over.load(Ordering::Relaxed) {
            let jobs = warehouse.jobs().await;
            assert!(jobs.len() <= 3, "{jobs:?}");
            looks += 1;
        }
        looks
    };
    let work = async {
        join_all(orders.iter().map(|id| until_taken(&warehouse, paid(id)))).await;
        let mut picked = BTreeSet::new();
        while picked.len() < orders.len() {
            let jobs = warehouse.jobs().await;
            assert!(!jobs.is_empty(), "{} orders wait although a station is free", warehouse.waiting().await.len());
            // All stations finish at the same time, and each message arrives twice.
            join_all(jobs.iter().map(async |id| {
                warehouse.set(id, OrderStatus::Shipped).await;
                let shipped = moved(id, "picking", "shipped");
                join(until_taken(&warehouse, shipped.clone()), until_taken(&warehouse, shipped)).await;
            }))
            .await;
            for id in jobs {
                assert!(picked.insert(id), "an order was picked twice");
            }
        }
        over.store(true, Ordering::Relaxed);
        picked.len()
    };
    let (looks, picked) = join(watch, work).await;
    println!("{picked} orders picked, {looks} reads");
    assert!(warehouse.jobs().await.is_empty() && warehouse.waiting().await.is_empty());
}

/// Delivers a message until it succeeds, as the queue does.
async fn until_taken(warehouse: &Warehouse, message: Value) {
    for _ in 0..20 {
        if warehouse.take(std::slice::from_ref(&message)).await.is_empty() {
            return;
        }
    }
    panic!("a message stays in the queue");
}
