//! Tests of POST /v1/transfers.

use aws_sdk_dynamodb::types::AttributeValue;
use http_api::sample::Call;
use key_schema::id::CustomerId;
use key_schema::quota::Quota;
use key_schema::wallet::MAX_BALANCE;
use serde_json::{Value, json};

use crate::bank::{Bank, balance_of, transfer, usd};

#[tokio::test]
async fn a_transfer_moves_money_between_wallets_and_both_entries_have_its_note() {
    let bank = Bank::open(&["a", "b #2"]).await;
    bank.pay_in("a", &usd(500)).await;
    let call = json!({ "from": "a", "to": "b #2", "amount": usd(200), "note": "for the ice" });
    let call = Call::new("POST /v1/transfers").header("idempotency-key", "k").json(&call).customer("a");
    let answer = bank.send(call).await;
    assert_eq!((answer.status, answer.version()), (201, Some(1)), "{}", answer.body);
    assert_eq!(answer.header("location"), Some("/v1/customers/a/wallet/entries"));
    let (id, at) = (&answer.body["id"], &answer.body["at"]);
    let transfer = json!({ "id": id, "from": "a", "to": "b #2", "amount": usd(200), "note": "for the ice", "at": at });
    assert_eq!(answer.body, transfer);
    assert_eq!((bank.balance("a").await, bank.balance("b #2").await), (300, 200));
    let entry = |amount, counterparty| {
        json!({
            "id": id, "amount": amount, "kind": "transfer", "counterparty": counterparty, "note": "for the ice",
            "at": at,
        })
    };
    assert_eq!(bank.entries("a", 1).await[0], entry(usd(-200), "b #2"));
    assert_eq!(bank.entries("b #2", 1).await, [entry(usd(200), "a")]);
}

#[tokio::test]
async fn a_transfer_may_empty_a_wallet_but_not_overdraw_it() {
    let bank = Bank::open(&["a", "b", "c"]).await;
    bank.pay_in("a", &usd(500)).await;
    let more = bank.send(transfer("a", "b", &usd(501), "k")).await;
    assert_eq!((more.status, more.code()), (409, Some("insufficient_funds")));
    assert_eq!((bank.balance("a").await, bank.balance("b").await), (500, 0));
    assert_eq!(
        bank.send(transfer("a", "b", &usd(500), "k")).await.status,
        201,
        "a refused request does not use up its key"
    );
    assert_eq!((bank.balance("a").await, bank.balance("b").await), (0, 500));
    for from in ["a", "c"] {
        let empty = bank.send(transfer(from, "b", &usd(1), "k2")).await;
        assert_eq!((empty.status, empty.code()), (409, Some("insufficient_funds")), "the wallet of {from} is empty");
    }
}

#[tokio::test]
async fn a_missing_account_is_reported_before_a_low_balance() {
    let bank = Bank::open(&["a", "gone"]).await;
    bank.pay_in("a", &usd(10)).await;
    bank.pay_in("gone", &usd(10)).await;
    bank.delete_profile("gone").await;
    for (from, to, amount, pointers) in [
        ("a", "nobody", 5, vec!["/to"]),
        ("a", "nobody", 50, vec!["/to"]),
        ("nobody", "a", 5, vec!["/from"]),
        ("nobody", "noone", 5, vec!["/from", "/to"]),
        ("gone", "a", 5, vec!["/from"]),
        ("a", "gone", 5, vec!["/to"]),
    ] {
        let answer = bank.send(transfer(from, to, &usd(amount), "k")).await;
        assert_eq!((answer.status, answer.code()), (404, Some("account_not_found")), "{from} to {to}");
        assert_eq!(answer.pointers(), pointers, "{from} to {to}");
    }
    assert_eq!(bank.balance("a").await, 10);
}

