//! Tests of a crash at any point where the function waits, followed by the queue's redelivery.

use std::collections::BTreeSet;
use std::time::Duration;

use emulators::table::{Fault, FaultKind};
use fixture::crash_after;
use key_schema::id::OrderId;
use key_schema::order::OrderStatus;
use serde_json::Value;
use tokio::time::Instant;

use crate::support::{Warehouse, batch, disturbed_after, far, moved, order, paid};

/// Takes a batch, and crashes after `polls` waits. Returns true if the batch ended without a crash.
async fn crashing(warehouse: &Warehouse, polls: usize, messages: &[Value]) -> bool {
    crash_after(polls, warehouse.picking.take(&batch(messages), far())).await.is_some()
}

#[tokio::test]
async fn a_crash_during_the_admission_of_an_order_loses_no_order() {
    for polls in 0..300 {
        let warehouse = Warehouse::open(1).await;
        for number in 1..=2 {
            warehouse.set(&order(number), OrderStatus::Paid).await;
        }
        let messages = [paid(&order(1)), paid(&order(2))];
        let ended = crashing(&warehouse, polls, &messages).await;
        assert!(warehouse.take(&messages).await.is_empty());
        assert_eq!(warehouse.jobs().await.len(), 1, "after {polls} waits");
        let mut all = warehouse.jobs().await;
        all.extend(warehouse.waiting().await);
        assert_eq!(all, BTreeSet::from([order(1), order(2)]), "after {polls} waits");
        if ended {
            println!("{polls} places to crash");
            return;
        }
    }
    panic!("the job does not end");
}

#[tokio::test]
async fn a_crash_during_the_removal_of_an_order_does_not_block_the_next_order() {
    for polls in 0..300 {
        let warehouse = Warehouse::open(1).await;
        for number in 1..=2 {
            warehouse.pay(&order(number)).await;
        }
        warehouse.set(&order(1), OrderStatus::Shipped).await;
        let messages = [moved(&order(1), "picking", "shipped")];
        let ended = crashing(&warehouse, polls, &messages).await;
        assert!(warehouse.take(&messages).await.is_empty());
        assert_eq!(warehouse.jobs().await, BTreeSet::from([order(2)]), "after {polls} waits");
        assert!(warehouse.waiting().await.is_empty(), "after {polls} waits");
        if ended {
            println!("{polls} places to crash");
            return;
        }
    }
    panic!("the job does not end");
}

/// The table becomes slow at any point of the work, so that the time runs out at this point. The
/// function acknowledges the message only if the order has a station.
#[tokio::test]
async fn a_message_of_an_unhandled_order_is_delivered_again() {
    let mut came_again = 0;
    for polls in 0..300 {
        let warehouse = Warehouse::open(1).await;
        warehouse.set(&order(1), OrderStatus::Paid).await;
        let (messages, faults) = ([paid(&order(1))], warehouse.faults());
        let slow = || faults.add(Fault { kind: FaultKind::Slow, rate: 1.0, count: None, seed: 1 }).unwrap();
        let (batch, stop) = (batch(&messages), Instant::now() + Duration::from_millis(200));
        let (answer, disturbed) = disturbed_after(polls, slow, warehouse.picking.take(&batch, stop)).await;
        faults.clear();
        if answer.failed().is_empty() {
            assert_eq!(warehouse.jobs().await, BTreeSet::from([order(1)]), "after {polls} waits");
        } else {
            came_again += 1;
            assert!(warehouse.take(&messages).await.is_empty());
            assert_eq!(warehouse.jobs().await, BTreeSet::from([order(1)]), "after {polls} waits");
        }
        if !disturbed {
            assert!(came_again > 3, "{came_again} of {polls}");
            return;
        }
    }
    panic!("the job does not end");
}

/// Orders are paid, picked, shipped and cancelled at random. Messages arrive late, twice and in any
/// order, and handlers crash.
#[tokio::test]
async fn the_queue_agrees_with_the_orders_after_every_schedule() {
    for seed in 0..12 {
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let warehouse = Warehouse::open(2).await;
        let orders: Vec<OrderId> = (1..=6).map(order).collect();
        let mut statuses = vec![OrderStatus::Pending; orders.len()];
        let mut undelivered: Vec<Value> = Vec::new();
        let mut delivered: Vec<Value> = Vec::new();
        for _ in 0..80 {
            let which = random.usize(..orders.len());
            let next: &[OrderStatus] = match statuses[which] {
                OrderStatus::Pending => &[OrderStatus::Paid],
                OrderStatus::Paid => &[OrderStatus::Picking, OrderStatus::Cancelled],
                OrderStatus::Picking => &[OrderStatus::Shipped, OrderStatus::Cancelled],
                _ => &[],
            };
            if let Some(to) = random.choice(next).filter(|_| random.f64() < 0.3) {
                warehouse.set(&orders[which], *to).await;
                undelivered.push(moved(&orders[which], statuses[which].as_str(), to.as_str()));
                statuses[which] = *to;
            }
            let mut messages = Vec::new();
            while !undelivered.is_empty() && messages.len() < 3 && random.bool() {
                messages.push(undelivered.swap_remove(random.usize(..undelivered.len())));
            }
            messages.extend(random.choice(&delivered).filter(|_| random.f64() < 0.2).cloned());
            if messages.is_empty() {
                continue;
            }
            if random.bool() {
                assert!(warehouse.take(&messages).await.is_empty());
                delivered.extend(messages);
            } else if crashing(&warehouse, random.usize(..40), &messages).await {
                delivered.extend(messages);
            } else {
                undelivered.extend(messages);
            }
            assert!(warehouse.jobs().await.len() <= 2);
        }
        assert!(warehouse.take(&undelivered).await.is_empty());
        let in_work = |status: &OrderStatus| matches!(status, OrderStatus::Paid | OrderStatus::Picking);
        let wanted: BTreeSet<OrderId> =
            orders.into_iter().zip(&statuses).filter(|(_, status)| in_work(status)).map(|(id, _)| id).collect();
        let (jobs, waiting) = (warehouse.jobs().await, warehouse.waiting().await);
        assert_eq!(jobs.len(), wanted.len().min(2));
        assert_eq!(jobs.iter().chain(&waiting).count(), wanted.len());
        assert_eq!(jobs.into_iter().chain(waiting).collect::<BTreeSet<_>>(), wanted);
    }
}
