//! Faults that users of other systems have reported. Each test names the report.

use key_schema::id::{OrderId, PaymentId};
use key_schema::instant::Instant;
use key_schema::order::OrderStatus;
use key_schema::payment::{CaptureMode, Closing, LedgerError, OperationKind, OperationState, PaymentStatus, UNSENT};
use payments::IntentStatus;

use crate::bank::{Call, Fault};
use crate::shop::Shop;

/// A customer pays, and there is no order for the money (medusa#13301, vendure#3065). Here the
/// payment arrives after the order has lapsed. The order takes its stock again and is paid. If the
/// stock is gone, the money goes back.
#[tokio::test]
async fn a_payment_that_arrives_after_the_order_lapsed_pays_it_or_goes_back() {
    use CaptureMode::{AtOnce, AtShipping};
    use PaymentStatus::{Cancelled, Captured};
    let shop = Shop::open().await;
    for (number, (capture, is_confirmed, left, paid, status, captured, refunded)) in (1..).zip([
        (AtOnce, true, 1, true, Captured, 1000, 0),
        (AtOnce, true, 0, false, Captured, 1000, 1000),
        (AtOnce, false, 1, false, Cancelled, 0, 0),
        // The provider cancels an authorisation, so nothing is left that could pay.
        (AtShipping, true, 1, false, Cancelled, 0, 0),
        (AtShipping, false, 1, false, Cancelled, 0, 0),
    ]) {
        shop.restock(1).await;
        let id = shop.order(number, 1000).await;
        let payment = shop.pay(&id, 1000, capture).await;
        shop.settle(&id, None).await;
        let intent = shop.intent(&id, &payment).await;
        // The webhook of this payment does not arrive before the order lapses.
        assert!(!is_confirmed || shop.bank.with(|books| books.confirm(&intent)));
        shop.lapse(&id).await;
        assert_eq!(shop.read(&id).await.head.status, OrderStatus::Cancelled);
        shop.restock(left).await;
        shop.settle(&id, None).await;
        // The customer can no longer pay a payment that was open.
        assert!(!shop.bank.with(|books| books.confirm(&intent)));
        let order = shop.check(&id, 0).await;
        let expected = if paid { OrderStatus::Paid } else { OrderStatus::Cancelled };
        assert_eq!((order.head.status, order.head.lapsed), (expected, !paid), "case {number}");
        assert_eq!(shop.stock().await, left - u64::from(paid), "case {number}");
        let payment = &order.payments[0];
        assert_eq!((payment.status, payment.captured, payment.refunded), (status, captured, refunded), "case {number}");
        let last = order.history.last().unwrap();
        assert_eq!(last.note.as_deref(), Some(if paid { "paid late" } else { "lapsed" }), "case {number}");
    }
}

/// The stock is in the form of an earlier table when the order lapses, and again when the late payment
/// arrives.
#[tokio::test]
async fn a_late_payment_finds_a_stock_that_is_not_moved_yet() {
    let shop = Shop::open().await;
    shop.restock(1).await;
    let id = shop.order(1, 1000).await;
    let payment = shop.pay(&id, 1000, CaptureMode::AtOnce).await;
    shop.settle(&id, None).await;
    let intent = shop.intent(&id, &payment).await;
    assert!(shop.bank.with(|books| books.confirm(&intent)));
    shop.age_stock("p1").await;
    shop.lapse(&id).await;
    assert_eq!(shop.stock().await, 1);
    shop.age_stock("p1").await;
    shop.settle(&id, None).await;
    assert_eq!((shop.check(&id, 0).await.head.status, shop.stock().await), (OrderStatus::Paid, 0));
}

/// A late payment of a part goes back, because the rest of the order is not paid.
#[tokio::test]
async fn a_late_payment_of_a_part_goes_back() {
    let shop = Shop::open().await;
    let id = shop.order(1, 1000).await;
    shop.paid(&id, 400, CaptureMode::AtOnce).await;
    let late = shop.pay(&id, 600, CaptureMode::AtOnce).await;
    shop.settle(&id, None).await;
    let intent = shop.intent(&id, &late).await;
    assert!(shop.bank.with(|books| books.confirm(&intent)));
    shop.lapse(&id).await;
    let order = shop.check(&id, 0).await;
    assert_eq!(order.head.status, OrderStatus::Cancelled);
    assert_eq!(order.payments.iter().map(|payment| payment.refunded).collect::<Vec<_>>(), [400, 600]);
}

