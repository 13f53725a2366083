//! Tests of the rounds, which continue what others began.

use std::time::Duration;

use fixture::seed::usd;
use key_schema::instant::Instant;
use key_schema::payment::{CaptureMode, OperationKind, OperationState, PaymentStatus};
use payments::{Capture, Provider as _};

use crate::support::{TOTAL, Till, notified};

const DAY_SECONDS: i64 = 24 * 60 * 60;

#[tokio::test]
async fn a_round_sends_an_abandoned_operation_with_its_key_and_leaves_a_young_one() {
    let till = Till::open().await;
    let now = Instant::now();
    let (abandoned, _) = till.order(1, CaptureMode::AtOnce, now.plus_seconds(-60)).await;
    let (answered, _) = till.order(2, CaptureMode::AtOnce, now.plus_seconds(-45)).await;
    let (young, _) = till.order(3, CaptureMode::AtOnce, now.plus_seconds(-10)).await;
    // The call of the second operation had its effect before its worker stopped.
    let key = till.read(&answered).await.operations[0].id.clone();
    let made = till.stripe.create(&answered, usd(TOTAL), Capture::AtOnce, key.as_str()).await.unwrap();
    let round = till.run_round(now).await;
    assert_eq!((round.found, round.failed, round.oldest, round.expiring), (2, 0, Duration::from_secs(60), 0));
    let accounts = till.server.accounts();
    assert_eq!(accounts.len(), 2, "no operation has two effects");
    for (id, intent) in [(&abandoned, None), (&answered, Some(made.id))] {
        let order = till.read(id).await;
        let (payment, operation) = (&order.payments[0], &order.operations[0]);
        assert_eq!((payment.status, operation.state), (PaymentStatus::Pending, OperationState::Done));
        assert!(intent.is_none() || payment.intent == intent);
        let account = till.server.account(payment.intent.as_deref().unwrap()).unwrap();
        assert_eq!(account.metadata["operation"], operation.id.as_str());
    }
    assert_eq!(till.read(&young).await.operations[0].state, OperationState::Sending);
    // The young operation is not lost.
    assert_eq!(till.run_round(now.plus_seconds(60)).await.found, 1);
    assert_eq!(till.read(&young).await.operations[0].state, OperationState::Done);
    assert_eq!(till.run_round(now.plus_seconds(120)).await.found, 0);
}

#[tokio::test]
async fn a_round_during_an_outage_leaves_the_operation_to_the_next_one() {
    let till = Till::open().await;
    let now = Instant::now();
    let (id, intent) = till.confirmed(1, CaptureMode::AtOnce).await;
    assert!(till.take(&[notified("m1", &intent, Some(&id))]).await.is_empty());
    let payment = till.read(&id).await.payments[0].id.clone();
    let at = now.plus_seconds(-40);
    let begin = |ledger: &mut key_schema::payment::Ledger<'_>| {
        ledger.begin(&payment, OperationKind::Refund, 300, "staff", None, Vec::new())
    };
    let refund = till.change(&id, at, begin).await;
    till.fail();
    let round = till.run_round(now).await;
    assert_eq!((round.found, round.failed), (1, 1));
    assert!(till.operation(&id, &refund).await.state.is_unsettled());
    till.recover();
    let round = till.run_round(now).await;
    assert_eq!((round.found, round.failed), (1, 0));
    assert_eq!(till.operation(&id, &refund).await.state, OperationState::Done);
    assert_eq!(till.server.account(&intent).unwrap().refunded, 300);
    assert_eq!(till.read(&id).await.head.refunded, 300);
}

#[tokio::test]
async fn a_round_counts_the_authorisations_that_expire_within_a_day() {
    let till = Till::open().await;
    let now = Instant::now();
    for (number, capture) in [(1, CaptureMode::AtShipping), (2, CaptureMode::AtShipping), (3, CaptureMode::AtOnce)] {
        let (id, intent) = till.confirmed(number, capture).await;
        assert!(till.take(&[notified("m1", &intent, Some(&id))]).await.is_empty());
    }
    // The provider keeps an authorisation for seven days.
    assert_eq!(till.run_round(now).await.expiring, 0);
    assert_eq!(till.run_round(now.plus_seconds(6 * DAY_SECONDS - 60)).await.expiring, 0);
    assert_eq!(till.run_round(now.plus_seconds(6 * DAY_SECONDS + 600)).await.expiring, 2);
    // A captured payment no longer expires.
    let id = crate::support::order(1);
    let payment = till.read(&id).await.payments[0].id.clone();
    let begin = |ledger: &mut key_schema::payment::Ledger<'_>| {
        ledger.begin(&payment, OperationKind::Capture, TOTAL, "staff", None, Vec::new())
    };
    till.change(&id, now, begin).await;
    let round = till.run_round(now.plus_seconds(6 * DAY_SECONDS + 600)).await;
    assert_eq!((round.found, round.failed, round.expiring), (1, 0, 1));
}
