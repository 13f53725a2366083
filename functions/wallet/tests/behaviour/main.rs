//! Tests of the function through its routes, over a table that is created from the template.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod bank;
mod concurrency;
mod currencies;
mod deposits;
mod faults;
mod transfers;

use fixture::Recorder;
use serde_json::json;

use crate::bank::{Bank, balance_of, deposit, entries_of, transfer, usd};

#[tokio::test]
async fn every_route_uses_exactly_the_recorded_patterns() {
    let bank = Bank::open(&["a", "b"]).await;
    let mut recorder = Recorder::new(&bank);
    for call in [
        deposit("a", &json!({ "amount": usd(5) }), "k1"),
        deposit("a", &json!({ "amount": usd(5) }), "k1"),
        transfer("a", "b", &usd(2), "k2"),
        transfer("a", "b", &usd(2), "k2"),
        balance_of("a").staff("s1"),
        entries_of("a").staff("s1"),
    ] {
        recorder.ok(call).await;
    }
    recorder.assert_recorded();
}
