//! Tests of orders that were not paid in time.

use std::time::Duration;

use emulators::faults::{Fault, FaultKind};
use janitor::Grace;
use janitor::round::Round;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::order::{self, LAPSED, Order, OrderAction, OrderStatus, RETURNED_AT_ONCE, SYSTEM, Step};
use tokio::time;

use crate::support::{Plan, Shop, begun, counts, done, product};
use workflows::staging;

fn lapsed(orders: u32) -> Round {
    Round { lapsed: orders, ..Round::default() }
}

fn due() -> Instant {
    begun().plus_seconds(3_600)
}

/// Runs one round at an instant.
async fn round_at(shop: &Shop, now: Instant) -> Round {
    let far = time::Instant::now() + Duration::from_secs(600);
    let (round, listed) = shop.janitor().run_round(now, Grace::seconds(60), far).await;
    listed.unwrap();
    counts(round)
}

fn step<'a>(order: &'a Stored<Order>, plan: &'a Plan, to: OrderStatus) -> Step<'a> {
    Step::new(order, &plan.lines, to, due().plus_seconds(1), "ann")
}

#[tokio::test]
async fn an_order_that_is_not_paid_in_time_is_cancelled_once_and_its_stock_returns() {
    let shop = Shop::open(2).await;
    let plan = shop.pending(1, 2, due()).await;
    let later = shop.pending(2, 1, due().plus_seconds(60)).await;
    assert_eq!((shop.stocks().await, shop.open_orders().await), (vec![4, 7], 2));

    assert_eq!(round_at(&shop, due().plus_millis(-1)).await, lapsed(0));
    assert_eq!(round_at(&shop, due()).await, lapsed(1));
    let head = shop.head(&plan.order.id).await.unwrap();
    assert_eq!((head.status, head.lapsed, head.meta.version), (OrderStatus::Cancelled, true, 2));
    let last = shop.last_step(&plan.order.id).await;
    assert_eq!((last.status, last.by.as_str(), last.note.as_deref()), (OrderStatus::Cancelled, SYSTEM, Some(LAPSED)));
    assert_eq!((shop.stocks().await, shop.open_orders().await, shop.lapsing().await), (vec![7, 10], 1, 1));

    assert_eq!(round_at(&shop, due().plus_seconds(59)).await, lapsed(0));
    assert_eq!(round_at(&shop, due().plus_seconds(60)).await, lapsed(1));
    assert_eq!(shop.head(&later.order.id).await.unwrap().status, OrderStatus::Cancelled);
    shop.assert_full().await;
    assert_eq!((shop.open_orders().await, shop.lapsing().await), (0, 0));
}

#[tokio::test]
async fn an_order_that_never_lapses_or_was_paid_stays() {
    let shop = Shop::open(1).await;
    shop.place(&shop.plan(1, 1)).await.unwrap();
    let paid = shop.pending(2, 1, due()).await;
    let head = shop.head(&paid.order.id).await.unwrap();
    let pay = order::transition(step(&head, &paid, OrderStatus::Paid)).unwrap();
    staging::transition(shop.own(), &[], pay).await.unwrap().unwrap();
    assert_eq!(round_at(&shop, Instant::MAX.plus_seconds(-3_600)).await, lapsed(0));
    assert_eq!((shop.stocks().await, shop.open_orders().await, shop.lapsing().await), (vec![4], 0, 0));
}

#[tokio::test]
async fn the_stock_that_an_interrupted_lapse_did_not_return_is_returned_once() {
    let count = RETURNED_AT_ONCE + 120;
    let shop = Shop::open(count).await;
    let plan = shop.pending(1, count, due()).await;
    let head = shop.head(&plan.order.id).await.unwrap();
    let lapse = order::lapse(&head, &plan.lines, None, due()).unwrap();
    staging::transition(shop.own(), &[], lapse).await.unwrap().unwrap();
    assert!(shop.stocks().await.contains(&7));
    assert_eq!(round_at(&shop, due().plus_seconds(60)).await, done(1, 0, 1, 0));
    shop.assert_full().await;

    let whole = shop.pending(2, count, due()).await;
    assert_eq!(round_at(&shop, due()).await, lapsed(1));
    shop.assert_full().await;
    assert_eq!(shop.head(&whole.order.id).await.unwrap().unfinished, None);
}

