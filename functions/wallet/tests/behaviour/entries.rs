//! Tests of GET /v1/customers/{id}/wallet and …/entries.

use serde_json::{Value, json};

use crate::bank::{Bank, balance_of, transfer, usd};

#[tokio::test]
async fn a_customer_without_a_wallet_has_a_balance_of_zero_and_a_missing_customer_gets_404() {
    let bank = Bank::open(&["a"]).await;
    let nothing = bank.send(balance_of("a").customer("a")).await;
    let wallet = json!({ "customer_id": "a", "balance": usd(0), "balances": [], "version": 0 });
    assert_eq!((nothing.status, nothing.header("etag"), &nothing.body), (200, None, &wallet));
    assert_eq!(bank.entries("a", 20).await, [Value::Null; 0]);
    for call in [balance_of("nobody").staff("s1"), balance_of("nobody").customer("nobody")] {
        let answer = bank.send(call).await;
        assert_eq!((answer.status, answer.code()), (404, Some("not_found")));
    }
    bank.pay_in("a", &usd(1)).await;
    bank.delete_profile("a").await;
    assert_eq!(bank.send(balance_of("a").staff("s1")).await.status, 404, "an erased customer's wallet is invisible");
}

#[tokio::test]
async fn each_movement_of_a_wallet_is_on_exactly_one_page_and_the_newest_is_first() {
    let bank = Bank::open(&["a", "b"]).await;
    for n in 1..=7 {
        bank.pay_in("a", &usd(n)).await;
    }
    bank.send(transfer("a", "b", &usd(20), "k")).await;
    let amounts = |entries: &[Value]| -> Vec<i64> {
        entries.iter().map(|entry| entry["amount"]["amount"].as_i64().unwrap()).collect()
    };
    let all = bank.entries("a", 100).await;
    assert_eq!(amounts(&all)[0], -20);
    let ids: Vec<&str> = all.iter().map(|entry| entry["id"].as_str().unwrap()).collect();
    assert!(ids.is_sorted_by(|newer, older| newer > older), "{ids:?}");
    assert_eq!(all.len(), 8);
    for limit in [1, 3, 8] {
        assert_eq!(bank.entries("a", limit).await, all);
    }
}
