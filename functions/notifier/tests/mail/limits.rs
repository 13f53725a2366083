//! Tests of the rules that protect the owners of addresses: the limits, and stopped mail.

use futures::future::join_all;
use key_schema::code::Subject;
use key_schema::instant::Instant;
use key_schema::recipient::{self, MAX_CODES, MAX_MAILS, RecipientHash};
use notifier::event::Delivery;
use notifier::mailer::MailError;
use notifier::notifier::{NotifyError, Outcome};
use serde_json::{Value, json};

use crate::support::{Act, NOW, Shop, at, at_once};

const LATER: &str = "2026-11-20T12:10:00.000Z";

async fn take(shop: &Shop, event: &Delivery, now: Instant) -> Outcome {
    shop.notifier.take(event, now, at_once()).await.unwrap()
}

/// Returns an event of SES about a mail to an address.
fn feedback(detail_type: &str, detail: &Value) -> Delivery {
    let event = json!({
        "version": "0", "id": "7f3c2d5e-6a40-4c1f-9b5e-3f0c6b1d2e4a", "detail-type": detail_type, "source": "aws.ses",
        "account": "123456789012", "time": "2026-11-20T12:00:01Z", "region": "eu-central-1", "resources": [],
        "detail": detail,
    });
    serde_json::from_value(event).unwrap()
}

fn bounce(kind: &str, address: &str) -> Delivery {
    let detail = json!({
        "eventType": "Bounce",
        "bounce": {
            "bounceType": kind, "bounceSubType": "General",
            "bouncedRecipients": [{"emailAddress": "victim@example.com"}],
        },
        "mail": {"messageId": "m1", "destination": [address]},
    });
    feedback("Email Bounced", &detail)
}

fn complaint(address: &str) -> Delivery {
    let detail = json!({
        "eventType": "Complaint", "complaint": {"complainedRecipients": [{"emailAddress": "victim@example.com"}]},
        "mail": {"destination": [address]},
    });
    feedback("Email Complaint Received", &detail)
}

#[tokio::test]
async fn an_unverified_address_gets_no_mail_about_orders() {
    let shop = Shop::open().await;
    shop.profile("victim@example.com", false).await;
    assert_eq!(take(&shop, &shop.placed(1), at(NOW)).await, Outcome::Unverified);
    assert_eq!(take(&shop, &shop.moved(2, "pending", "paid"), at(NOW)).await, Outcome::Unverified);
    assert_eq!(
        (shop.post.calls(), shop.table.items("MAIL#").await.len(), shop.table.items("RECIPIENT#").await.len()),
        (0, 0, 0)
    );
}

#[tokio::test]
async fn a_code_goes_to_the_address_of_its_request_and_the_mail_omits_the_customers_name() {
    let shop = Shop::open().await;
    shop.profile("zoe@example.com", false).await;
    let event = shop.requested(1, "zoe@example.com", LATER).await;
    assert_eq!(take(&shop, &event, at(NOW)).await, Outcome::Sent);
    let [sent] = shop.post.sent().try_into().unwrap();
    let email = "zoe@example.com".parse().unwrap();
    let subject = Subject { customer: &shop.customer, email: &email, nonce: "nonce-1" };
    let codes = shop.table.codes();
    let code = codes.code(codes.newest(), &subject).unwrap();
    assert_eq!((sent.to.as_str(), sent.kind), ("zoe@example.com", "EmailVerificationRequested"));
    assert_eq!(sent.subject, "Confirm your email address");
    assert!(sent.text.contains(&format!("\n\n{code}\n\n")) && !sent.text.contains("Zo\u{eb}"), "{}", sent.text);
    // A repeated event sends no second mail.
    assert_eq!(take(&shop, &event, at(NOW)).await, Outcome::Known);
}

