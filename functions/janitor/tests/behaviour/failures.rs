//! Tests of rounds with an order that fails, with a table that fails, and with too little time.

use std::time::Duration;

use emulators::table::FaultKind;
use janitor::round::ListError;

use crate::support::{Plan, Shop, counts, done, product};

#[tokio::test]
async fn an_order_that_cannot_be_undone_fails_alone_and_is_tried_again() {
    // There are more orders than the janitor handles at once, each with a separate product. The
    // broken order is first.
    let shop = Shop::open(12).await;
    let mut plans: Vec<Plan> = (1..=12).map(|number| shop.plan(number, 1)).collect();
    for (number, plan) in (1..).zip(&mut plans) {
        plan.lines[0].data.product_id = product(number);
        shop.leave(plan, 1).await;
    }
    shop.lose_stock(&product(1)).await;
    assert_eq!(counts(shop.tidy().await), done(12, 11, 0, 1));
    assert_eq!(shop.items(&plans[0].order.id).await, 2, "the order is unchanged");
    assert!(shop.record(&plans[0].scope).await.is_some());
    assert_eq!(counts(shop.tidy().await), done(1, 0, 0, 1));

    shop.stock_up(&product(1), 7).await;
    assert_eq!(counts(shop.tidy().await), done(1, 1, 0, 0));
    shop.assert_untouched(&plans).await;
}

#[tokio::test]
async fn a_list_that_cannot_be_read_is_a_failure() {
    let shop = Shop::open(1).await;
    let plan = shop.plan(1, 1);
    shop.leave(&plan, 1).await;
    shop.fail(FaultKind::Error);
    let (round, listed) = shop.try_tidy(Duration::from_secs(600)).await;
    assert!(matches!(listed, Err(ListError::Table(_))), "{listed:?}");
    assert_eq!(round, done(0, 0, 0, 0));
    let (_, listed) = shop.try_tidy(Duration::ZERO).await;
    assert!(matches!(listed, Err(ListError::Time)), "{listed:?}");
    shop.clear_faults();
    assert_eq!(counts(shop.tidy().await), done(1, 1, 0, 0));
    shop.assert_untouched(&[plan]).await;
}

/// Every response of the table is 300 ms late, which is too late for most orders.
#[tokio::test]
async fn an_order_without_enough_time_is_left_unchanged_and_counted() {
    let shop = Shop::open(1).await;
    shop.stock_up(&product(1), 100).await;
    let plans: Vec<Plan> = (1..=20).map(|number| shop.plan(number, 1)).collect();
    for plan in &plans {
        shop.leave(plan, 1).await;
    }
    shop.fail(FaultKind::Slow);
    let (round, listed) = shop.try_tidy(Duration::from_secs(2)).await;
    listed.unwrap();
    shop.clear_faults();
    assert_eq!((round.found, round.undone + round.left, round.failed), (20, 20, 0), "{round:?}");
    assert!(round.left >= 8, "{round:?}");
    let rest = shop.tidy().await;
    assert_eq!((rest.failed, rest.left), (0, 0));
    for plan in &plans {
        assert_eq!(shop.items(&plan.order.id).await, 0);
    }
    assert_eq!(shop.stocks().await, [100]);
}