/// In each case the janitor's cancellation and another change read the same head. Only the earlier
/// write succeeds.
#[tokio::test]
async fn a_lapse_a_payment_and_a_cancellation_exclude_each_other() {
    for (number, to) in [(1, OrderStatus::Paid), (2, OrderStatus::Cancelled)] {
        for lapse_first in [true, false] {
            let shop = Shop::open(1).await;
            let plan = shop.pending(number, 1, due()).await;
            let head = shop.head(&plan.order.id).await.unwrap();
            let lapse = order::lapse(&head, &plan.lines, None, due().plus_seconds(1)).unwrap();
            let other = order::transition(step(&head, &plan, to)).unwrap();
            let (first, second) = if lapse_first { (lapse, other) } else { (other, lapse) };
            staging::transition(shop.own(), &[], first).await.unwrap().unwrap();
            let refusals = staging::transition(shop.own(), &[], second).await.unwrap().unwrap_err();
            assert!(refusals.names(OrderAction::Order));
            let head = shop.head(&plan.order.id).await.unwrap();
            let (status, stock) = match (lapse_first, to) {
                (false, OrderStatus::Paid) => (OrderStatus::Paid, 7),
                _ => (OrderStatus::Cancelled, 10),
            };
            assert_eq!((head.status, head.lapsed, shop.stocks().await), (status, lapse_first, vec![stock]));
        }
    }
}

/// A janitor with a wrong clock cannot cancel an order before its time to pay has ended.
#[tokio::test]
async fn the_table_refuses_a_lapse_before_its_time() {
    let shop = Shop::open(1).await;
    let plan = shop.pending(1, 1, due()).await;
    let head = shop.head(&plan.order.id).await.unwrap();
    let early = order::lapse(&head, &plan.lines, None, due().plus_millis(-1)).unwrap();
    assert!(staging::transition(shop.own(), &[], early).await.unwrap().is_err());
    let never = shop.plan(2, 1);
    shop.place(&never).await.unwrap();
    let head = shop.head(&never.order.id).await.unwrap();
    assert_eq!(head.lapses_at, None);
    let lapse = order::lapse(&head, &never.lines, None, due()).unwrap();
    assert!(staging::transition(shop.own(), &[], lapse).await.unwrap().is_err());
}

/// Places an order of product 2 that must be paid by `lapses_at`.
async fn pending_of_product_2(shop: &Shop, lapses_at: Instant) -> Plan {
    let mut plan = shop.plan(9, 2);
    (plan.order.data.by_customer, plan.order.data.lapses_at) = (true, Some(lapses_at));
    plan.order.data.line_count = 1;
    plan.lines.remove(0);
    shop.place(&plan).await.unwrap();
    plan
}

/// Makes every transaction with product 1 conflict. The retries of a transaction then take seconds.
fn keep_product_1_busy(shop: &Shop) {
    let conflict = Fault { kind: FaultKind::Conflict, rate: 1.0, count: None, seed: 0 };
    // The table knows the keys of requests only while it counts throttles.
    let _throttles = shop.count_throttles();
    shop.faults().add_to_keys(conflict, "STOCK#p1").unwrap();
}

/// Runs a round of two seconds. The short time simulates a table that takes long for each order.
async fn short_round(shop: &Shop, now: Instant) -> Round {
    let until = time::Instant::now() + Duration::from_secs(2);
    let (round, listed) = shop.janitor().run_round(now, Grace::seconds(60), until).await;
    listed.unwrap();
    counts(round)
}

#[tokio::test]
async fn orders_of_a_busy_product_leave_time_for_the_lapses_of_others() {
    let shop = Shop::open(2).await;
    shop.stock_up(&product(1), 1_000).await;
    for number in 1..=5 {
        shop.pending(number, 1, due()).await;
    }
    pending_of_product_2(&shop, due().plus_seconds(1)).await;
    keep_product_1_busy(&shop);
    // Four orders are handled at once. If every round began at the first order, the orders of
    // product 1 would always use up the time.
    let mut cancelled = 0;
    for minute in 1..=20 {
        let round = short_round(&shop, due().plus_seconds(60 * minute)).await;
        assert_eq!(round.failed, 0, "a conflict is no failure");
        cancelled += round.lapsed;
        if cancelled > 0 {
            break;
        }
    }
    assert_eq!((cancelled, shop.stocks().await[1]), (1, 10));
}

#[tokio::test]
async fn unfinished_orders_of_a_busy_product_leave_time_for_lapses() {
    let shop = Shop::open(2).await;
    shop.stock_up(&product(1), 1_000).await;
    for number in 1..=4 {
        shop.leave(&shop.plan(number, 1), usize::MAX).await;
    }
    pending_of_product_2(&shop, due()).await;
    keep_product_1_busy(&shop);
    let round = short_round(&shop, due()).await;
    assert_eq!(round, Round { found: 4, left: 4, ..lapsed(1) });
}

#[tokio::test]
async fn an_order_that_cannot_lapse_does_not_block_the_others() {
    let shop = Shop::open(2).await;
    let stuck = shop.pending(1, 2, due()).await;
    shop.pending(2, 1, due().plus_seconds(1)).await;
    shop.lose_stock(&stuck.lines[1].product_id).await;
    let round = round_at(&shop, due().plus_seconds(1)).await;
    assert_eq!(round, Round { lapsed: 1, failed: 1, ..Round::default() });
    assert_eq!(shop.head(&stuck.order.id).await.unwrap().status, OrderStatus::Pending);
}
