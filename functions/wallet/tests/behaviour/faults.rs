//! Tests of movements while the table fails: a request that the client repeats takes effect once.

use emulators::table::FaultKind;
use futures::future::join_all;
use http_api::sample::Call;
use serde_json::json;

use crate::bank::{Bank, deposit, transfer, usd};

#[tokio::test]
async fn faults_of_the_table_neither_lose_nor_double_a_movement() {
    let kinds = [FaultKind::Conflict, FaultKind::Throttle, FaultKind::Error, FaultKind::Reset];
    for (seed, kind) in (0..).zip(kinds) {
        let bank = Bank::open(&["a", "b"]).await;
        bank.pay_in("a", &usd(1000)).await;
        bank.break_with(kind, 0.4, None, seed);
        let calls: Vec<Call> = (0..12)
            .map(|n| match n % 3 {
                0 => deposit("b", &json!({ "amount": usd(7) }), &format!("k{n}")),
                _ => transfer("a", "b", &usd(10), &format!("k{n}")),
            })
            .collect();
        let answers = join_all(calls.iter().map(|call| bank.settled(call.clone()))).await;
        assert!(bank.clear_faults() > 0, "{kind:?}");
        assert!(answers.iter().all(|answer| answer.status == 201), "{kind:?}");
        assert_eq!((bank.balance("a").await, bank.balance("b").await), (920, 108), "{kind:?}");
        for (call, answer) in calls.into_iter().zip(answers) {
            let again = bank.send(call).await;
            let replayed = again.header("idempotency-replayed").is_some();
            assert_eq!((replayed, again.body), (true, answer.body), "{kind:?}");
        }
    }
}

/// The table executes the transaction, but its response is lost. The SDK sends the transaction
/// again. DynamoDB recognises it by the client request token.
#[tokio::test]
async fn a_transfer_takes_effect_once_although_the_tables_response_is_lost() {
    let bank = Bank::open(&["a", "b"]).await;
    bank.pay_in("a", &usd(100)).await;
    bank.break_with(FaultKind::Timeout, 1.0, Some(1), 0);
    let answer = bank.send(transfer("a", "b", &usd(100), "k")).await;
    assert_eq!((bank.clear_faults(), answer.status), (1, 201), "{}", answer.body);
    assert_eq!(answer.header("idempotency-replayed"), None);
    assert_eq!((bank.balance("a").await, bank.balance("b").await), (0, 100));
    assert_eq!(bank.send(transfer("a", "b", &usd(100), "k")).await.body, answer.body);
}

#[tokio::test]
async fn a_transfer_that_always_conflicts_gets_503_and_moves_no_money() {
    let bank = Bank::open(&["a", "b"]).await;
    bank.pay_in("a", &usd(100)).await;
    bank.break_with(FaultKind::Conflict, 1.0, None, 0);
    let calls = [transfer("a", "b", &usd(1), "k1"), deposit("b", &json!({ "amount": usd(1) }), "k2")];
    let answers = join_all(calls.iter().map(|call| bank.send(call.clone()))).await;
    bank.clear_faults();
    for answer in answers {
        assert_eq!((answer.status, answer.code()), (503, Some("throttled")));
        // The thirty attempts of a request take about ten seconds, so a client should wait as long.
        let pause: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((2..=30).contains(&pause), "{pause}");
    }
    assert_eq!((bank.balance("a").await, bank.balance("b").await), (100, 0));
    for call in calls {
        assert_eq!(bank.send(call).await.status, 201, "a refused request does not use up its key");
    }
}
