//! Tests of many concurrent movements.

use std::collections::BTreeMap;

use futures::future::join_all;
use http_api::sample::Answered;

use crate::bank::{Bank, transfer, usd};

const WALLETS: [&str; 4] = ["w0", "w1", "w2", "w3"];
const BEGINNING: i64 = 100;

async fn bank() -> Bank {
    let bank = Bank::open(&WALLETS).await;
    for wallet in WALLETS {
        bank.pay_in(wallet, &usd(BEGINNING)).await;
    }
    bank
}

/// Returns all balances, each checked against its entries.
async fn balances(bank: &Bank) -> Vec<i64> {
    join_all(WALLETS.iter().map(|wallet| bank.balance(wallet))).await
}

/// Returns the wallets of the `n`th transfer.
fn between(n: usize) -> (usize, usize) {
    let from = n % WALLETS.len();
    (from, (from + 1 + n / WALLETS.len() % (WALLETS.len() - 1)) % WALLETS.len())
}

#[tokio::test]
async fn fifty_concurrent_transfers_between_four_wallets_neither_lose_nor_create_money() {
    let bank = bank().await;
    // The amounts add up to over twice the money in the wallets, so some transfers are refused.
    let amount = |n: usize| i64::try_from(n % 7 * 5 + 5).unwrap();
    let calls = (0..50).map(|n| {
        let (from, to) = between(n);
        bank.settled(transfer(WALLETS[from], WALLETS[to], &usd(amount(n)), &format!("k{n}")))
    });
    let answers: Vec<Answered> = join_all(calls).await;
    let mut expected = vec![BEGINNING; WALLETS.len()];
    let mut outcomes = BTreeMap::<_, usize>::new();
    for (n, answer) in answers.iter().enumerate() {
        *outcomes.entry((answer.status, answer.code())).or_default() += 1;
        if answer.status == 201 {
            let (from, to) = between(n);
            expected[from] -= amount(n);
            expected[to] += amount(n);
        }
    }
    // A request is refused if the balance is too low, or if too many requests change one wallet.
    let known = [(201, None), (409, Some("insufficient_funds")), (503, Some("throttled"))];
    assert!(outcomes.keys().all(|outcome| known.contains(outcome)), "{outcomes:?}");
    assert!(outcomes[&(201, None)] > 20, "{outcomes:?}");
    let balances = balances(&bank).await;
    assert_eq!(balances, expected);
    assert_eq!(balances.iter().sum::<i64>(), BEGINNING * 4);
}

#[tokio::test]
async fn concurrent_transfers_of_the_last_money_spend_it_exactly_once() {
    let bank = bank().await;
    let calls = (0..30).map(|n| bank.settled(transfer("w0", WALLETS[n % 3 + 1], &usd(10), &format!("k{n}"))));
    let answers = join_all(calls).await;
    let paid = answers.iter().filter(|answer| answer.status == 201).count();
    let short = answers.iter().filter(|answer| answer.code() == Some("insufficient_funds")).count();
    assert_eq!((paid, short), (10, 20));
    assert_eq!(balances(&bank).await.iter().sum::<i64>(), BEGINNING * 4);
    assert_eq!(bank.balance("w0").await, 0);
}

#[tokio::test]
async fn a_transfer_sent_many_times_at_once_moves_money_once_and_has_one_response() {
    let bank = bank().await;
    for round in 0..5_i64 {
        let call = || bank.settled(transfer("w0", "w1", &usd(20), &format!("round {round}")));
        let answers = join_all((0..20).map(|_| call())).await;
        for answer in &answers {
            assert_eq!((answer.status, &answer.body), (201, &answers[0].body));
            assert_eq!(answer.header("location"), answers[0].header("location"));
        }
        let first = answers.iter().filter(|answer| answer.header("idempotency-replayed").is_none());
        assert_eq!(first.count(), 1);
        assert_eq!(bank.balance("w0").await, BEGINNING - 20 * (round + 1));
    }
    assert_eq!(bank.balance("w1").await, BEGINNING * 2);
}

#[tokio::test]
async fn concurrent_requests_with_one_key_and_two_different_bodies_move_the_money_of_only_one_body() {
    let bank = bank().await;
    for round in 0..5 {
        let key = format!("round {round}");
        let before = bank.balance("w0").await;
        let answers = join_all((0..10).map(|n| bank.send(transfer("w0", "w1", &usd(n % 2 + 1), &key)))).await;
        let amounts: Vec<i64> = answers
            .iter()
            .filter(|answer| answer.status == 201)
            .map(|answer| answer.body["amount"]["amount"].as_i64().unwrap())
            .collect();
        assert_eq!(amounts, [amounts[0]; 5]);
        let others = answers.iter().filter(|answer| answer.status != 201);
        assert!(others.into_iter().all(|answer| answer.code() == Some("idempotency_key_reused")));
        assert_eq!(bank.balance("w0").await, before - amounts[0]);
    }
}