/// The customer pays between the end of the order and the cancellation of the payment, in a payment
/// that is processed for a long time (medusa#13301). The order that a person cancelled stays so.
#[tokio::test]
async fn a_payment_in_processing_at_the_end_of_an_order_pays_it_only_if_it_lapsed() {
    let shop = Shop::open().await;
    for (number, lapses) in [(1, true), (2, false)] {
        let id = shop.order(number, 1000).await;
        let payment = shop.pay(&id, 1000, CaptureMode::AtOnce).await;
        shop.settle(&id, None).await;
        let intent = shop.intent(&id, &payment).await;
        shop.bank.with(|books| books.hold_up(&intent, IntentStatus::Processing));
        shop.settle(&id, Some(&intent)).await;
        if lapses {
            shop.lapse(&id).await;
        } else {
            assert!(shop.cancel(&id).await);
        }
        shop.settle(&id, Some(&intent)).await;
        shop.bank.with(|books| books.confirm(&intent));
        shop.settle(&id, Some(&intent)).await;
        let order = shop.check(&id, 0).await;
        let (status, refunded) = if lapses { (OrderStatus::Paid, 0) } else { (OrderStatus::Cancelled, 1000) };
        let payment = &order.payments[0];
        assert_eq!((order.head.status, payment.captured, payment.refunded), (status, 1000, refunded));
    }
}

/// Two requests at once capture twice (medusa#16012, saleor#19812).
#[tokio::test]
async fn two_captures_at_once_have_one_operation_and_one_call() {
    let shop = Shop::open().await;
    let id = shop.order(1, 1000).await;
    let payment = shop.paid(&id, 1000, CaptureMode::AtShipping).await;
    let capture = || shop.staff_at(&id, &payment, OperationKind::Capture, 400, Instant::now());
    let both = futures::join!(capture(), capture());
    assert_eq!(usize::from(both.0.is_some()) + usize::from(both.1.is_some()), 1);
    let again = capture().await;
    assert_eq!(again, None, "a capture is under way");
    let (one, two) = (shop.table(), shop.table());
    let sent = futures::join!(shop.try_settle(&one, &id, None), shop.try_settle(&two, &id, None));
    assert!(sent.0.is_ok() && sent.1.is_ok());
    assert_eq!(capture().await, None, "the payment is captured");
    let key = both.0.or(both.1).unwrap();
    let captures = shop.bank.calls().into_iter().filter(|(call, _)| matches!(call, Call::Capture(..)));
    assert!(captures.into_iter().all(|(call, of)| call == Call::Capture("pi_1".to_owned(), 400) && of == key.as_str()));
    let order = shop.check(&id, 600).await;
    assert_eq!((order.payments[0].captured, order.payments[0].authorised), (400, 1000));
}

/// Two requests at once refund twice, or a repeated call refunds twice after a lost response
/// (hyperswitch#13182, saleor#19812).
#[tokio::test]
async fn two_refunds_at_once_are_never_more_than_was_captured() {
    let shop = Shop::open().await;
    let id = shop.order(1, 1000).await;
    let payment = shop.paid(&id, 1000, CaptureMode::AtOnce).await;
    let refund = || shop.staff_at(&id, &payment, OperationKind::Refund, 600, Instant::now());
    let both = futures::join!(refund(), refund());
    assert_eq!(usize::from(both.0.is_some()) + usize::from(both.1.is_some()), 1);
    let order = shop.read(&id).await;
    let mut ledger = order.ledger(Instant::now());
    let again = ledger.begin(&payment, OperationKind::Refund, 600, "staff", None, Vec::new());
    assert_eq!(again, Err(LedgerError::Captured(400)));
    shop.bank.fault(Fault::LostResponse);
    let (one, two) = (shop.table(), shop.table());
    let sent = futures::join!(shop.try_settle(&one, &id, None), shop.try_settle(&two, &id, None));
    assert!(sent.0.is_ok() && sent.1.is_ok());
    let order = shop.check(&id, 600).await;
    assert_eq!(order.payments[0].refunded, 600);
    let account = shop.bank.with(|books| books.account("pi_1").clone());
    assert_eq!((account.refunded(), account.refunds.len()), (600, 1));
    let calls = shop.bank.calls().into_iter().filter(|(call, _)| matches!(call, Call::Refund(..)));
    let keys: std::collections::BTreeSet<_> = calls.map(|(_, key)| key).collect();
    assert_eq!(keys.len(), 1, "every attempt has the same key");
}

