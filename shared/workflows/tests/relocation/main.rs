//! Tests of moving categories on a table: the embedded table, or a table of the DynamoDB at
//! `AWS_ENDPOINT_URL_DYNAMODB`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod interleaved;
mod shop;
mod stragglers;

use emulators::table::FaultKind;
use fixture::crash_after;
use futures::future::join_all;
use key_schema::category::relocation::Phase;
use key_schema::product::CategoryPath;
use workflows::relocation::Mover;

use shop::{Shop, far, path};

const TOPS: [&str; 3] = ["A", "Neu / 新", "Out"];

fn from() -> CategoryPath {
    path(&["A", "B #1"])
}

fn to() -> CategoryPath {
    path(&["Neu / 新", "100 %"])
}

/// Creates a catalogue with products in the moved subtree, outside it and above it. Keys must
/// escape some of the names. Products in the subtree have memberships inside and outside it, and
/// other products have memberships in it.
async fn furnished() -> Shop {
    let mut shop = Shop::open().await;
    let inside = [
        path(&["A", "B #1"]),
        path(&["A", "B #1", "ä~/%"]),
        path(&["A", "B #1", "ä~/%", "製 品"]),
        path(&["A", "B #1", "x"]),
    ];
    let outside = [path(&["A"]), path(&["A", "B #1$"]), path(&["A", "B"]), path(&["Out", "B #1"])];
    for (number, place) in inside.iter().chain(&outside).enumerate() {
        shop.create(&format!("p{number}"), place).await;
        shop.create(&format!("p{number} bis"), place).await;
    }
    for (name, place) in [
        ("p1", &outside[3]),
        ("p2", &inside[0]),
        ("p2", &inside[3]),
        ("p2", &outside[1]),
        ("p5", &inside[2]),
        ("p6", &outside[3]),
    ] {
        shop.put_into(name, place).await;
    }
    shop.grow(&path(&["A", "B #1", "empty", "below"])).await;
    for (place, title) in [(&inside[0], "Bee"), (&inside[2], "Goods"), (&outside[0], "Ah")] {
        assert!(shop.describe(place, title).await);
    }
    shop
}

#[tokio::test]
async fn a_move_changes_exactly_the_products_and_categories_of_the_subtree() {
    let shop = furnished().await;
    let before = shop.categories(&TOPS).await;
    shop.begin(&from(), &to()).await;
    let waiting = shop.mover().go_on(far()).await.unwrap().unwrap();
    assert_eq!(waiting.phase, Phase::Settling, "the move waits for running requests");
    assert_eq!((waiting.categories, waiting.products, waiting.memberships), (6, 8, 3));
    let done = shop.finish().await;
    assert_eq!((done.categories, done.products, done.memberships), (6, 8, 3));
    shop.assert_is(&shop.known.moved(&from(), &to()), &TOPS).await;
    let mut expected: Vec<CategoryPath> = before
        .into_keys()
        .map(|path| path.rebased(&from(), &to()).unwrap_or(path))
        .chain([path(&["Neu / 新"])])
        .collect();
    expected.sort();
    assert_eq!(shop.categories(&TOPS).await.into_keys().collect::<Vec<_>>(), expected);
    let (moved, _) = shop.read("p0").await;
    let (stayed, _) = shop.read("p7").await;
    assert_eq!((moved.meta.version, stayed.meta.version), (2, 1), "only the moved product has a new version");
    assert_eq!(shop.finish().await, done, "a finished move does not change");
}

#[tokio::test]
async fn a_category_that_moves_back_is_unchanged() {
    let shop = furnished().await;
    for (from, to) in [(from(), to()), (to(), from())] {
        shop.begin(&from, &to).await;
        shop.finish().await;
    }
    shop.assert_is(&shop.known, &TOPS).await;
    let (product, _) = shop.read("p0").await;
    assert_eq!(product.meta.version, 3);
}

