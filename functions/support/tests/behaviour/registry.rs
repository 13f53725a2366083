//! Tests that the registry of access patterns lists the routes that use each pattern.

use std::collections::BTreeSet;

use key_schema::registry;

use crate::desk::{Desk, answer, ask, open, question, questions_of, support_of};

#[tokio::test]
async fn every_route_uses_exactly_the_patterns_that_the_registry_lists_for_it() {
    let desk = Desk::open(&["ann"]).await;
    let id = desk.asked("ann", "Ice").await;
    desk.requests();
    let (asking, answering) = ("POST /v1/customers/{id}/questions", "POST /v1/questions/{id}/answers");
    let calls = [
        (asking, ask("ann", "Ice").header("idempotency-key", "k1")),
        (asking, ask("ann", "Ice").header("idempotency-key", "k1")),
        (answering, answer(&id, "No.").header("idempotency-key", "k2")),
        (answering, answer(&id, "No.").header("idempotency-key", "k2")),
        ("GET /v1/customers/{id}/questions", questions_of("ann").staff("s1")),
        ("GET /v1/customers/{id}/support", support_of("ann").staff("s1")),
        ("GET /v1/questions", open().staff("s1")),
        ("GET /v1/questions/{id}", question(&id).staff("s1")),
    ];
    let mut used = BTreeSet::new();
    for (route, call) in calls {
        let answer = desk.send(call).await;
        assert!(answer.status < 300, "{route}: {}", answer.body);
        used.extend(desk.requests().into_keys().map(|pattern| (route, pattern)));
    }
    let routes: BTreeSet<&str> = support::routes().keys().collect();
    let listed = registry::all().flat_map(|pattern| pattern.used_by.iter().map(|route| (*route, pattern.id)));
    assert_eq!(used, listed.filter(|(route, _)| routes.contains(route)).collect());
}