/// A partial refund goes to another payment, or its amount is wrong (vendure#2393, saleor#14326).
#[tokio::test]
async fn partial_refunds_count_for_their_own_payment() {
    let shop = Shop::open().await;
    let id = shop.order(1, 1000).await;
    let first = shop.paid(&id, 300, CaptureMode::AtOnce).await;
    let second = shop.paid(&id, 700, CaptureMode::AtOnce).await;
    for (payment, amount) in [(&first, 100), (&second, 250), (&first, 200), (&second, 1)] {
        shop.staff(&id, payment, OperationKind::Refund, amount).await;
        shop.settle(&id, None).await;
    }
    let now = Instant::now();
    assert_eq!(shop.staff_at(&id, &first, OperationKind::Refund, 1, now).await, None, "nothing is left");
    assert_eq!(shop.staff_at(&id, &second, OperationKind::Refund, 450, now).await, None, "449 are left");
    let order = shop.check(&id, 551).await;
    let refunded: Vec<_> = order.payments.iter().map(|payment| payment.refunded).collect();
    assert_eq!((refunded, order.head.refunded), (vec![300, 251], 551));
    let at_provider: Vec<_> = shop.bank.with(|books| books.accounts.iter().map(|known| known.refunded()).collect());
    assert_eq!(at_provider, [300, 251]);
    // The cancellation gives the rest back, and no more.
    assert!(shop.cancel(&id).await);
    let order = shop.check(&id, 0).await;
    assert_eq!(order.head.refunded, 1000);
}

/// The amount at the provider differs by a rounded cent (medusa#14818).
#[tokio::test]
async fn the_amount_of_each_call_is_the_stored_amount_in_minor_units() {
    let shop = Shop::open().await;
    for (number, total, parts) in [(1, 1999, [667, 1332]), (2, 100_001, [33_333, 66_668]), (3, 57, [28, 29])] {
        let id = shop.order(number, total).await;
        for part in parts {
            shop.paid(&id, part, CaptureMode::AtShipping).await;
        }
        let ship = |ledger: &mut key_schema::payment::Ledger<'_>| {
            ledger.capture_all();
            Ok(())
        };
        assert_eq!(shop.read(&id).await.head.status, OrderStatus::Paid);
        shop.change(&id, Instant::now(), Some(OrderStatus::Picking), |_| Ok(())).await.unwrap();
        shop.change(&id, Instant::now(), Some(OrderStatus::Shipped), ship).await.unwrap();
        let order = shop.check(&id, 0).await;
        for operation in &order.operations {
            let payment = order.payments.iter().find(|known| known.id == operation.payment_id).unwrap();
            let calls = shop.bank.calls();
            let (call, _) = calls.iter().find(|(_, key)| key == operation.id.as_str()).unwrap();
            let sent = match call {
                Call::Create(_, money, _) => *money,
                Call::Capture(_, amount) => payment.money(*amount),
                other => panic!("{other:?}"),
            };
            assert_eq!((sent, operation.amount), (payment.amount, payment.amount.amount));
        }
    }
}

