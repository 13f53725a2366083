//! Tests of the messages: their recipients, and how often they are sent.

use emulators::table::{Fault, FaultKind};
use futures::future::join_all;
use key_schema::order::{self, Order, OrderNumber, OrderStatus, OrderStatusEvent};
use notifier::mailer::MailError;
use notifier::notifier::{NotifyError, Outcome};
use serde_json::json;

use crate::support::{Act, NOW, Shop, at, at_once, delivery, patient};

#[tokio::test]
async fn a_placed_order_is_confirmed_with_its_lines() {
    let shop = Shop::open().await;
    assert_eq!(shop.notifier.take(&shop.placed(1), at(NOW), at_once()).await.unwrap(), Outcome::Sent);
    let [sent] = shop.post.sent().try_into().unwrap();
    assert_eq!((sent.to.as_str(), sent.kind), ("zoe@example.com", "OrderPlaced"));
    assert_eq!(sent.subject, "Your order");
    let text = format!(
        "Dear Zoë,\n\nthank you for your order {}. This is what we have noted:\n\n2 x ICE - CRUSHED/CUBED: 2.58 USD\n\
         1 x Milk: 0.99 USD\n\
         Total: 3.57 USD\nOrdered on: 2026-11-20\n",
        OrderNumber::of(&shop.order)
    );
    assert_eq!(sent.text, text);
}

#[tokio::test]
async fn the_mail_about_a_placed_order_reads_no_order_if_the_event_has_the_lines() {
    let shop = Shop::open().await;
    let mut event = shop.placed(1);
    let line = json!({
        "line": 1, "product_id": "p1", "name": "Ice of the event", "quantity": 3,
        "unit_price": {"amount": 119, "currency": "USD"}, "total": {"amount": 357, "currency": "USD"},
    });
    let data = &mut event.detail["data"];
    (data["line_count"], data["lines"], data["lines_left_out"]) = (json!(1), json!([line]), json!(0));
    assert_eq!(shop.notifier.take(&event, at(NOW), at_once()).await.unwrap(), Outcome::Sent);
    let [sent] = shop.post.sent().try_into().unwrap();
    assert!(sent.text.contains("\n\n3 x Ice of the event: 3.57 USD\nTotal: 3.57 USD\n"), "{}", sent.text);
    let read: Vec<&str> = shop.notifier.costs().iter().map(|measured| measured.pattern.id).collect();
    assert!(!read.contains(&"orders.lines") && read.contains(&"mail.prepare"), "{read:?}");
}

#[tokio::test]
async fn only_steps_that_matter_to_a_customer_send_a_mail() {
    let shop = Shop::open().await;
    let steps = [
        ("pending", "paid", Some("is paid")),
        ("paid", "picking", None),
        ("picking", "shipped", Some("is on its way")),
        ("shipped", "delivered", Some("was delivered")),
        ("delivered", "returned", Some("was returned")),
        ("paid", "cancelled", Some("was cancelled")),
    ];
    for (number, (from, to, subject)) in (1..).zip(steps) {
        let outcome = shop.notifier.take(&shop.moved(number, from, to), at(NOW), at_once()).await.unwrap();
        assert_eq!(outcome, if subject.is_some() { Outcome::Sent } else { Outcome::NoNews }, "{to}");
        let last = shop.post.sent().pop().unwrap();
        assert!(subject.is_none_or(|subject| last.subject.ends_with(subject)), "{}", last.subject);
        assert_eq!(last.kind, "OrderStatusChanged");
    }
    assert_eq!(shop.post.sent().len(), 5);
}

/// The message about an order that was not paid in time must not mention a refund, or say that a
/// person cancelled the order.
#[tokio::test]
async fn the_mail_about_a_lapsed_order_gives_the_reason_and_says_that_no_payment_is_due() {
    let shop = Shop::open().await;
    let lapsed = shop.moved_because(1, "pending", "cancelled", "lapsed");
    assert_eq!(shop.notifier.take(&lapsed, at(NOW), at_once()).await.unwrap(), Outcome::Sent);
    let [sent] = shop.post.sent().try_into().unwrap();
    assert_eq!((sent.subject, sent.kind), ("Your order has lapsed".to_owned(), "OrderStatusChanged"));
    let number = OrderNumber::of(&shop.order);
    let text = format!("your order {number} was not paid in time, so we have cancelled it. You owe us nothing.");
    assert!(sent.text.contains(&text), "{}", sent.text);
    // A cancellation with an unknown reason gets the usual message.
    let other = shop.moved_because(2, "pending", "cancelled", "of a later version");
    assert_eq!(shop.notifier.take(&other, at(NOW), at_once()).await.unwrap(), Outcome::Sent);
    assert!(shop.post.sent()[1].subject.ends_with("was cancelled"));
}

