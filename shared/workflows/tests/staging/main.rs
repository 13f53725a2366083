//! Tests of large orders: they are placed completely or not at all, after any interruption and with
//! any concurrent work.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::as_conversions)]

mod returned;
mod shop;

use emulators::table::FaultKind;
use fixture::crash_after;
use key_schema::lists;
use key_schema::order::staged::{self, RESERVED_AT_ONCE};
use key_schema::order::{self, OrderAction, OrderStatus, PlacedOrder};
use workflows::staging::{StagingError, Undone, undo};

use shop::{Basket, STOCK, Shop, TAKEN};

/// A number of lines that takes three transactions. The last transaction is not full.
const LINES: usize = 2 * RESERVED_AT_ONCE + 7;
/// A number of lines that takes two transactions. Interrupting at every point would take long with
/// more lines.
const FEW: usize = RESERVED_AT_ONCE + 2;

/// Returns by how much a test increases the number of waits before the next interruption. The
/// number is 1 on the embedded table, and 2 on a slower table.
fn stride() -> usize {
    if std::env::var_os("AWS_ENDPOINT_URL_DYNAMODB").is_some() { 2 } else { 1 }
}

fn lines_refused(error: &StagingError) -> Vec<u64> {
    let StagingError::Refused(refusals) = error else { panic!("{error}") };
    let line = |action| if let OrderAction::Stock(line) = action { line } else { panic!("{action:?}") };
    let mut lines: Vec<u64> = refusals.iter().map(|refusal| line(refusal.action)).collect();
    lines.sort_unstable();
    lines
}

#[tokio::test]
async fn a_large_order_is_invisible_until_it_is_placed_completely() {
    let shop = Shop::open(LINES).await;
    let basket = shop.basket(1, LINES);
    shop.place(shop.own(), &basket).await.unwrap();
    shop.assert_placed(&basket, "placed").await;

    let other = shop.basket(2, LINES);
    shop.own().transact(&staged::begin(&other.order, &[]).unwrap()).await.unwrap().unwrap();
    shop.own()
        .transact(&staged::reserve(&other.order, &other.lines[..RESERVED_AT_ONCE]).unwrap())
        .await
        .unwrap()
        .unwrap();
    let pending = shop
        .own()
        .query(&order::by_status(OrderStatus::Pending, None, None, lists::unchanged()).unwrap())
        .await
        .unwrap();
    assert_eq!(pending.items.len(), 1);
    let mine = shop.own().query(&order::of_customer(&other.order.customer_id, None, None).unwrap()).await.unwrap();
    assert_eq!(mine.items.len(), 1);
    assert_eq!(shop.unfinished().await, std::slice::from_ref(&other.order.id));
}

#[tokio::test]
async fn a_refusal_names_every_line_with_too_little_stock_and_leaves_no_item() {
    let shop = Shop::open(LINES).await;
    for number in [5, RESERVED_AT_ONCE + 3, LINES] {
        shop.stock(number, TAKEN - 1, true).await;
    }
    shop.stock(70, STOCK, false).await;
    let basket = shop.basket(1, LINES);
    let error = shop.place(shop.own(), &basket).await.unwrap_err();
    assert_eq!(lines_refused(&error), [5, RESERVED_AT_ONCE as u64 + 3, 70, LINES as u64]);
    assert_eq!(shop.head(&basket.order.id).await, None);
    let (available, refilled) = (shop.available().await, [5, RESERVED_AT_ONCE + 3, LINES]);
    assert!(available.iter().zip(1..).all(|(left, n)| *left == if refilled.contains(&n) { TAKEN - 1 } else { STOCK }));
    // The idempotency key and the reference of the refused order can be used again.
    for number in refilled {
        shop.stock(number, STOCK, true).await;
    }
    shop.stock(70, STOCK, true).await;
    shop.place(shop.own(), &basket).await.unwrap();
    shop.assert_placed(&basket, "once more").await;
}

