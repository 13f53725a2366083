//! Tests that cancelled and undone orders return their stock.

use key_schema::order::staged::{self, RESERVED_AT_ONCE};
use key_schema::order::{self, OrderAction, OrderStatus, RETURNED_AT_ONCE, Step};
use key_schema::product;
use workflows::staging::{self, Lapsed, Undone, give_back, lapse, undo};

use fixture::crash_after;

use super::shop::{Basket, STOCK, Shop, TAKEN, at, product as product_id};
use super::{FEW, LINES, lines_refused, stride};

/// Cancels an order that has too many lines for one transaction. The cancellation returns only the
/// stock of the first lines.
async fn cancelled(shop: &Shop, basket: &Basket) {
    let head = shop.head(&basket.order.id).await.unwrap();
    let step = Step::new(&head, &basket.lines, OrderStatus::Cancelled, at("2026-11-20T13:00:00.000Z"), "c1");
    staging::transition(shop.own(), &basket.lines, order::transition(step).unwrap()).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_large_cancelled_order_returns_its_stock_once_despite_interruptions() {
    let lines = RETURNED_AT_ONCE + 120;
    let shop = Shop::open(lines).await;
    let mut waits = 0;
    for number in 1.. {
        let basket = shop.basket(number, lines);
        shop.place(shop.own(), &basket).await.unwrap();
        cancelled(&shop, &basket).await;
        let before = shop.available().await;
        assert_eq!(before.iter().filter(|left| **left == STOCK).count(), RETURNED_AT_ONCE);
        assert_eq!(shop.unfinished().await, std::slice::from_ref(&basket.order.id));
        let version = shop.head(&basket.order.id).await.unwrap().meta.version;

        let done = crash_after(waits, give_back(&shop.table(), &basket.order.id)).await;
        // Two workers continue concurrently.
        let (one, two) = (shop.table(), shop.table());
        let both = futures::join!(give_back(&one, &basket.order.id), give_back(&two, &basket.order.id));
        both.0.unwrap();
        both.1.unwrap();
        assert_eq!(shop.available().await, vec![STOCK; lines], "after {waits} waits");
        let head = shop.head(&basket.order.id).await.unwrap();
        assert_eq!((head.status, head.unfinished.is_none()), (OrderStatus::Cancelled, true));
        assert_eq!(head.meta.version, version, "the version for clients is unchanged");
        assert!(shop.unfinished().await.is_empty());
        if done.is_some() {
            break;
        }
        waits += 2 * stride();
    }
    assert!(waits > 2);
}

/// The stocks have the form of an earlier table before the order, and again before its end.
#[tokio::test]
async fn a_large_order_moves_stocks_to_take_pieces_and_to_return_them_despite_interruptions() {
    let lines = RETURNED_AT_ONCE + 5;
    let shop = Shop::open(lines).await;
    let age = async || {
        for number in 1..=lines {
            shop.age_stock(product_id(number).as_str()).await;
        }
    };
    age().await;
    let basket = shop.basket(1, lines);
    shop.place(shop.own(), &basket).await.unwrap();
    shop.assert_placed(&basket, "placed").await;
    age().await;
    cancelled(&shop, &basket).await;
    for waits in [1, 2, 3, 5] {
        let _ = crash_after(waits, give_back(&shop.table(), &basket.order.id)).await;
    }
    give_back(shop.own(), &basket.order.id).await.unwrap();
    assert_eq!(shop.available().await, vec![STOCK; lines]);
    // An order that lacks one line moves the stocks, too, and leaves their pieces.
    age().await;
    shop.own().transact(&product::move_stock(&shop.old(1).await).unwrap()).await.unwrap().unwrap();
    shop.stock(1, TAKEN - 1, true).await;
    assert_eq!(lines_refused(&shop.place(shop.own(), &shop.basket(2, lines)).await.unwrap_err()), [1]);
    shop.stock(1, STOCK, true).await;
    assert_eq!(shop.available().await, vec![STOCK; lines]);
}

/// Returns the expected stocks: one piece of each product that was created again, and all pieces of
/// the other products.
fn full_except(revived: &[usize], products: usize) -> Vec<u64> {
    (1..=products).map(|number| if revived.contains(&number) { 1 } else { STOCK }).collect()
}

#[tokio::test]
async fn a_cancelled_order_returns_no_pieces_to_products_that_were_revived() {
    let lines = RETURNED_AT_ONCE + 20;
    let shop = Shop::open(lines).await;
    let basket = shop.basket(1, lines);
    shop.place(shop.own(), &basket).await.unwrap();
    let revived = [1, 2, lines - 1, lines];
    for number in revived {
        shop.revive(number, 1).await;
    }
    cancelled(&shop, &basket).await;
    give_back(shop.own(), &basket.order.id).await.unwrap();
    assert_eq!(shop.available().await, full_except(&revived, lines));
    assert!(shop.unfinished().await.is_empty());
}

#[tokio::test]
async fn an_undone_order_returns_no_pieces_to_products_that_were_revived() {
    let shop = Shop::open(LINES).await;
    let basket = shop.basket(1, LINES);
    let mut head = basket.order.clone();
    shop.own().transact(&staged::begin(&head, &[]).unwrap()).await.unwrap().unwrap();
    for lines in basket.lines.chunks(RESERVED_AT_ONCE) {
        shop.own().transact(&staged::reserve(&head, lines).unwrap()).await.unwrap().unwrap();
        head = staged::counted(&head, lines.len(), true);
    }
    let revived = [1, 2, LINES - 1, LINES];
    for number in revived {
        shop.revive(number, 1).await;
    }
    assert_eq!(undo(shop.own(), &basket.order.id).await.unwrap(), Undone::Gone);
    assert_eq!(shop.available().await, full_except(&revived, LINES));
}

#[tokio::test]
async fn no_order_takes_pieces_of_another_incarnation_of_its_product() {
    let shop = Shop::open(LINES).await;
    for number in [1, LINES] {
        shop.revive(number, STOCK).await;
    }
    let basket = shop.basket(1, LINES);
    let error = shop.place(shop.own(), &basket).await.unwrap_err();
    assert_eq!(lines_refused(&error), [1, LINES as u64]);
    shop.assert_untouched(&basket, "refused").await;
    // The transaction that reserves the line is refused, too.
    let begun = staged::begin(&basket.order, &[]).unwrap();
    shop.own().transact(&begun).await.unwrap().unwrap();
    let reserved =
        shop.own().transact(&staged::reserve(&basket.order, &basket.lines[..1]).unwrap()).await.unwrap().unwrap_err();
    assert_eq!(reserved[0].action, OrderAction::Stock(1));
}

#[tokio::test]
async fn a_missing_order_has_nothing_to_undo_and_nothing_to_give_back() {
    let shop = Shop::open(1).await;
    let id = shop.basket(9, 1).order.id.clone();
    assert_eq!(undo(shop.own(), &id).await.unwrap(), Undone::Gone);
    give_back(shop.own(), &id).await.unwrap();
    assert_eq!(shop.read_stock(1).await, STOCK);
}

#[tokio::test]
async fn one_call_of_lapse_returns_all_stock_of_a_large_order() {
    let lines = RETURNED_AT_ONCE + 2;
    let shop = Shop::open(lines).await;
    let mut basket = shop.basket(1, lines);
    let due = at("2026-11-20T13:00:00.000Z");
    basket.order.data.lapses_at = Some(due);
    shop.place(shop.own(), &basket).await.unwrap();
    let id = &basket.order.id;
    assert_eq!(lapse(shop.own(), id, due.plus_millis(-1)).await.unwrap(), Lapsed::NotDue);
    assert_eq!(lapse(shop.own(), id, due).await.unwrap(), Lapsed::Cancelled);
    assert_eq!(shop.available().await, vec![STOCK; lines]);
    assert!(shop.unfinished().await.is_empty());
}

#[tokio::test]
async fn an_undone_order_leaves_the_idempotency_key_of_a_later_order_alone() {
    let shop = Shop::open(FEW).await;
    let (basket, later) = (shop.basket(1, FEW), shop.basket(2, FEW));
    let broken_off = crash_after(2 * stride(), shop.place(&shop.table(), &basket)).await;
    assert!(broken_off.is_none() && shop.head(&basket.order.id).await.is_some());
    // The idempotency key has expired, and a later order has claimed it.
    shop.claim_again(&basket, &later).await;
    assert_eq!(undo(shop.own(), &basket.order.id).await.unwrap(), Undone::Gone);
    assert_eq!(shop.available().await, vec![STOCK; FEW]);
    assert_eq!(shop.head(&basket.order.id).await, None);
    assert_eq!(shop.claimant(&basket).await, Some(later.order.id.clone()));
}
