//! Tests of POST /v1/customers/{id}/wallet/deposits.

use aws_sdk_dynamodb::types::AttributeValue;
use futures::future::join_all;
use key_schema::id::CustomerId;
use key_schema::instant::Instant;
use key_schema::wallet::MAX_BALANCE;
use serde_json::json;

use crate::bank::{Bank, balance_of, deposit, euros, transfer, usd};

#[tokio::test]
async fn the_first_deposit_opens_a_wallet_and_each_response_has_the_new_balance() {
    let bank = Bank::open(&["a+b #1"]).await;
    let first = bank.send(deposit("a+b #1", &json!({ "amount": euros(500), "note": "gift card" }), "k1")).await;
    assert_eq!((first.status, first.version()), (201, Some(1)), "{}", first.body);
    assert_eq!(first.header("location"), Some("/v1/customers/a%2Bb%20%231/wallet/entries"));
    let expected = json!({
        "id": first.body["id"], "amount": euros(500), "kind": "deposit", "note": "gift card", "at": first.body["at"],
        "balance": euros(500),
    });
    assert_eq!(first.body, expected);
    let second = bank.send(deposit("a+b #1", &json!({ "amount": euros(1) }), "k2")).await;
    assert_eq!(second.body["balance"], euros(501));
    assert_eq!(second.body.get("note"), None);
    let read = bank.send(balance_of("a+b #1").customer("a+b #1")).await;
    let wallet = json!({ "customer_id": "a+b #1", "balance": usd(0), "balances": [euros(501)], "version": 2 });
    assert_eq!((read.status, read.version(), read.body), (200, Some(2), wallet));
    assert_eq!(bank.balance_in("a+b #1", "EUR").await, 501);
}

/// A guest has orders, but no profile.
#[tokio::test]
async fn a_guest_gets_no_wallet() {
    let bank = Bank::open(&["a"]).await;
    bank.pay_in("a", &usd(10)).await;
    let guest = CustomerId::guest(&"gil@example.com".parse().unwrap());
    for to in [&guest, &CustomerId::guests()] {
        for call in [deposit(to.as_str(), &json!({ "amount": usd(1) }), "k"), transfer("a", to.as_str(), &usd(1), "k")]
        {
            assert_eq!(bank.refusal(call).await, (404, "account_not_found".to_owned()), "{to}");
        }
    }
    assert_eq!(bank.keys("WALLET#").await.into_iter().filter(|(pk, _)| pk != "WALLET#a").count(), 0);
    assert_eq!(bank.balance("a").await, 10);
}

#[tokio::test]
async fn a_balance_has_a_limit_in_each_currency() {
    let bank = Bank::open(&["a"]).await;
    bank.pay_in("a", &usd(1)).await;
    bank.set("WALLET#a", "WALLET", "USD", AttributeValue::N((MAX_BALANCE - 5).to_string())).await;
    let other = bank.send(deposit("a", &json!({ "amount": euros(6) }), "k")).await;
    assert_eq!((other.status, &other.body["balance"]), (201, &euros(6)), "{}", other.body);
    let beyond = bank.send(deposit("a", &json!({ "amount": usd(6) }), "k2")).await;
    assert_eq!((beyond.status, beyond.pointers()), (422, vec!["/amount/amount"]));
    // A refused request does not write the record of its key, so the key can be used again.
    let up_to_it = bank.send(deposit("a", &json!({ "amount": usd(5) }), "k2")).await;
    assert_eq!(up_to_it.body["balance"], usd(MAX_BALANCE));
}

#[tokio::test]
async fn a_repetition_gets_the_first_response_byte_for_byte_and_has_no_effect() {
    let bank = Bank::open(&["a"]).await;
    let call = deposit("a", &json!({ "amount": usd(500), "note": "once" }), "k");
    let first = bank.raw(&call).await;
    bank.pay_in("a", &usd(1)).await;
    let again = bank.raw(&call).await;
    assert_eq!((again.status_code, again.body), (first.status_code, first.body));
    for name in ["location", "etag", "content-type"] {
        assert_eq!(again.headers[name], first.headers[name]);
    }
    assert_eq!(
        (first.headers.get("idempotency-replayed"), again.headers["idempotency-replayed"].as_bytes()),
        (None, &b"true"[..])
    );
    let other = bank.send(deposit("a", &json!({ "amount": usd(501), "note": "once" }), "k")).await;
    assert_eq!((other.status, other.code()), (422, Some("idempotency_key_reused")));
    assert_eq!(bank.balance("a").await, 501);
    bank.delete_profile("a").await;
    assert_eq!(bank.raw(&call).await.status_code, 201, "a repetition is replayed after the erasure of the account");
}

#[tokio::test]
async fn concurrent_deposits_each_count_once_and_their_responses_have_exact_balances() {
    let bank = Bank::open(&["a"]).await;
    let calls =
        (0..30).map(|n| bank.settled(deposit("a", &json!({ "amount": usd(n % 10 + 1) }), &format!("k{}", n % 10))));
    let answers = join_all(calls).await;
    assert!(
        answers.iter().all(|answer| answer.status == 201),
        "{:?}",
        answers.iter().map(|a| &a.body).collect::<Vec<_>>()
    );
    let first = answers.iter().filter(|answer| answer.header("idempotency-replayed").is_none());
    let mut chain: Vec<(i64, i64)> = first
        .map(|answer| {
            (answer.body["balance"]["amount"].as_i64().unwrap(), answer.body["amount"]["amount"].as_i64().unwrap())
        })
        .collect();
    chain.sort_unstable();
    assert_eq!(chain.len(), 10);
    let mut before = 0;
    for (balance, amount) in chain {
        assert_eq!(balance - amount, before, "each balance follows from the previous one");
        before = balance;
    }
    assert_eq!(bank.balance("a").await, before);
    for key in 0..10 {
        let same: Vec<_> = answers.iter().skip(key).step_by(10).map(|answer| &answer.body).collect();
        assert!(same.iter().all(|body| *body == same[0]));
    }
}

#[tokio::test]
async fn a_key_is_valid_for_a_day_whether_or_not_its_record_was_removed() {
    let bank = Bank::open(&["a"]).await;
    let call = |amount| deposit("a", &json!({ "amount": usd(amount) }), "k");
    bank.send(call(1)).await;
    let expires_at = |at: Instant| {
        let at = AttributeValue::S(at.to_string());
        bank.set("IDEMPOTENCY#s1#k", "IDEMPOTENCY", "expires_at", at)
    };
    expires_at(Instant::now().plus_seconds(60)).await;
    assert_eq!(bank.send(call(2)).await.code(), Some("idempotency_key_reused"));
    expires_at(Instant::now()).await;
    let refused = bank.send(deposit("nobody", &json!({ "amount": usd(1) }), "k")).await;
    assert_eq!(refused.code(), Some("account_not_found"), "an expired record is not replayed");
    let anew = bank.send(call(2)).await;
    assert_eq!((anew.status, anew.header("idempotency-replayed"), &anew.body["balance"]), (201, None, &usd(3)));
    assert_eq!(bank.send(call(2)).await.body, anew.body, "the new record is replayed");
    assert_eq!(bank.balance("a").await, 3);
}