#[tokio::test]
async fn a_taken_reference_is_refused_before_any_stock_is_read() {
    let shop = Shop::open(FEW).await;
    let first = shop.basket(1, FEW);
    shop.place(shop.own(), &first).await.unwrap();
    shop.stock(1, 0, true).await;
    let mut second = shop.basket(2, FEW);
    second.order.data.reference.clone_from(&first.order.reference);
    let error = shop.place(shop.own(), &second).await.unwrap_err();
    let StagingError::Refused(refusals) = error else { panic!("{error}") };
    assert_eq!(refusals.iter().map(|refusal| refusal.action).collect::<Vec<_>>(), [OrderAction::Reference]);
    // The second order did not take over the first order's claim.
    let error = shop.place(shop.own(), &second).await.unwrap_err();
    assert!(matches!(error, StagingError::Refused(_)));
}

#[tokio::test]
async fn an_order_is_refused_and_undone_if_its_stock_runs_out_in_the_meantime() {
    let shop = Shop::open(LINES).await;
    let basket = shop.basket(1, LINES);
    let mut met = 0;
    for waits in (0..).step_by(stride()) {
        let other = shop.table();
        let mut placing = Box::pin(shop.place(&other, &basket));
        if let Some(placed) = crash_after(waits, &mut placing).await {
            placed.unwrap();
            shop.assert_placed(&basket, "without an interruption").await;
            break;
        }
        // Another client buys all pieces of the last line's product at this point.
        shop.stock(LINES, 0, true).await;
        match placing.await {
            Ok(()) => {
                // The line was reserved before the test set its stock to 0, so the order stays
                // placed.
                assert_eq!(undo(shop.own(), &basket.order.id).await.unwrap(), Undone::Visible);
                break;
            }
            Err(error) => {
                assert_eq!(lines_refused(&error), [LINES as u64]);
                shop.stock(LINES, STOCK, true).await;
                shop.assert_untouched(&basket, &format!("after {waits} waits")).await;
                met += 1;
            }
        }
    }
    assert!(met > 3, "only {met} crash points were reached");
}

#[tokio::test]
async fn an_interrupted_order_is_undone_unless_it_was_placed() {
    let shop = Shop::open(FEW).await;
    let basket = shop.basket(1, FEW);
    let (mut undone, mut waits) = (0, 0);
    loop {
        let done = crash_after(waits, shop.place(&shop.table(), &basket)).await;
        let end = undo(shop.own(), &basket.order.id).await.unwrap();
        match (done, end) {
            (Some(placed), _) => {
                placed.unwrap();
                break;
            }
            (None, Undone::Visible) => break,
            (None, Undone::Gone) => {
                shop.assert_untouched(&basket, &format!("after {waits} waits")).await;
                undone += 1;
            }
        }
        waits += stride();
    }
    shop.assert_placed(&basket, "at last").await;
    assert!(undone > 3, "only {undone} crash points were reached");
}

#[tokio::test]
async fn an_interrupted_undoing_is_continued() {
    let shop = Shop::open(LINES).await;
    let basket = shop.basket(1, LINES);
    let begun = async |shop: &Shop, basket: &Basket| {
        let mut head = basket.order.clone();
        shop.own().transact(&staged::begin(&head, &[]).unwrap()).await.unwrap().unwrap();
        for lines in basket.lines.chunks(RESERVED_AT_ONCE) {
            shop.own().transact(&staged::reserve(&head, lines).unwrap()).await.unwrap().unwrap();
            head = staged::counted(&head, lines.len(), true);
        }
    };
    let mut waits = 0;
    loop {
        if shop.head(&basket.order.id).await.is_none() {
            begun(&shop, &basket).await;
        }
        let done = crash_after(waits, undo(&shop.table(), &basket.order.id)).await;
        assert_eq!(undo(shop.own(), &basket.order.id).await.unwrap(), Undone::Gone);
        shop.assert_untouched(&basket, &format!("after {waits} waits")).await;
        if done.is_some() {
            break;
        }
        waits += stride();
    }
    assert!(waits > 3);
}

