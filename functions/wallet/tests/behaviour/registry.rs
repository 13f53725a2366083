//! Tests that each route uses the access patterns that it declares.

use std::collections::BTreeSet;

use serde_json::json;

use crate::bank::{Bank, balance_of, deposit, entries_of, euros, transfer, usd};

#[tokio::test]
async fn every_route_uses_exactly_the_patterns_that_it_declares() {
    let bank = Bank::open(&["a", "b", "old", "older"]).await;
    for customer in ["old", "older"] {
        bank.open_in(customer, "EUR", 5).await;
    }
    let _ = bank.app.table.meter().take();
    let (read, list) = ("GET /v1/customers/{id}/wallet", "GET /v1/customers/{id}/wallet/entries");
    let (pay_in, give) = ("POST /v1/customers/{id}/wallet/deposits", "POST /v1/transfers");
    let calls = [
        (pay_in, deposit("a", &json!({ "amount": usd(5) }), "k1")),
        (pay_in, deposit("a", &json!({ "amount": usd(5) }), "k1")),
        (give, transfer("a", "b", &usd(2), "k2")),
        (give, transfer("a", "b", &usd(2), "k2")),
        (give, transfer("old", "b", &euros(2), "k3")),
        (pay_in, deposit("older", &json!({ "amount": usd(5) }), "k4")),
        (read, balance_of("a").staff("s1")),
        (list, entries_of("a").staff("s1")),
    ];
    let mut used = BTreeSet::new();
    for (route, call) in calls {
        let answer = bank.send(call).await;
        assert!(answer.status < 300, "{route}: {}", answer.body);
        used.extend(bank.app.table.meter().take().iter().map(|cost| (route, cost.pattern.id)));
    }
    assert_eq!(used, wallet::routes().patterns().map(|(route, pattern)| (route, pattern.id)).collect());
}
