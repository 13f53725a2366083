//! Tests of orders that were abandoned while they were placed or undone, or while their stock was
//! given back. Their claims may have expired and now belong to another order.

use std::time::Duration;

use janitor::Grace;
use key_schema::id::PromotionId;
use key_schema::idempotency::StoredResponse;
use key_schema::instant::Instant;
use key_schema::order::staged::{GIVEN_BACK_AT_ONCE, RESERVED_AT_ONCE};
use key_schema::order::{OrderAction, OrderStatus, ReferenceClaim};
use key_schema::promotion::PromotionItem;
use key_schema::promotion::{self, AppliedPromotion, PromotionUses, Use};
use tokio::time;
use workflows::staging::StagingError;

use crate::support::{Log, Plan, Shop, begun, counts, done, record};

/// The number of lines for three transactions of each kind.
const LINES: usize = 2 * RESERVED_AT_ONCE + 10;

#[tokio::test]
async fn an_order_that_was_not_placed_is_undone_from_any_step() {
    for reserved in 0..=3 {
        let shop = Shop::open(LINES).await;
        let plan = shop.plan(1, LINES);
        shop.leave(&plan, reserved).await;
        let taken = shop.stocks().await.into_iter().filter(|stock| *stock < 10).count();
        assert_eq!(taken, LINES.min(reserved * RESERVED_AT_ONCE));
        assert_eq!(counts(shop.tidy().await), done(1, 1, 0, 0), "{reserved}");
        shop.assert_untouched(&[plan]).await;
        assert_eq!(counts(shop.tidy().await), done(0, 0, 0, 0), "{reserved}");
    }
}

#[tokio::test]
async fn an_order_that_is_partly_undone_is_undone_completely() {
    let shop = Shop::open(LINES).await;
    let plan = shop.plan(1, LINES);
    shop.leave_half_undone(&plan).await;
    assert_eq!(counts(shop.tidy().await), done(1, 1, 0, 0));
    shop.assert_untouched(&[plan]).await;
}

#[tokio::test]
async fn key_and_reference_of_an_order_that_was_undone_are_free_again() {
    let shop = Shop::open(2).await;
    let left = shop.plan(1, 2);
    shop.leave(&left, 1).await;
    let mut again = shop.plan(2, 2);
    again.scope = left.scope.clone();
    again.order.data.reference = left.order.reference.clone();
    again.order.data.unfinished = left.order.unfinished.clone();
    let Err(StagingError::Refused(refusals)) = shop.place(&again).await else {
        panic!("the reference and the idempotency key are not taken")
    };
    let taken: Vec<OrderAction> = refusals.iter().map(|refusal| refusal.action).collect();
    assert_eq!(taken, [OrderAction::Reference, OrderAction::Idempotency]);

    shop.tidy().await;
    shop.place(&again).await.unwrap();
    assert_eq!(shop.head(&again.order.id).await.unwrap().status, OrderStatus::Pending);
    assert_eq!(counts(shop.tidy().await), done(0, 0, 0, 0), "a placed order is unchanged");
    assert_eq!(shop.stocks().await, [7, 7]);
}

#[tokio::test]
async fn an_order_that_was_undone_gives_the_use_of_its_promotion_back() {
    let promotion: PromotionId = "summer".parse().unwrap();
    for reserved in 0..=3 {
        let shop = Shop::open(LINES).await;
        shop.seed(PromotionUses {
            promotion_id: promotion.clone(),
            limit: Some(1),
            limit_since: 0,
            uses: 0,
            leased: false,
        })
        .await;
        let mut plan = shop.plan(1, LINES);
        let (customer, mut charges) = (plan.order.customer_id.clone(), plan.order.charges());
        charges.promotions.push(AppliedPromotion {
            id: promotion.clone(),
            name: "Sale".to_owned(),
            code: None,
            discount: 0,
            counted: true,
            counted_per_customer: true,
        });
        plan.order.data.charges = Some(charges);
        let (limit_total, limit_per_customer) = (Some(1), Some(1));
        let usage = Use { promotion: promotion.clone(), limit_total, limit_per_customer, shard: None, limit_since: 0 };
        plan.uses = promotion::take(&[usage], &customer, begun()).unwrap();
        shop.leave(&plan, reserved).await;
        let uses = async || {
            let read = promotion::read([], [&promotion], &customer).unwrap();
            let read = shop.own().batch_get(&read).await.unwrap().into_iter().flatten();
            read.map(|item| match item {
                PromotionItem::PromotionUses(all) => all.uses,
                PromotionItem::CustomerUses(own) => own.uses,
                _ => panic!("not a count of uses"),
            })
            .collect::<Vec<_>>()
        };
        assert_eq!(uses().await, [1, 1]);
        assert_eq!(counts(shop.tidy().await), done(1, 1, 0, 0), "{reserved}");
        assert_eq!(uses().await, [0, 0], "{reserved}");
    }
}