#[tokio::test]
async fn lines_that_are_reserved_during_an_undo_are_refused_or_undone() {
    let shop = Shop::open(FEW).await;
    let (mut before, mut behind) = (0, 0);
    for waits in (0..).step_by(stride()) {
        let basket = shop.basket(1, FEW);
        let mut head = basket.order.clone();
        let (first, rest) = basket.lines.split_at(RESERVED_AT_ONCE);
        shop.own().transact(&staged::begin(&head, &[]).unwrap()).await.unwrap().unwrap();
        shop.own().transact(&staged::reserve(&head, first).unwrap()).await.unwrap().unwrap();
        head = staged::counted(&head, first.len(), true);
        // The undoing worker has read the first lines, and pauses at a different point in each
        // iteration.
        let other = shop.table();
        let mut undoing = Box::pin(undo(&other, &basket.order.id));
        let ended = crash_after(waits, &mut undoing).await;
        match shop.own().transact(&staged::reserve(&head, rest).unwrap()).await.unwrap() {
            Ok(()) => before += 1,
            Err(_) => behind += 1,
        }
        let done = ended.is_some();
        let end = match ended {
            Some(end) => end,
            None => undoing.await,
        };
        assert_eq!(end.unwrap(), Undone::Gone);
        shop.assert_untouched(&basket, &format!("after {waits} waits")).await;
        if done {
            break;
        }
    }
    assert!(before > 0 && behind > 0, "{before} reservations came before the undo, {behind} after it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_placer_and_two_undoers_leave_a_complete_order_or_none() {
    let shop = Shop::open(FEW).await;
    let (mut placed, mut gone) = (0, 0);
    for number in 1..=12 {
        let basket = shop.basket(number, FEW);
        let (one, two, three) = (shop.table(), shop.table(), shop.table());
        let id = &basket.order.id;
        let late = async |table| {
            // The delay differs in each iteration.
            for _ in 0..number {
                let _ = shop.head(id).await;
            }
            undo(table, id).await
        };
        let (done, ..) = futures::join!(shop.place(&one, &basket), late(&two), late(&three));
        match undo(shop.own(), id).await.unwrap() {
            Undone::Visible => {
                shop.assert_placed(&basket, "placed").await;
                assert!(done.is_ok());
                placed += 1;
                break;
            }
            Undone::Gone => {
                assert!(done.is_err(), "an acknowledged order is missing");
                shop.assert_untouched(&basket, "gone").await;
                gone += 1;
            }
        }
    }
    assert!(placed + gone > 0);
}

#[tokio::test]
async fn faults_of_the_table_leave_a_complete_order_or_none() {
    for (seed, kind) in
        [(1, FaultKind::Reset), (2, FaultKind::Conflict), (3, FaultKind::Throttle), (4, FaultKind::Error)]
    {
        let shop = Shop::open(FEW).await;
        let basket = shop.basket(1, FEW);
        shop.break_with(kind, 0.3, Some(12), seed);
        let placed = shop.place(shop.own(), &basket).await;
        shop.clear_faults();
        match undo(shop.own(), &basket.order.id).await.unwrap() {
            Undone::Visible => {
                placed.unwrap();
                shop.assert_placed(&basket, "placed").await;
            }
            Undone::Gone => {
                placed.unwrap_err();
                shop.assert_untouched(&basket, "gone").await;
            }
        }
    }
}

#[tokio::test]
async fn an_order_is_not_placed_if_its_customer_was_removed_in_the_meantime() {
    let shop = Shop::open(FEW).await;
    let basket = shop.basket(1, FEW);
    let mut head = basket.order.clone();
    shop.own().transact(&staged::begin(&head, &[]).unwrap()).await.unwrap().unwrap();
    for lines in basket.lines.chunks(RESERVED_AT_ONCE) {
        shop.own().transact(&staged::reserve(&head, lines).unwrap()).await.unwrap().unwrap();
        head = staged::counted(&head, lines.len(), true);
    }
    shop.remove_customer().await;
    let order = PlacedOrder { head, ..basket.placed() };
    let refused = shop.own().transact(&staged::commit(&order, &[]).unwrap()).await.unwrap().unwrap_err();
    assert_eq!(refused[0].action, OrderAction::Customer);
    assert_eq!(undo(shop.own(), &basket.order.id).await.unwrap(), Undone::Gone);
    shop.assert_untouched(&basket, "gone").await;
}