#[tokio::test]
async fn money_that_goes_back_to_a_card_is_announced_with_its_amount() {
    let shop = Shop::open().await;
    let number = OrderNumber::of(&shop.order);
    for (event, method, reversal, subject, text) in [
        (
            1,
            "card",
            "refund",
            "Your refund",
            format!("we have refunded 1.20 USD for your order {number} to your card."),
        ),
        (2, "card", "release", "Your payment was released", "the 1.20 USD that were reserved on your card".to_owned()),
    ] {
        let event = shop.reversed(event, method, reversal, 120);
        assert_eq!(shop.notifier.take(&event, at(NOW), at_once()).await.unwrap(), Outcome::Sent);
        let sent = shop.post.sent().pop().unwrap();
        assert_eq!((sent.subject.as_str(), sent.kind), (subject, "PaymentReversed"));
        assert!(sent.text.contains(&text) && sent.text.contains("\nTotal: 3.57 USD\n"), "{}", sent.text);
    }
    for (event, method) in [(3, "wallet"), (4, "manual")] {
        let event = shop.reversed(event, method, "refund", 120);
        assert_eq!(shop.notifier.take(&event, at(NOW), at_once()).await.unwrap(), Outcome::NoNews, "{method}");
    }
    assert_eq!(shop.post.calls(), 2);
}

#[tokio::test]
async fn the_mail_of_a_shipment_has_carrier_and_tracking_number_and_no_client_reference() {
    let shop = Shop::open().await;
    let mut copy = shop.copy();
    copy.carrier = Some("Post".into());
    copy.tracking = Some("CH-0001\r\nBcc: everybody@example.com".into());
    copy.reference = Some("basket #26984851472".parse().unwrap());
    shop.put(copy).await;
    shop.notifier.take(&shop.moved(1, "picking", "shipped"), at(NOW), at_once()).await.unwrap();
    let [sent] = shop.post.sent().try_into().unwrap();
    assert_eq!(sent.subject, "Your order is on its way");
    assert!(
        !sent.text.contains("basket") && sent.text.contains(&OrderNumber::of(&shop.order).to_string()),
        "{}",
        sent.text
    );
    assert!(
        sent.text.contains("\nCarrier: Post\nTracking number: CH-0001  Bcc: everybody@example.com\n"),
        "{}",
        sent.text
    );
}

#[tokio::test]
async fn the_mail_about_a_change_has_the_message_of_staff_and_not_their_note() {
    let shop = Shop::open().await;
    let order = Order::new(shop.order.clone(), shop.customer.clone(), at(NOW), shop.copy().total, 2);
    let step = |status, message: &str| OrderStatusEvent {
        message: Some(message.to_owned()),
        ..order::history(&order, status, at(NOW), "clerk", Some("shelf 7".to_owned()))
    };
    shop.put(step(OrderStatus::Paid, "Thank you")).await;
    shop.put(step(OrderStatus::Shipped, "It comes on Monday\nBcc: x@example.com")).await;
    for (number, (from, to, words)) in (1..).zip([
        ("pending", "paid", "\n\nMessage: Thank you\n"),
        ("picking", "shipped", "\nMessage: It comes on Monday Bcc: x@example.com\n"),
    ]) {
        shop.notifier.take(&shop.moved(number, from, to), at(NOW), at_once()).await.unwrap();
        let sent = shop.post.sent().pop().unwrap();
        assert!(sent.text.contains(words) && !sent.text.contains("shelf"), "{}", sent.text);
    }
}

