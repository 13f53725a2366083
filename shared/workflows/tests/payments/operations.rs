//! What becomes of an operation whose worker stops, or whose call has no response.

use fixture::crash_after;
use key_schema::id::{OperationId, OrderId, PaymentId};
use key_schema::instant::Instant;
use key_schema::order::OrderStatus;
use key_schema::payment::{CaptureMode, OperationKind, OperationState, PaymentStatus};
use payments::{Capture, PaymentError};

use crate::bank::{Call, Fault};
use crate::shop::{Shop, euros};

const DAY_SECONDS: i64 = 24 * 60 * 60;

fn old() -> Instant {
    Instant::now().plus_seconds(-DAY_SECONDS - 60)
}

/// Begins an operation of each kind, at the instant that the test chooses.
async fn begun(shop: &Shop, number: u8, kind: OperationKind, at: Instant) -> (OrderId, PaymentId, OperationId, Call) {
    let id = shop.order(number, 1000).await;
    let capture = if kind == OperationKind::Refund { CaptureMode::AtOnce } else { CaptureMode::AtShipping };
    if kind == OperationKind::Create {
        let payment = shop.pay_at(&id, 1000, capture, at).await.unwrap();
        let operation = shop.read(&id).await.operations[0].id.clone();
        return (id.clone(), payment, operation, Call::Create(id, euros(1000), Capture::Later));
    }
    let payment = shop.paid(&id, 400, capture).await;
    let intent = shop.intent(&id, &payment).await;
    let (amount, call) = match kind {
        OperationKind::Capture => (300, Call::Capture(intent, 300)),
        OperationKind::Cancel => (0, Call::Cancel(intent)),
        _ => (300, Call::Refund(intent, 300)),
    };
    let operation = shop.staff_at(&id, &payment, kind, amount, at).await.unwrap();
    (id, payment, operation, call)
}

const KINDS: [OperationKind; 4] =
    [OperationKind::Create, OperationKind::Capture, OperationKind::Cancel, OperationKind::Refund];

fn sent(shop: &Shop, operation: &OperationId) -> Vec<Call> {
    let calls = shop.bank.calls().into_iter();
    calls.filter(|(_, key)| key == operation.as_str()).map(|(call, _)| call).collect()
}

#[tokio::test]
async fn an_operation_whose_worker_stopped_before_the_call_is_sent_with_its_id_as_key() {
    let shop = Shop::open().await;
    for (number, kind) in (1..).zip(KINDS) {
        let (id, _, operation, call) = begun(&shop, number, kind, Instant::now()).await;
        assert!(sent(&shop, &operation).is_empty());
        assert_eq!(shop.settle(&id, None).await, None);
        assert_eq!(sent(&shop, &operation), [call], "{kind:?}");
        assert_eq!(shop.operation(&id, &operation).await.state, OperationState::Done);
        shop.check(&id, 0).await;
        assert_eq!(sent(&shop, &operation).len(), 1, "{kind:?} is not sent again");
    }
}

#[tokio::test]
async fn a_worker_that_stops_at_any_wait_leaves_one_effect() {
    let shop = Shop::open().await;
    let (mut number, mut repeated) = (0, 0);
    for kind in KINDS {
        for waits in 0..60 {
            number += 1;
            let (id, _, operation, _) = begun(&shop, number, kind, Instant::now()).await;
            let table = shop.table();
            let done = crash_after(waits * 2, shop.try_settle(&table, &id, None)).await;
            shop.settle(&id, None).await;
            repeated += usize::from(sent(&shop, &operation).len() > 1);
            assert_eq!(shop.operation(&id, &operation).await.state, OperationState::Done, "{kind:?}, {waits}");
            shop.check(&id, 0).await;
            if done.is_some() {
                break;
            }
        }
    }
    assert!(repeated > 0, "no worker stopped between its call and the record");
}

#[tokio::test]
async fn a_lost_response_is_unknown_until_the_repeated_call_tells_the_result() {
    let shop = Shop::open().await;
    for (number, (kind, fault)) in (1..).zip(
        KINDS
            .into_iter()
            .flat_map(|kind| [Fault::NotSent, Fault::Lost, Fault::LostResponse].map(|fault| (kind, fault))),
    ) {
        let (id, _, operation, _) = begun(&shop, number, kind, Instant::now()).await;
        shop.bank.fault(fault);
        let error = shop.settle(&id, None).await;
        let state = shop.operation(&id, &operation).await.state;
        if fault == Fault::NotSent {
            assert_eq!((error, state), (Some(PaymentError::NotSent("down".to_owned())), OperationState::Sending));
        } else {
            assert!(matches!(error, Some(PaymentError::Unknown(_))), "{error:?}");
            assert_eq!(state, OperationState::Unknown);
        }
        assert_eq!(shop.settle(&id, None).await, None);
        assert_eq!(shop.operation(&id, &operation).await.state, OperationState::Done);
        shop.check(&id, 0).await;
    }
}