#[tokio::test]
async fn an_obsolete_code_is_not_sent() {
    let shop = Shop::open().await;
    shop.profile("zoe@example.com", false).await;
    let old = shop.requested(1, "zoe@example.com", LATER).await;
    // The code has expired.
    assert_eq!(take(&shop, &old, at(LATER)).await, Outcome::NoNews);
    // A newer request has replaced the code.
    shop.requested(2, "zoe@example.com", "2026-11-20T12:10:01.000Z").await;
    assert_eq!(take(&shop, &old, at(NOW)).await, Outcome::NoNews);
    // The profile has another address, which must not get the code either.
    let event = shop.requested(3, "zoe@example.com", LATER).await;
    shop.profile("victim@example.com", false).await;
    assert_eq!(take(&shop, &event, at(NOW)).await, Outcome::NoNews);
    // The address was verified meanwhile.
    shop.profile("zoe@example.com", true).await;
    assert_eq!(take(&shop, &event, at(NOW)).await, Outcome::NoNews);
    // The customer was erased.
    shop.table.delete_at("CUSTOMER#c1", "PROFILE").await;
    assert_eq!(take(&shop, &event, at(NOW)).await, Outcome::NotFound);
    assert_eq!(shop.post.calls(), 0);
}

#[tokio::test]
async fn an_address_gets_fifty_mails_a_day() {
    let shop = Shop::open().await;
    let limit = u32::try_from(MAX_MAILS).unwrap();
    for number in 0..limit {
        assert_eq!(take(&shop, &shop.moved(number, "pending", "paid"), at(NOW)).await, Outcome::Sent, "{number}");
    }
    // Both spellings belong to one recipient.
    shop.profile("ZOE@example.com", true).await;
    assert_eq!(take(&shop, &shop.moved(100, "pending", "paid"), at(NOW)).await, Outcome::Limited);
    // A repeated delivery of a sent message is recognised even at the limit.
    assert_eq!(take(&shop, &shop.moved(0, "pending", "paid"), at(NOW)).await, Outcome::Known);
    assert_eq!(shop.post.calls(), limit);
    // The count is separate for each address and day.
    shop.profile("other@example.com", true).await;
    assert_eq!(take(&shop, &shop.moved(101, "pending", "paid"), at(NOW)).await, Outcome::Sent);
    shop.profile("zoe@example.com", true).await;
    let midnight = at("2026-11-21T00:00:00.000Z");
    assert_eq!(take(&shop, &shop.moved(102, "pending", "paid"), midnight.plus_seconds(-60)).await, Outcome::Limited);
    assert_eq!(take(&shop, &shop.moved(103, "pending", "paid"), midnight).await, Outcome::Sent);
}

#[tokio::test]
async fn concurrent_mails_share_the_limit() {
    let shop = Shop::open().await;
    for number in 0..45 {
        take(&shop, &shop.moved(number, "pending", "paid"), at(NOW)).await;
    }
    let events: Vec<Delivery> = (100..120).map(|number| shop.moved(number, "pending", "paid")).collect();
    let outcomes = join_all(events.iter().map(|event| take(&shop, event, at(NOW)))).await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Outcome::Sent).count(), 5);
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Outcome::Limited).count(), 15);
}

#[tokio::test]
async fn codes_leave_room_for_other_mails() {
    let shop = Shop::open().await;
    shop.profile("zoe@example.com", false).await;
    let limit = u32::try_from(MAX_CODES).unwrap();
    for number in 0..limit {
        let event = shop.requested(number, "zoe@example.com", LATER).await;
        assert_eq!(take(&shop, &event, at(NOW)).await, Outcome::Sent, "{number}");
    }
    let event = shop.requested(100, "zoe@example.com", LATER).await;
    assert_eq!(take(&shop, &event, at(NOW)).await, Outcome::Limited);
    shop.profile("zoe@example.com", true).await;
    assert_eq!(take(&shop, &shop.placed(101), at(NOW)).await, Outcome::Sent);
}

