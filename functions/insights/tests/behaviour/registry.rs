//! Tests that the registry of access patterns lists the routes that use each pattern.

use std::collections::BTreeSet;

use key_schema::registry;

use crate::desk::{Desk, add, in_seconds, list, point, read, split, store};
use emulators::table::FaultKind;

#[tokio::test]
async fn routes_of_metrics_and_counters_use_exactly_the_patterns_that_the_registry_lists_for_them() {
    let desk = Desk::open().await;
    let (adds, splits, reads) =
        ("POST /v1/counters/{name}", "POST /v1/counters/{name}/split", "GET /v1/counters/{name}");
    let (stores, lists) = ("POST /v1/metrics", "GET /v1/metrics/{name}");
    // Conflicts make the counter hot, so that the function splits it.
    desk.break_with(FaultKind::Conflict, 1.0, Some(3), 0);
    let calls = [
        (adds, add("n", 1)),
        (adds, add("n", 1).header("idempotency-key", "k")),
        (adds, add("n", 1).header("idempotency-key", "k")),
        (splits, split("n")),
        (reads, read("n")),
        (stores, store(&[point("m", 1, in_seconds(0), "1")])),
        (lists, list("m")),
    ];
    let mut used = BTreeSet::new();
    for (route, call) in calls {
        desk.done(call).await;
        used.extend(desk.app.table.meter().take().iter().map(|cost| (route, cost.pattern.id)));
    }
    let listed = registry::all().flat_map(|pattern| pattern.used_by.iter().map(|route| (*route, pattern.id)));
    assert_eq!(used, listed.filter(|(route, _)| [adds, splits, reads, stores, lists].contains(route)).collect());
}
