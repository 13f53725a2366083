//! Tests that each route uses the access patterns that it declares.

use std::collections::BTreeSet;

use crate::desk::{Desk, answer, ask, open, question, questions_of, support_of};

#[tokio::test]
async fn every_route_uses_exactly_the_patterns_that_it_declares() {
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
    assert_eq!(used, support::routes().patterns().map(|(route, pattern)| (route, pattern.id)).collect());
}