#[tokio::test]
async fn the_name_is_the_only_text_from_the_customer_and_loses_links_and_line_breaks() {
    for (name, greeting) in [
        ("Zoë\r\nTotal: 0.00 USD\u{2028}Bcc: x@example.com", "Dear Zoë USD,\n\n"),
        ("Zoë https://evil.example/pay www.evil.example evil。example", "Dear Zoë,\n\n"),
        ("\u{202e}ëoZ\u{2066}", "Dear ëoZ,\n\n"),
        ("https://evil.example", "Dear customer,\n\n"),
    ] {
        let shop = Shop::of(name, "zoe@example.com").await;
        shop.notifier.take(&shop.placed(1), at(NOW), at_once()).await.unwrap();
        let [sent] = shop.post.sent().try_into().unwrap();
        assert!(sent.text.starts_with(greeting), "{}", sent.text);
        assert!(!sent.text.contains("evil") && sent.subject == "Your order", "{}", sent.text);
    }
}

#[tokio::test]
async fn a_repeated_event_sends_one_mail() {
    let shop = Shop::open().await;
    let event = shop.placed(1);
    assert_eq!(shop.notifier.take(&event, at(NOW), at_once()).await.unwrap(), Outcome::Sent);
    for later in [0, 1, 15_001, 86_400_000, 30 * 86_400_000] {
        assert_eq!(shop.notifier.take(&event, at(NOW).plus_millis(later), at_once()).await.unwrap(), Outcome::Known);
    }
    assert_eq!(shop.post.calls(), 1);
}

#[tokio::test]
async fn one_of_several_concurrent_deliveries_sends_the_message() {
    let shop = Shop::open().await;
    let event = shop.placed(1);
    let outcomes = join_all((0..20).map(|_| shop.notifier.take(&event, at(NOW), at_once()))).await;
    let sent = outcomes.iter().filter(|outcome| matches!(outcome, Ok(Outcome::Sent))).count();
    let others =
        |outcome: &&Result<Outcome, NotifyError>| matches!(outcome, Ok(Outcome::Known) | Err(NotifyError::Claimed));
    assert_eq!((sent, outcomes.iter().filter(others).count()), (1, 19));
    assert_eq!(shop.post.calls(), 1);
}

#[tokio::test]
async fn with_enough_time_a_delivery_waits_for_a_concurrent_delivery() {
    let shop = Shop::open().await;
    let event = shop.placed(1);
    let outcomes = join_all((0..20).map(|_| shop.notifier.take(&event, at(NOW), patient()))).await;
    let count = |wanted| outcomes.iter().filter(|outcome| matches!(outcome, Ok(outcome) if *outcome == wanted)).count();
    assert_eq!((count(Outcome::Sent), count(Outcome::Known)), (1, 19));
}

#[tokio::test]
async fn a_missing_customer_gets_no_mail_and_a_missing_order_no_mail_about_its_change() {
    let shop = Shop::open().await;
    shop.table.delete_at("CUSTOMER#c1", "PROFILE").await;
    assert_eq!(shop.notifier.take(&shop.placed(1), at(NOW), at_once()).await.unwrap(), Outcome::NotFound);
    let shop = Shop::open().await;
    shop.table.delete_at("CUSTOMER#c1", &format!("ORDER#{}", shop.order)).await;
    let paid = shop.moved(1, "pending", "paid");
    assert_eq!(shop.notifier.take(&paid, at(NOW), at_once()).await.unwrap(), Outcome::NotFound);
    assert_eq!(shop.post.calls(), 0);
}

#[tokio::test]
async fn a_busy_mail_service_gets_another_request_in_the_same_attempt() {
    let shop = Shop::open().await;
    for _ in 0..2 {
        shop.post.next(Act::Fail(MailError::Throttled("TooManyRequestsException".into())));
    }
    assert_eq!(shop.notifier.take(&shop.placed(1), at(NOW), at_once()).await.unwrap(), Outcome::Sent);
    assert_eq!((shop.post.calls(), shop.post.sent().len()), (3, 1));
}

#[tokio::test]
async fn a_message_that_was_certainly_not_sent_is_retried_without_a_wait() {
    let shop = Shop::open().await;
    shop.post.next(Act::Fail(MailError::Refused("SendingPausedException".into())));
    let event = shop.placed(1);
    let failed = shop.notifier.take(&event, at(NOW), at_once()).await;
    assert!(matches!(failed, Err(NotifyError::Mail(MailError::Refused(_)))), "{failed:?}");
    assert_eq!(shop.notifier.take(&event, at(NOW), at_once()).await.unwrap(), Outcome::Sent);
    assert_eq!(shop.post.sent().len(), 1);
}