/// An order is cancelled or lapses while the capture of its payment is under way. The provider does
/// one of the two, so the money must go back after the capture.
#[tokio::test]
async fn a_capture_under_way_at_the_end_of_an_order_goes_back() {
    let shop = Shop::open().await;
    // With the first total the order is pending, and lapses.
    for (number, total, fault) in [(1, 2000, None), (2, 1000, None), (3, 2000, Some(Fault::LostResponse))] {
        let id = shop.order(number, total).await;
        let payment = shop.paid(&id, 1000, CaptureMode::AtShipping).await;
        shop.staff(&id, &payment, OperationKind::Capture, 800).await;
        fault.into_iter().for_each(|fault| shop.bank.fault(fault));
        if total == 1000 {
            assert!(shop.cancel(&id).await);
        } else {
            shop.lapse(&id).await;
        }
        let order = shop.check(&id, 0).await;
        assert_eq!((order.payments[0].captured, order.payments[0].refunded), (800, 800), "case {number}");
    }
}

/// The other outcome: the provider refuses the capture, so the authorised amount is released.
#[tokio::test]
async fn a_refused_capture_at_the_end_of_an_order_releases_the_payment() {
    let shop = Shop::open().await;
    let id = shop.order(1, 2000).await;
    let day = 24 * 60 * 60;
    let payment = shop.paid(&id, 1000, CaptureMode::AtShipping).await;
    // The operation was never sent, and is too old now.
    let old = Instant::now().plus_seconds(-2 * day);
    let capture = shop.staff_at(&id, &payment, OperationKind::Capture, 800, old).await.unwrap();
    shop.lapse(&id).await;
    let order = shop.check(&id, 0).await;
    assert_eq!(shop.operation(&id, &capture).await.state, OperationState::Refused);
    assert_eq!(order.payments[0].status, PaymentStatus::Cancelled);
}

/// Money that is on its way back to the customer does not pay the order.
#[tokio::test]
async fn money_on_its_way_back_does_not_pay_an_order() {
    let shop = Shop::open().await;
    for (number, capture, kind, amount) in [
        (1, CaptureMode::AtOnce, OperationKind::Refund, 600),
        (2, CaptureMode::AtShipping, OperationKind::Cancel, 0),
        (3, CaptureMode::AtShipping, OperationKind::Capture, 200),
    ] {
        let id = shop.order(number, 1000).await;
        let first = shop.paid(&id, 600, capture).await;
        let second = shop.pay(&id, 400, CaptureMode::AtOnce).await;
        shop.settle(&id, None).await;
        let operation = shop.staff(&id, &first, kind, amount).await;
        // The provider takes no call of this operation while the other payment arrives.
        shop.bank.fault(Fault::NotSent);
        let intent = shop.intent(&id, &second).await;
        assert!(shop.bank.with(|books| books.confirm(&intent)));
        shop.settle(&id, Some(&intent)).await;
        let order = shop.read(&id).await;
        assert!(order.operations.iter().any(|known| known.id == operation && known.state.is_unsettled()));
        assert_eq!(order.payments[1].captured, 400);
        let order = shop.check(&id, 0).await;
        assert_eq!(order.head.status, OrderStatus::Pending, "case {number}");
    }
}

/// Begins payments of 7 and of 6 euros, which the customer confirms. No webhook arrives. Returns the
/// payments and the provider's ids.
async fn confirmed(shop: &Shop, id: &OrderId, captures: [CaptureMode; 2]) -> (Vec<PaymentId>, Vec<String>) {
    let (mut payments, mut intents) = (Vec::new(), Vec::new());
    for (amount, capture) in [700, 600].into_iter().zip(captures) {
        let payment = shop.pay(id, amount, capture).await;
        shop.settle(id, None).await;
        intents.push(shop.intent(id, &payment).await);
        payments.push(payment);
    }
    for intent in &intents {
        assert!(shop.bank.with(|books| books.confirm(intent)));
    }
    (payments, intents)
}

