//! Tests of the function through its routes, over a table that is created from the template.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod audit;
mod batches;
mod counters;
mod crowds;
mod desk;
mod metrics;
mod months;
mod regions;

use emulators::table::FaultKind;
use fixture::Recorder;
use http_api::sample::Call;
use serde_json::json;

use crate::desk::{Desk, add, in_seconds, list, point, read, read_point, split, store};

#[tokio::test]
async fn every_route_uses_exactly_the_recorded_patterns() {
    let desk = Desk::open().await;
    let at = in_seconds(0);
    let put = || Call::new("PUT /v1/stores/{id}").path("id", "s").staff("s1");
    let place = json!({"country": "CH", "city": "Bern", "name": "Shop"});
    // Conflicts make the counter hot, so that the function splits it.
    desk.break_with(FaultKind::Conflict, 1.0, Some(3), 0);
    let mut recorder = Recorder::new(&desk);
    for call in [
        add("n", 1),
        add("n", 1).header("idempotency-key", "k"),
        add("n", 1).header("idempotency-key", "k"),
        split("n"),
        read("n"),
        store(&[point("m", 1, at, "1")]),
        list("m"),
        read_point("m", "1", at),
        Call::new("GET /v1/audit/expirations").staff("s1"),
        Call::new("GET /v1/sales/{country}").path("country", "CH").query("month", "2026-01").staff("s1"),
        put().header("if-none-match", "*").json(&place),
        put().header("if-match", "\"1\"").json(&place),
        Call::new("GET /v1/stores/{id}").path("id", "s").staff("s1"),
    ] {
        recorder.ok(call).await;
    }
    recorder.assert_recorded();
}