#[tokio::test]
async fn a_repeated_attempt_counts_once() {
    let shop = Shop::open().await;
    for _ in 0..3 {
        shop.post.next(Act::Fail(MailError::Refused("SendingPausedException".into())));
    }
    let event = shop.placed(1);
    for _ in 0..3 {
        assert!(matches!(shop.notifier.take(&event, at(NOW), at_once()).await, Err(NotifyError::Mail(_))));
    }
    assert_eq!(take(&shop, &event, at(NOW)).await, Outcome::Sent);
    let items = shop.table.items("RECIPIENT#").await.into_iter();
    let counts: Vec<Value> = items.map(|item| serde_json::to_value(&item["mails"]).unwrap()).collect();
    assert_eq!(counts, [json!({ "N": "1" })]);
}

#[tokio::test]
async fn a_permanent_bounce_and_a_complaint_stop_mail_to_an_address_in_any_spelling() {
    for report in [bounce("Permanent", "Zoe@Example.com"), complaint("ZOE@example.com")] {
        let shop = Shop::open().await;
        assert_eq!(take(&shop, &shop.placed(1), at(NOW)).await, Outcome::Sent);
        assert_eq!(take(&shop, &report, at(NOW)).await, Outcome::Feedback);
        // SES may deliver a report twice.
        assert_eq!(take(&shop, &report, at(NOW)).await, Outcome::Feedback);
        assert_eq!(take(&shop, &shop.moved(2, "pending", "paid"), at(NOW)).await, Outcome::Stopped);
        // Codes are not sent either, because any caller can request codes for an address.
        shop.profile("zoe@example.com", false).await;
        let event = shop.requested(3, "zoe@example.com", LATER).await;
        assert_eq!(take(&shop, &event, at(NOW)).await, Outcome::Stopped);
        assert_eq!(shop.post.calls(), 1);
        // The stop is only for this address, and staff can lift it.
        shop.profile("other@example.com", true).await;
        assert_eq!(take(&shop, &shop.moved(4, "pending", "paid"), at(NOW)).await, Outcome::Sent);
        let hash = RecipientHash::of(&"zoe@example.com".parse().unwrap());
        shop.table.own().write(&recipient::lift(&hash).unwrap()).await.unwrap().unwrap();
        shop.profile("zoe@example.com", true).await;
        assert_eq!(take(&shop, &shop.moved(5, "pending", "paid"), at(NOW)).await, Outcome::Sent);
    }
}

#[tokio::test]
async fn an_abandoned_message_is_not_sent_after_a_complaint() {
    let shop = Shop::open().await;
    shop.post.next(Act::Fail(MailError::Refused("SendingPausedException".into())));
    let event = shop.placed(1);
    assert!(shop.notifier.take(&event, at(NOW), at_once()).await.is_err());
    take(&shop, &complaint("zoe@example.com"), at(NOW)).await;
    assert_eq!(take(&shop, &event, at(NOW)).await, Outcome::Stopped);
    assert!(shop.post.sent().is_empty());
}

#[tokio::test]
async fn a_full_mailbox_stops_no_mail_and_a_report_that_cannot_be_read_fails() {
    let shop = Shop::open().await;
    assert_eq!(take(&shop, &bounce("Transient", "zoe@example.com"), at(NOW)).await, Outcome::NoNews);
    assert_eq!(take(&shop, &shop.placed(1), at(NOW)).await, Outcome::Sent);
    let odd = feedback("Email Bounced", &json!({"eventType": "Bounce"}));
    let failed = shop.notifier.take(&odd, at(NOW), at_once()).await;
    assert!(matches!(failed, Err(NotifyError::Feedback(_))), "{failed:?}");
}

#[tokio::test]
async fn the_keys_of_recipients_hold_no_address() {
    let shop = Shop::open().await;
    take(&shop, &shop.placed(1), at(NOW)).await;
    take(&shop, &complaint("zoe@example.com"), at(NOW)).await;
    let items = shop.table.items("RECIPIENT#").await;
    assert_eq!(items.len(), 2);
    for item in items {
        assert!(!format!("{item:?}").to_lowercase().contains("zoe"), "{item:?}");
    }
}