/// The provider forgets a key after a day, so the same call could have a second effect.
#[tokio::test]
async fn an_operation_of_yesterday_is_looked_up_and_not_sent() {
    let shop = Shop::open().await;
    for (number, (kind, is_found)) in (1..).zip(KINDS.into_iter().flat_map(|kind| [(kind, false), (kind, true)])) {
        let (id, payment, operation, call) = begun(&shop, number, kind, old()).await;
        if is_found {
            shop.bank.with(|books| books.call(call, operation.as_str()).unwrap());
        }
        assert_eq!(shop.settle(&id, None).await, None);
        assert!(sent(&shop, &operation).is_empty(), "{kind:?} was sent");
        let found = shop.operation(&id, &operation).await;
        let payment = shop.payment(&id, &payment).await;
        let after =
            (payment.status, payment.captured, payment.refunded, payment.captured_pending + payment.refunded_pending);
        if is_found {
            assert_eq!((found.state, found.declined), (OperationState::Done, None), "{kind:?}");
            let expected = match kind {
                OperationKind::Create => (PaymentStatus::Pending, 0, 0, 0),
                OperationKind::Capture => (PaymentStatus::Captured, 300, 0, 0),
                OperationKind::Cancel => (PaymentStatus::Cancelled, 0, 0, 0),
                OperationKind::Refund => (PaymentStatus::Captured, 400, 300, 0),
            };
            assert_eq!(after, expected, "{kind:?}");
        } else {
            let declined = Some("unsent".to_owned());
            assert_eq!((found.state, found.declined), (OperationState::Refused, declined), "{kind:?}");
            let expected = match kind {
                OperationKind::Create => (PaymentStatus::Failed, 0, 0, 0),
                OperationKind::Refund => (PaymentStatus::Captured, 400, 0, 0),
                _ => (PaymentStatus::Authorised, 0, 0, 0),
            };
            assert_eq!(after, expected, "{kind:?}");
        }
        shop.check(&id, 0).await;
    }
}

/// The provider accepts a refund, and the customer's bank refuses it days later.
#[tokio::test]
async fn a_refund_that_the_provider_fails_later_is_revoked() {
    let shop = Shop::open().await;
    let id = shop.order(1, 1000).await;
    let payment = shop.paid(&id, 1000, CaptureMode::AtOnce).await;
    let intent = shop.intent(&id, &payment).await;
    let kept = shop.staff(&id, &payment, OperationKind::Refund, 100).await;
    let failed = shop.staff(&id, &payment, OperationKind::Refund, 300).await;
    shop.settle(&id, None).await;
    assert_eq!(shop.read(&id).await.head.refunded, 400);
    shop.bank.with(|books| books.fail_refund(failed.as_str()));
    shop.settle(&id, Some(&intent)).await;
    // A repeated webhook does not revoke it twice.
    shop.settle(&id, Some(&intent)).await;
    let operation = shop.operation(&id, &failed).await;
    assert_eq!((operation.state, operation.declined.as_deref()), (OperationState::Refused, Some("refund_failed")));
    assert_eq!(shop.operation(&id, &kept).await.state, OperationState::Done);
    let order = shop.check(&id, 100).await;
    assert_eq!((order.head.refunded, order.payments[0].refunded, order.payments[0].refundable()), (100, 100, 900));
    assert_eq!(order.head.status, OrderStatus::Paid);
}

/// The response of a refund is lost, and the refund fails before the call is repeated. The repeated
/// call gets the first response, which says that the refund is done.
#[tokio::test]
async fn a_refund_that_fails_before_its_call_is_repeated_is_revoked() {
    let shop = Shop::open().await;
    let id = shop.order(1, 1000).await;
    let payment = shop.paid(&id, 1000, CaptureMode::AtOnce).await;
    let intent = shop.intent(&id, &payment).await;
    let refund = shop.staff(&id, &payment, OperationKind::Refund, 300).await;
    shop.bank.fault(Fault::LostResponse);
    assert!(shop.settle(&id, None).await.is_some());
    shop.bank.with(|books| books.fail_refund(refund.as_str()));
    assert_eq!(shop.settle(&id, Some(&intent)).await, None);
    assert_eq!(shop.operation(&id, &refund).await.state, OperationState::Refused);
    assert_eq!(shop.check(&id, 0).await.head.refunded, 0);
}

/// The provider takes no calls for more than a day after an order lapsed.
#[tokio::test]
async fn the_money_of_an_ended_order_goes_back_after_an_outage_of_a_day() {
    let shop = Shop::open().await;
    for (number, capture) in [(1, CaptureMode::AtOnce), (2, CaptureMode::AtShipping)] {
        let id = shop.order(number, 2000).await;
        shop.paid(&id, 1000, capture).await;
        // The order ended yesterday, and no call was sent since.
        let release = |ledger: &mut key_schema::payment::Ledger<'_>| {
            ledger.release_all();
            Ok(())
        };
        shop.change(&id, old(), Some(OrderStatus::Cancelled), release).await.unwrap();
        shop.check(&id, 0).await;
    }
}