#[tokio::test]
async fn the_stock_of_every_line_of_a_cancelled_order_is_given_back_once() {
    let lines = 2 * GIVEN_BACK_AT_ONCE + 52;
    for given_back in 0..=1 {
        let shop = Shop::open(lines).await;
        let plan = shop.plan(1, lines);
        shop.leave_cancelled(&plan, given_back).await;
        assert!(shop.stocks().await.contains(&7));
        assert_eq!(counts(shop.tidy().await), done(1, 0, 1, 0), "{given_back}");
        shop.assert_full().await;
        let head = shop.head(&plan.order.id).await.unwrap();
        assert_eq!((head.status, &head.unfinished), (OrderStatus::Cancelled, &None));
        assert_eq!(shop.items(&plan.order.id).await, 1 + lines + 2, "head, lines and history stay");
        assert_eq!(counts(shop.tidy().await), done(0, 0, 0, 0));
    }
}

#[tokio::test]
async fn an_unfinished_order_is_left_alone_during_the_grace() {
    let shop = Shop::open(1).await;
    let plan = shop.plan(1, 1);
    shop.leave(&plan, 1).await;
    let (grace, far) = (Grace::seconds(60), time::Instant::now() + Duration::from_secs(600));
    let (early, listed) = shop.janitor().run_round(begun().plus_millis(59_999), grace, far).await;
    listed.unwrap();
    assert_eq!(early, done(0, 0, 0, 0));
    assert_eq!(shop.stocks().await, [7]);
    let (late, listed) = shop.janitor().run_round(begun().plus_seconds(60), grace, far).await;
    listed.unwrap();
    assert_eq!((counts(late), late.oldest), (done(1, 1, 0, 0), Duration::from_secs(60)));
    shop.assert_untouched(&[plan]).await;
}

#[tokio::test]
async fn two_concurrent_janitors_undo_each_order_once() {
    let shop = Shop::open(LINES).await;
    let plans: Vec<_> = (1..=3).map(|number| shop.plan(number, LINES)).collect();
    shop.leave(&plans[0], 3).await;
    shop.leave(&plans[1], 1).await;
    shop.leave_cancelled(&plans[2], 0).await;
    let far = time::Instant::now() + Duration::from_secs(600);
    let now = Instant::now();
    let (one, other) = (shop.janitor(), shop.janitor());
    let grace = Grace::seconds(0);
    let (one, other) = tokio::join!(one.run_round(now, grace, far), other.run_round(now, grace, far));
    for (round, listed) in [one, other] {
        listed.unwrap();
        assert_eq!((round.failed, round.left), (0, 0), "{round:?}");
    }
    shop.assert_full().await;
    assert_eq!(shop.unfinished().await, 0);
    shop.assert_untouched(&plans[..2]).await;
}

#[tokio::test]
async fn the_log_has_id_and_reason_of_each_order_that_the_janitor_undoes_finishes_or_cancels() {
    let shop = Shop::open(LINES).await;
    let (undone, finished) = (shop.plan(1, 2), shop.plan(2, LINES));
    shop.leave(&undone, 1).await;
    shop.leave_cancelled(&finished, 0).await;
    let lapsed = shop.pending(3, 1, begun()).await;
    let log = Log::open();
    shop.tidy().await;
    let mut lines = log.orders();
    lines.sort();
    let line = |message: &str, plan: &Plan, reason: &str| [message, plan.order.id.as_str(), reason].map(str::to_owned);
    let expected = [
        line("an unfinished order was finished", &finished, "return_of_stock_interrupted"),
        line("an unfinished order was undone", &undone, "placing_interrupted"),
        line("an unpaid order was cancelled", &lapsed, "not_paid_in_time"),
    ];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn claims_that_now_belong_to_another_order_are_kept() {
    let shop = Shop::open(1).await;
    let left = shop.plan(1, 1);
    shop.leave(&left, 1).await;
    // The idempotency key and the reference expired, and another order uses both.
    let mut other = shop.plan(2, 1);
    other.scope = left.scope.clone();
    shop.seed(record(&other, "2026-11-21T12:00:01.000Z").data).await;
    let reference = left.order.reference.clone().unwrap();
    shop.seed(ReferenceClaim { reference: reference.clone(), order_id: other.order.id.clone(), customer_id: None })
        .await;

    assert_eq!(counts(shop.tidy().await), done(1, 1, 0, 0));
    assert_eq!(shop.items(&left.order.id).await, 0);
    shop.assert_full().await;
    assert_eq!(shop.record(&other.scope).await.unwrap().answer, StoredResponse::Order(other.order.id.clone()));
    // The reference is still taken.
    let mut third = shop.plan(3, 1);
    third.order.data.reference = Some(reference);
    assert!(shop.place(&third).await.is_err());
    shop.assert_full().await;
}

#[tokio::test]
async fn the_claim_of_a_placed_order_stays_when_another_order_of_the_caller_is_undone() {
    let shop = Shop::open(1).await;
    let (placed, left) = (shop.plan(1, 1), shop.plan(2, 1));
    shop.place(&placed).await.unwrap();
    shop.leave(&left, 1).await;
    shop.tidy().await;
    assert!(shop.record(&placed.scope).await.is_some());
    assert_eq!(shop.record(&left.scope).await, None);
    assert_eq!(shop.stocks().await, [7]);
}