#[tokio::test]
async fn a_move_that_is_interrupted_repeatedly_continues_where_it_stopped() {
    let shop = furnished().await;
    shop.begin(&from(), &to()).await;
    let mut broken = 0;
    for waits in (14..26).step_by(3).cycle() {
        let somebody = shop.table();
        if crash_after(waits, Mover::new(&somebody).settling(0).go_on(far())).await.is_some() {
            break;
        }
        broken += 1;
        assert!(broken < 2000, "the move makes no progress");
    }
    assert!(broken > 4, "{broken}");
    let done = shop.current().await;
    assert_eq!(
        (done.phase, done.categories, done.products, done.memberships),
        (Phase::Done, 6, 8, 3),
        "each item is counted once"
    );
    shop.assert_is(&shop.known.moved(&from(), &to()), &TOPS).await;
}

#[tokio::test]
async fn a_move_that_is_interrupted_once_at_any_point_ends_with_all_items_moved() {
    for waits in (0..160).step_by(4) {
        let shop = furnished().await;
        shop.begin(&from(), &to()).await;
        let somebody = shop.table();
        let whole = crash_after(waits, Mover::new(&somebody).settling(0).go_on(far())).await.is_some();
        let done = shop.finish().await;
        assert_eq!((done.categories, done.products, done.memberships), (6, 8, 3), "{waits}");
        shop.assert_is(&shop.known.moved(&from(), &to()), &TOPS).await;
        if whole {
            return;
        }
    }
}

#[tokio::test]
async fn concurrent_movers_do_each_step_once() {
    let shop = furnished().await;
    shop.begin(&from(), &to()).await;
    let tables: Vec<_> = (0..5).map(|_| shop.table()).collect();
    let all = tables.iter().map(|table| async move { Mover::new(table).settling(0).go_on(far()).await });
    for done in join_all(all).await {
        // A worker may give up after repeated conflicts, because the other workers finish the move.
        assert!(done.is_err() || done.unwrap().unwrap().phase == Phase::Done);
    }
    let done = shop.finish().await;
    assert_eq!((done.categories, done.products, done.memberships), (6, 8, 3));
    shop.assert_is(&shop.known.moved(&from(), &to()), &TOPS).await;
}

#[tokio::test]
async fn a_move_is_completed_although_the_table_is_throttled_or_fails() {
    for kind in [FaultKind::Throttle, FaultKind::Reset, FaultKind::Conflict] {
        let shop = furnished().await;
        shop.begin(&from(), &to()).await;
        shop.break_with(kind, 0.15, None, 7);
        for _ in 0..200 {
            if let Ok(Some(moving)) = Mover::new(shop.own()).settling(0).go_on(far()).await
                && moving.phase == Phase::Done
            {
                break;
            }
        }
        assert!(shop.faults().counts().iter().any(|count| count.fired > 0));
        shop.clear_faults();
        let done = shop.finish().await;
        assert_eq!((done.categories, done.products, done.memberships), (6, 8, 3), "{kind:?}");
        shop.assert_is(&shop.known.moved(&from(), &to()), &TOPS).await;
    }
}

#[tokio::test]
async fn no_step_begins_after_the_deadline() {
    let shop = furnished().await;
    shop.begin(&from(), &to()).await;
    let begun = shop.current().await;
    let now = tokio::time::Instant::now();
    assert_eq!(Mover::new(shop.own()).go_on(now).await.unwrap(), Some(begun.clone()));
    assert_eq!(shop.current().await, begun);
}

#[tokio::test]
async fn the_wait_of_a_move_is_longer_than_any_request_to_the_catalogue() {
    let template = fixture::template();
    let slowest = template.functions.iter().find(|function| function.logical_id == "Catalog").unwrap().timeout;
    let waits = std::time::Duration::from_secs(key_schema::category::relocation::SETTLING_SECONDS.unsigned_abs());
    assert!(waits >= 2 * slowest, "{waits:?} {slowest:?}");
}
