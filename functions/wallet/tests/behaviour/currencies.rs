//! Tests of wallets with several currencies.

use futures::future::join_all;
use key_schema::money::LISTED;
use serde_json::json;

use crate::bank::{Bank, balance_of, euros, transfer, usd};

#[tokio::test]
async fn a_balance_in_another_currency_does_not_affect_deposits_and_transfers_in_the_shops_currency() {
    let bank = Bank::open(&["victim", "rich", "stranger"]).await;
    bank.pay_in("stranger", &euros(2)).await;
    let unopened = bank.send(balance_of("victim").customer("victim")).await;
    let nothing = json!({ "customer_id": "victim", "balance": usd(0), "balances": [], "version": 0 });
    assert_eq!((unopened.version(), unopened.body), (None, nothing));
    assert_eq!(
        bank.send(transfer("stranger", "victim", &euros(1), "k1")).await.status,
        201,
        "the transfer opens the wallet"
    );
    assert_eq!(bank.balance_in("victim", "EUR").await, 1);
    bank.pay_in("victim", &usd(10)).await;
    bank.pay_in("rich", &usd(5)).await;
    assert_eq!(bank.send(transfer("rich", "victim", &usd(5), "k2")).await.status, 201);
    assert_eq!(bank.send(transfer("victim", "rich", &usd(12), "k3")).await.status, 201);
    let read = bank.send(balance_of("victim").customer("victim")).await;
    assert_eq!((&read.body["balance"], &read.body["balances"]), (&usd(3), &json!([euros(1), usd(3)])));
    assert_eq!((bank.balance("victim").await, bank.balance("rich").await), (3, 12));
    // A transfer adds another currency to a wallet that has dollars.
    assert_eq!(bank.send(transfer("stranger", "rich", &euros(1), "k4")).await.status, 201);
    assert_eq!(bank.balance_in("stranger", "EUR").await, 0, "a balance of zero is not shown");
    assert_eq!((bank.balance("rich").await, bank.balance_in("rich", "EUR").await), (12, 1));
}

#[tokio::test]
async fn money_leaves_only_the_balance_in_its_currency() {
    let bank = Bank::open(&["a", "b"]).await;
    bank.pay_in("a", &usd(100)).await;
    bank.pay_in("a", &euros(3)).await;
    for amount in [euros(4), json!({ "amount": 1, "currency": "CHF" }), usd(101)] {
        let answer = bank.send(transfer("a", "b", &amount, "k")).await;
        assert_eq!((answer.status, answer.code()), (409, Some("insufficient_funds")), "{amount}");
    }
    let unlisted = bank.send(transfer("a", "b", &json!({ "amount": 1, "currency": "AAA" }), "k")).await;
    assert_eq!((unlisted.status, unlisted.pointers()), (422, vec!["/amount/currency"]));
    assert_eq!((bank.balance("a").await, bank.balance_in("a", "EUR").await), (100, 3));
    assert_eq!(bank.send(transfer("a", "b", &euros(3), "k")).await.status, 201);
    assert_eq!((bank.balance("a").await, bank.balance_in("b", "EUR").await), (100, 3));
}

/// Transfers in two currencies run concurrently, in both directions between two wallets. The sum in
/// each currency stays the same.
#[tokio::test]
async fn concurrent_transfers_neither_lose_nor_create_money_in_either_of_two_currencies() {
    let bank = Bank::open(&["a", "b"]).await;
    for customer in ["a", "b"] {
        bank.pay_in(customer, &usd(40)).await;
        bank.pay_in(customer, &euros(30)).await;
    }
    let calls = (0..40).map(|n| {
        let (from, to) = if n % 4 < 2 { ("a", "b") } else { ("b", "a") };
        let amount = if n % 2 == 0 { usd(n % 7 + 5) } else { euros(n % 5 + 5) };
        let bank = &bank;
        async move {
            let answer = bank.settled(transfer(from, to, &amount, &format!("k{n}"))).await;
            let moved = if answer.status == 201 { amount["amount"].as_i64().unwrap() } else { 0 };
            assert!(
                matches!(answer.status, 201 | 503) || answer.code() == Some("insufficient_funds"),
                "{}",
                answer.body
            );
            (amount["currency"] == "EUR", if from == "a" { -moved } else { moved })
        }
    });
    let moved = join_all(calls).await;
    let sum =
        |in_euros: bool| moved.iter().filter(|(euros, _)| *euros == in_euros).map(|(_, amount)| amount).sum::<i64>();
    assert_eq!((bank.balance("a").await, bank.balance("b").await), (40 + sum(false), 40 - sum(false)));
    let in_euros = (bank.balance_in("a", "EUR").await, bank.balance_in("b", "EUR").await);
    assert_eq!(in_euros, (30 + sum(true), 30 - sum(true)));
}

#[tokio::test]
async fn a_wallet_with_money_in_every_currency_can_still_pay() {
    let bank = Bank::open(&["victim", "other"]).await;
    for code in LISTED.split_ascii_whitespace() {
        bank.pay_in("victim", &json!({ "amount": 1, "currency": code })).await;
    }
    let read = bank.send(balance_of("victim").customer("victim")).await;
    assert_eq!((read.body["balances"].as_array().unwrap().len(), &read.body["balance"]), (181, &usd(1)));
    assert_eq!(bank.send(transfer("victim", "other", &usd(1), "k")).await.status, 201);
    assert_eq!((bank.balance("victim").await, bank.balance("other").await), (0, 1));
}
