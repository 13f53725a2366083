//! Tests of imports while the table fails: the response reports on every line, and no line is lost.

use std::collections::BTreeMap;

use emulators::table::FaultKind;
use serde_json::{Value, json};

use crate::import::{import, lines, tally, thousand};
use crate::shop::{Shop, product};

/// Repeats an import, and checks that the repetition completes it. Checks that another repetition
/// changes nothing.
async fn finish(shop: &Shop, products: &[Value]) {
    let again = shop.staff(import(lines(products))).await;
    assert!(tally(&again).keys().all(|status| ["created", "unchanged"].contains(status)), "{:?}", tally(&again));
    let last = shop.staff(import(lines(products))).await;
    assert_eq!(tally(&last), BTreeMap::from([("unchanged", products.len())]));
    for product in products.iter().step_by(97) {
        let read = shop.product(product["id"].as_str().unwrap()).await;
        assert_eq!((read.version(), &read.body["stock"]), (Some(1), &json!(1)));
    }
}

#[tokio::test]
async fn an_import_retries_unprocessed_items_until_all_are_written() {
    let shop = Shop::open().await;
    let products = thousand();
    shop.break_with(FaultKind::Partial, 0.7, None, 7);
    let answer = shop.staff(import(lines(&products))).await;
    assert_eq!(tally(&answer), BTreeMap::from([("created", 1000)]));
    let answer = shop.staff(import(lines(&products))).await;
    assert_eq!(tally(&answer), BTreeMap::from([("unchanged", 1000)]));
    assert!(shop.clear_faults() > 20);
    finish(&shop, &products).await;
}

#[tokio::test]
async fn an_import_retries_or_reports_requests_that_fail() {
    for (seed, kind) in
        [FaultKind::Throttle, FaultKind::Error, FaultKind::Reset, FaultKind::Conflict].into_iter().enumerate()
    {
        let shop = Shop::open().await;
        let products: Vec<Value> = (0..300).map(|n| product(&format!("p{n:03}"), 1)).collect();
        shop.break_with(kind, 0.5, Some(8), u64::try_from(seed).unwrap());
        let answer = shop.staff(import(lines(&products))).await;
        assert!(shop.clear_faults() > 0);
        if answer.status != 503 {
            let known = tally(&answer).keys().all(|status| ["created", "unchanged", "throttled"].contains(status));
            assert!(known, "{kind:?}: {:?}", tally(&answer));
            assert_eq!(tally(&answer).values().sum::<usize>(), 300);
        }
        finish(&shop, &products).await;
    }
}

#[tokio::test]
async fn a_line_that_the_table_keeps_refusing_is_reported_as_throttled_and_not_written() {
    let shop = Shop::open().await;
    let products: Vec<Value> = (0..60).map(|n| product(&format!("p{n:03}"), 1)).collect();
    shop.break_with(FaultKind::Conflict, 1.0, None, 0);
    let answer = shop.staff(import(lines(&products))).await;
    assert_eq!(tally(&answer), BTreeMap::from([("throttled", 60)]));
    shop.clear_faults();
    let again = shop.staff(import(lines(&products))).await;
    assert_eq!(tally(&again), BTreeMap::from([("created", 60)]));
}