#[tokio::test]
async fn a_permanently_refused_message_is_given_up() {
    let shop = Shop::open().await;
    shop.post.next(Act::Fail(MailError::Rejected("MessageRejected".into())));
    let event = shop.placed(1);
    assert_eq!(shop.notifier.take(&event, at(NOW), at_once()).await.unwrap(), Outcome::Rejected);
    assert_eq!(shop.notifier.take(&event, at(NOW).plus_seconds(60), at_once()).await.unwrap(), Outcome::Known);
    assert_eq!((shop.post.calls(), shop.post.sent().len()), (1, 0));
}

#[tokio::test]
async fn a_recipient_that_is_not_one_plain_address_gets_no_mail_and_uses_no_quota() {
    for email in [
        "zoe,eve@example.com",
        "<zoe@example.com",
        "zoe;eve@example.com",
        "\"zoe\"@example.com",
        // SES refuses this spelling of zoe@example.com, like every address beyond ASCII.
        "ｚｏｅ@example.com",
        "zoë@example.com",
        "zoe@exämple.com",
        "zoe@example.com.",
        "zoe@example..com",
    ] {
        let shop = Shop::of("Zoë", email).await;
        assert_eq!(
            shop.notifier.take(&shop.placed(1), at(NOW), at_once()).await.unwrap(),
            Outcome::Rejected,
            "{email}"
        );
        assert_eq!((shop.post.calls(), shop.table.items("RECIPIENT#").await.len()), (0, 0), "{email}");
    }
}

#[tokio::test]
async fn a_record_that_cannot_be_written_causes_no_second_message() {
    let shop = Shop::open().await;
    let faults = shop.table.faults().clone();
    shop.post.next(Act::AcceptAfter(Box::new(move || {
        faults.add(Fault { kind: FaultKind::Error, rate: 1.0, count: None, seed: 1 }).unwrap();
    })));
    assert_eq!(shop.notifier.take(&shop.placed(1), at(NOW), at_once()).await.unwrap(), Outcome::Sent);
    assert_eq!(shop.post.sent().len(), 1);
}

#[tokio::test]
async fn the_record_is_written_even_if_the_first_writes_fail() {
    let shop = Shop::open().await;
    let (event, faults) = (shop.placed(1), shop.table.faults().clone());
    shop.post.next(Act::AcceptAfter(Box::new(move || {
        faults.add(Fault { kind: FaultKind::Error, rate: 1.0, count: Some(3), seed: 1 }).unwrap();
    })));
    assert_eq!(shop.notifier.take(&event, at(NOW), at_once()).await.unwrap(), Outcome::Sent);
    assert_eq!(shop.notifier.take(&event, at(NOW).plus_seconds(60), at_once()).await.unwrap(), Outcome::Known);
}

#[tokio::test]
async fn a_replay_of_the_archive_sends_no_mail_about_old_events() {
    let shop = Shop::open().await;
    let mut replayed = shop.placed(1);
    replayed.replay = Some("rebuild".into());
    let late = at(NOW).plus_seconds(30 * 86_400 + 1);
    assert_eq!(shop.notifier.take(&replayed, late, at_once()).await.unwrap(), Outcome::NoNews);
    assert_eq!(shop.post.calls(), 0);
    // An equally old event that is no replay still sends its message.
    assert_eq!(shop.notifier.take(&shop.placed(1), late, at_once()).await.unwrap(), Outcome::Sent);
}

#[tokio::test]
async fn an_unknown_event_fails_and_an_event_for_other_consumers_is_skipped() {
    let shop = Shop::open().await;
    let mut newer = shop.placed(1);
    newer.detail["version"] = json!(2);
    let unknown = delivery("OrderEaten", 2, json!({}));
    for event in [newer, unknown] {
        assert!(matches!(shop.notifier.take(&event, at(NOW), at_once()).await, Err(NotifyError::Event(_))));
    }
    let stock = delivery("StockLow", 3, json!({"product_id": "p1", "available": 3, "threshold": 10}));
    assert_eq!(shop.notifier.take(&stock, at(NOW), at_once()).await.unwrap(), Outcome::NoNews);
    assert_eq!(shop.post.calls(), 0);
}
