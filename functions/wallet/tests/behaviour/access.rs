//! Tests of the permissions to see wallets and to move money.

use http_api::sample::Call;
use serde_json::json;

use crate::bank::{Bank, balance_of, entries_of, usd};

fn keyed(route: &'static str) -> Call {
    Call::new(route).path("id", "a").header("idempotency-key", "k")
}

fn pay_in() -> Call {
    keyed("POST /v1/customers/{id}/wallet/deposits").json(&json!({ "amount": usd(5) }))
}

fn give() -> Call {
    keyed("POST /v1/transfers").json(&json!({ "from": "a", "to": "b", "amount": usd(5) }))
}

#[tokio::test]
async fn only_the_owner_and_staff_see_a_wallet_and_strangers_get_404() {
    let bank = Bank::open(&["a", "b"]).await;
    bank.pay_in("a", &usd(100)).await;
    for call in [balance_of("a"), entries_of("a")] {
        assert_eq!(bank.send(call.clone()).await.status, 401);
        for stranger in ["b", "nobody"] {
            let answer = bank.send(call.clone().customer(stranger)).await;
            assert_eq!((answer.status, answer.code()), (404, Some("not_found")));
        }
        assert_eq!(bank.send(call.clone().customer("a")).await.status, 200);
        assert_eq!(bank.send(call.staff("s1")).await.status, 200);
    }
}

#[tokio::test]
async fn only_staff_pays_in() {
    let bank = Bank::open(&["a", "b"]).await;
    assert_eq!(bank.send(pay_in()).await.status, 401);
    for customer in ["a", "b"] {
        assert_eq!(bank.send(pay_in().customer(customer)).await.code(), Some("forbidden"));
    }
    assert_eq!(bank.balance("a").await, 0);
    assert_eq!(bank.send(pay_in().staff("s1")).await.status, 201);
}

#[tokio::test]
async fn only_the_payer_and_staff_can_transfer() {
    let bank = Bank::open(&["a", "b", "c"]).await;
    bank.pay_in("a", &usd(10)).await;
    assert_eq!(bank.send(give()).await.status, 401);
    for stranger in ["b", "c", "nobody"] {
        let answer = bank.send(give().customer(stranger)).await;
        assert_eq!((answer.status, answer.code()), (404, Some("not_found")));
    }
    assert_eq!(bank.balance("a").await, 10);
    assert_eq!(bank.send(give().customer("a")).await.status, 201);
    assert_eq!(bank.send(give().staff("s1")).await.status, 201);
    assert_eq!((bank.balance("a").await, bank.balance("b").await), (0, 10));
}