/// Two payments exceed the total. The captures at shipping are the total, also while the refund of
/// the excess is under way.
#[tokio::test]
async fn an_order_that_ships_while_its_excess_goes_back_is_captured_in_full() {
    let shop = Shop::open().await;
    let id = shop.order(1, 1000).await;
    let (_, intents) = confirmed(&shop, &id, [CaptureMode::AtShipping, CaptureMode::AtOnce]).await;
    shop.settle(&id, Some(&intents[0])).await;
    // The webhook begins the refund of the excess, whose call does not arrive.
    shop.bank.down_after(1);
    shop.settle(&id, Some(&intents[1])).await;
    let order = shop.read(&id).await;
    assert_eq!(order.head.status, OrderStatus::Paid);
    assert!(order.operations.iter().any(|known| known.kind == OperationKind::Refund && known.state.is_unsettled()));
    shop.change(&id, Instant::now(), Some(OrderStatus::Picking), |_| Ok(())).await.unwrap();
    let ship = |ledger: &mut key_schema::payment::Ledger<'_>| {
        ledger.capture_all();
        Ok(())
    };
    shop.change(&id, Instant::now(), Some(OrderStatus::Shipped), ship).await.unwrap();
    shop.bank.up();
    let order = shop.check(&id, 0).await;
    let net: i64 = order.payments.iter().map(|payment| payment.captured - payment.refunded).sum();
    assert_eq!(net, 1000);
}

/// Two authorisations exceed the total. What staff give back of one of them before the shipment must not
/// be captured from the other one (saleor#14326).
#[tokio::test]
async fn a_refund_before_the_shipment_is_not_captured_from_another_card() {
    let shop = Shop::open().await;
    let id = shop.order(1, 1000).await;
    let (payments, intents) = confirmed(&shop, &id, [CaptureMode::AtShipping; 2]).await;
    for intent in &intents {
        shop.settle(&id, Some(intent)).await;
    }
    assert_eq!(shop.read(&id).await.head.status, OrderStatus::Paid);
    shop.staff(&id, &payments[0], OperationKind::Capture, 700).await;
    shop.settle(&id, None).await;
    let refund = async || shop.staff_at(&id, &payments[0], OperationKind::Refund, 100, Instant::now()).await;
    assert_eq!(refund().await, None, "the other card is authorised for more than the rest");
    let beyond = shop.staff_at(&id, &payments[1], OperationKind::Capture, 301, Instant::now()).await;
    assert_eq!(beyond, None, "both captures would exceed the total");
    // Staff first take the rest of the total from the other card.
    shop.staff(&id, &payments[1], OperationKind::Capture, 300).await;
    assert!(refund().await.is_some());
    shop.settle(&id, None).await;
    shop.change(&id, Instant::now(), Some(OrderStatus::Picking), |_| Ok(())).await.unwrap();
    let ship = |ledger: &mut key_schema::payment::Ledger<'_>| {
        ledger.capture_all();
        Ok(())
    };
    shop.change(&id, Instant::now(), Some(OrderStatus::Shipped), ship).await.unwrap();
    shop.check(&id, 100).await;
}

/// The call of the refund was not sent for a day. The customer must not lose the excess.
#[tokio::test]
async fn a_refund_of_an_excess_that_was_not_sent_begins_again() {
    let shop = Shop::open().await;
    let id = shop.order(1, 1000).await;
    let (_, intents) = confirmed(&shop, &id, [CaptureMode::AtOnce; 2]).await;
    shop.settle(&id, Some(&intents[0])).await;
    shop.bank.down_after(1);
    shop.settle(&id, Some(&intents[1])).await;
    let order = shop.read(&id).await;
    let refund = order.operations.iter().find(|known| known.kind == OperationKind::Refund).unwrap();
    let mut ledger = order.ledger(Instant::now());
    ledger.close(&refund.id, &Closing::Refused(UNSENT.to_owned()));
    let (payments, operations) = ledger.after();
    let open: Vec<_> = operations.iter().filter(|known| known.state.is_unsettled()).collect();
    assert_eq!((open.len(), open[0].kind, open[0].amount), (1, OperationKind::Refund, 300));
    assert_ne!(open[0].id, refund.id);
    assert_eq!(payments.iter().map(|payment| payment.refunded_pending).sum::<i64>(), 300);
}