#[tokio::test]
async fn a_transfer_may_fill_a_wallet_but_not_exceed_its_limit() {
    let bank = Bank::open(&["a", "b"]).await;
    for customer in ["a", "b"] {
        bank.pay_in(customer, &usd(100)).await;
    }
    bank.set("WALLET#b", "WALLET", "USD", AttributeValue::N((MAX_BALANCE - 5).to_string())).await;
    let beyond = bank.send(transfer("a", "b", &usd(6), "k")).await;
    assert_eq!((beyond.status, beyond.code()), (422, Some("invalid_body")));
    assert_eq!(beyond.pointers(), ["/amount/amount"]);
    assert_eq!(bank.balance("a").await, 100);
    assert_eq!(bank.send(transfer("a", "b", &usd(5), "k")).await.status, 201);
    let full = bank.send(balance_of("b").customer("b")).await;
    assert_eq!(full.body["balance"], usd(MAX_BALANCE));
}

#[tokio::test]
async fn no_wallet_transfers_to_itself() {
    let bank = Bank::open(&["a"]).await;
    let answer = bank.send(transfer("a", "a", &usd(1), "k")).await;
    assert_eq!((answer.status, answer.code(), answer.pointers()), (422, Some("invalid_body"), vec!["/to"]));
}

#[tokio::test]
async fn a_repetition_gets_the_first_response_byte_for_byte_and_moves_no_money() {
    let bank = Bank::open(&["a", "b"]).await;
    bank.pay_in("a", &usd(500)).await;
    let call = transfer("a", "b", &usd(500), "k");
    let first = bank.raw(&call).await;
    assert_eq!(first.status_code, 201);
    let again = bank.raw(&call).await;
    assert_eq!(
        (again.status_code, &again.body),
        (201, &first.body),
        "a repetition is replayed although the wallet is empty"
    );
    for name in ["location", "etag", "content-type"] {
        assert_eq!(again.headers[name], first.headers[name]);
    }
    assert_eq!(
        (first.headers.get("idempotency-replayed"), again.headers["idempotency-replayed"].as_bytes()),
        (None, &b"true"[..])
    );
    for other in [transfer("a", "b", &usd(499), "k"), transfer("a", "nobody", &usd(500), "k")] {
        let other = bank.send(other).await;
        assert_eq!((other.status, other.code()), (422, Some("idempotency_key_reused")));
    }
    assert_eq!((bank.balance("a").await, bank.balance("b").await), (0, 500));
    // Keys are separate for each caller, so staff can use the same key.
    let staffs = json!({ "from": "b", "to": "a", "amount": usd(500) });
    let staffs = Call::new("POST /v1/transfers").header("idempotency-key", "k").json(&staffs).staff("a-colleague");
    assert_eq!(bank.send(staffs).await.status, 201);
    bank.delete_profile("b").await;
    assert_eq!(bank.raw(&call).await.body, first.body, "a repetition is replayed after the erasure of the payee");
    assert_eq!(bank.balance("a").await, 500);
}

#[tokio::test]
async fn a_customer_makes_only_so_many_transfers_a_day() {
    let bank = Bank::open(&["a", "b"]).await;
    bank.pay_in("a", &usd(500)).await;
    bank.use_up(&CustomerId::new("a").unwrap(), Quota::Transfers, 1).await;
    assert_eq!(bank.send(transfer("a", "b", &usd(1), "k1")).await.status, 201);
    let refused = bank.send(transfer("a", "b", &usd(1), "k2")).await;
    assert_eq!((refused.status, refused.code()), (429, Some("quota_exceeded")), "{}", refused.body);
    assert_eq!(bank.send(transfer("a", "b", &usd(1), "k1")).await.status, 201, "a repeated request");
    assert_eq!((bank.balance("a").await, bank.balance("b").await), (499, 1));
    let staffs = json!({ "from": "a", "to": "b", "amount": usd(1) });
    let staffs = Call::new("POST /v1/transfers").header("idempotency-key", "k3").json(&staffs).staff("s1");
    assert_eq!(bank.send(staffs).await.status, 201, "staff have no quota");
}

#[tokio::test]
async fn a_note_has_no_invisible_characters() {
    let bank = Bank::open(&["a", "b"]).await;
    bank.pay_in("a", &usd(500)).await;
    let call = json!({ "from": "a", "to": "b", "amount": usd(1), "note": "\u{202E}for\u{200B} ice" });
    let call = Call::new("POST /v1/transfers").header("idempotency-key", "k").json(&call).customer("a");
    assert_eq!(bank.send(call).await.body["note"], "for ice");
}

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
