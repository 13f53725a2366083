//! Tests that each route uses the access patterns that it declares.

use std::collections::BTreeSet;

use http_api::sample::Call;
use serde_json::json;

use crate::desk::{Desk, add, in_seconds, list, point, read, read_point, split, store};
use emulators::table::FaultKind;

#[tokio::test]
async fn every_route_uses_exactly_the_patterns_that_it_declares() {
    let desk = Desk::open().await;
    let (adds, splits, reads) =
        ("POST /v1/counters/{name}", "POST /v1/counters/{name}/split", "GET /v1/counters/{name}");
    let (stores, lists) = ("POST /v1/metrics", "GET /v1/metrics/{name}");
    let (points, at) = ("GET /v1/metrics/{name}/points/{id}", in_seconds(0));
    let (audit, sales) = ("GET /v1/audit/expirations", "GET /v1/sales/{country}");
    let (put, get) = ("PUT /v1/stores/{id}", "GET /v1/stores/{id}");
    let shop = |route| Call::new(route).path("id", "s").staff("s1");
    let place = json!({"country": "CH", "city": "Bern", "name": "Shop"});
    // Conflicts make the counter hot, so that the function splits it.
    desk.break_with(FaultKind::Conflict, 1.0, Some(3), 0);
    let calls = [
        (adds, add("n", 1)),
        (adds, add("n", 1).header("idempotency-key", "k")),
        (adds, add("n", 1).header("idempotency-key", "k")),
        (splits, split("n")),
        (reads, read("n")),
        (stores, store(&[point("m", 1, at, "1")])),
        (lists, list("m")),
        (points, read_point("m", "1", at)),
        (audit, Call::new(audit).staff("s1")),
        (sales, Call::new(sales).path("country", "CH").query("month", "2026-01").staff("s1")),
        (put, shop(put).header("if-none-match", "*").json(&place)),
        (put, shop(put).header("if-match", "\"1\"").json(&place)),
        (get, shop(get)),
    ];
    let mut used = BTreeSet::new();
    for (route, call) in calls {
        let answer = desk.send(call).await;
        assert!(answer.status < 300, "{route}: {}", answer.body);
        used.extend(desk.app.table.meter().take().iter().map(|cost| (route, cost.pattern.id)));
    }
    assert_eq!(used, insights::routes().patterns().map(|(route, pattern)| (route, pattern.id)).collect());
}
