//! Tests of the client against the local payment provider, which emulates Stripe.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::time::Duration;

use emulators::faults::{Fault, FaultKind};
use emulators::payments::{PaymentServer, Settings, Status, sign};
use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::money::Money;
use payments::{
    AmountError, Capture, Intent, IntentStatus, PaymentError, Provider as _, RefundStatus, Stripe, webhook,
};

const START: i64 = 1_800_000_000;

struct Account {
    server: PaymentServer,
    stripe: Stripe,
}

fn euros(amount: i64) -> Money {
    Money::new(amount, "EUR".parse().unwrap())
}

fn order() -> OrderId {
    "019aa136-7c00-7aaa-8bbb-000000000201".parse().unwrap()
}

fn client(server: &PaymentServer, key: &str) -> Stripe {
    Stripe::new(aws::Service::new(aws::connector().unwrap(), server.url(), None), key.to_owned())
}

impl Account {
    async fn open() -> Self {
        let settings = Settings { seed: 7, stopped_at: Some(START), ..Settings::default() };
        let server = PaymentServer::start(settings).await.unwrap();
        let stripe = client(&server, "sk_test_1");
        Self { server, stripe }
    }

    async fn create(&self, capture: Capture, key: &str) -> Intent {
        self.stripe.create(&order(), euros(1000), capture, key).await.unwrap()
    }

    /// Creates a payment, which the customer pays with a card that has enough money.
    async fn paid(&self, capture: Capture, key: &str) -> Intent {
        let intent = self.create(capture, key).await;
        self.server.confirm(&intent.id, None).unwrap();
        self.stripe.read(&intent.id).await.unwrap()
    }

    fn fault(&self, kind: FaultKind, count: u32) {
        self.server.faults().add(Fault { kind, rate: 1.0, count: Some(count), seed: 0 }).unwrap();
    }
}

#[tokio::test]
async fn a_payment_is_captured_at_once_and_refunded_in_parts() {
    let account = Account::open().await;
    let intent = account.create(Capture::AtOnce, "op-1").await;
    assert_eq!((intent.status, intent.amount, intent.captured), (IntentStatus::Open, euros(1000), euros(0)));
    let secret = intent.client_secret.clone().unwrap();
    assert!(secret.starts_with(&intent.id) && !format!("{intent:?}").contains(&secret));
    account.server.confirm(&intent.id, None).unwrap();
    let paid = account.stripe.read(&intent.id).await.unwrap();
    assert_eq!((paid.status, paid.captured, paid.capturable), (IntentStatus::Captured, euros(1000), euros(0)));
    assert_eq!((paid.key.as_deref(), paid.capture_before), (Some("op-1"), None));
    for (key, amount) in [("op-2", 300), ("op-3", 700)] {
        let refund = account.stripe.refund(&intent, euros(amount), key).await.unwrap();
        assert_eq!(
            (refund.status, refund.amount, refund.key.as_deref()),
            (RefundStatus::Done, euros(amount), Some(key))
        );
    }
    let more = account.stripe.refund(&intent, euros(1), "op-4").await;
    assert!(matches!(more, Err(PaymentError::Refused(_))), "{more:?}");
    let mut refunds = account.stripe.refunds(&intent.id).await.unwrap();
    refunds.sort_by(|a, b| a.key.cmp(&b.key));
    assert_eq!(refunds.iter().map(|refund| refund.amount).collect::<Vec<_>>(), [euros(300), euros(700)]);
    assert_eq!(account.server.account(&intent.id).unwrap().refunded, 1000);
}

#[tokio::test]
async fn an_authorised_payment_is_captured_in_part_or_cancelled_and_never_beyond_its_amount() {
    let account = Account::open().await;
    let first = account.paid(Capture::Later, "op-1").await;
    assert_eq!((first.status, first.capturable, first.captured), (IntentStatus::Authorised, euros(1000), euros(0)));
    assert_eq!(first.capture_before, Instant::from_millis((START + 7 * 24 * 60 * 60) * 1000));
    let beyond = account.stripe.capture(&first, euros(1001), "op-2").await;
    assert_eq!(beyond, Err(PaymentError::Refused("amount_too_large".to_owned())));
    let captured = account.stripe.capture(&first, euros(400), "op-3").await.unwrap();
    assert_eq!(
        (captured.status, captured.captured, captured.capturable),
        (IntentStatus::Captured, euros(400), euros(0))
    );
    let released = account.stripe.refunds(&first.id).await.unwrap();
    assert_eq!(
        released.iter().map(|refund| (refund.amount, refund.key.as_deref())).collect::<Vec<_>>(),
        [(euros(600), None)]
    );
    let again = account.stripe.capture(&first, euros(100), "op-4").await;
    assert_eq!(again, Err(PaymentError::Refused("payment_intent_unexpected_state".to_owned())));
    let second = account.paid(Capture::Later, "op-5").await;
    let cancelled = account.stripe.cancel(&second.id, "op-6").await.unwrap();
    assert_eq!((cancelled.status, cancelled.capturable), (IntentStatus::Cancelled, euros(0)));
    let third = account.paid(Capture::Later, "op-7").await;
    account.server.advance(Duration::from_secs(8 * 24 * 60 * 60));
    assert_eq!(account.stripe.read(&third.id).await.unwrap().status, IntentStatus::Cancelled);
}

#[tokio::test]
async fn a_customer_authenticates_or_is_declined_and_may_try_again() {
    let account = Account::open().await;
    let intent = account.create(Capture::AtOnce, "op-1").await;
    account.server.confirm(&intent.id, Some("pm_card_visa_chargeDeclinedInsufficientFunds")).unwrap();
    let declined = account.stripe.read(&intent.id).await.unwrap();
    assert_eq!((declined.status, declined.declined.as_deref()), (IntentStatus::Open, Some("insufficient_funds")));
    account.server.confirm(&intent.id, Some("pm_card_authenticationRequired")).unwrap();
    assert_eq!(account.stripe.read(&intent.id).await.unwrap().status, IntentStatus::ActionRequired);
    account.server.confirm(&intent.id, None).unwrap();
    assert_eq!(account.stripe.read(&intent.id).await.unwrap().status, IntentStatus::Captured);
}

/// Peers charge or refund twice when a response is lost (hyperswitch#13182).
#[tokio::test]
async fn a_repeated_call_has_its_effect_once() {
    let account = Account::open().await;
    let first = account.create(Capture::AtOnce, "op-1").await;
    assert_eq!(account.create(Capture::AtOnce, "op-1").await, first);
    // The connection ends before the response does, twice.
    account.fault(FaultKind::Truncate, 2);
    let second = account.create(Capture::AtOnce, "op-2").await;
    assert_eq!(account.server.accounts().len(), 2);
    account.server.confirm(&second.id, None).unwrap();
    account.fault(FaultKind::Truncate, 2);
    account.stripe.refund(&second, euros(600), "op-3").await.unwrap();
    assert_eq!(account.server.account(&second.id).unwrap().refunded, 600);
    let other = account.stripe.refund(&second, euros(200), "op-3").await;
    assert_eq!(other, Err(PaymentError::KeyReused));
}

#[tokio::test]
async fn an_error_says_whether_the_call_may_have_had_its_effect() {
    let account = Account::open().await;
    // The client repeats a throttled call. After several attempts nothing is certain.
    account.fault(FaultKind::Throttle, 3);
    let throttled = account.stripe.create(&order(), euros(1000), Capture::AtOnce, "op-1").await;
    assert_eq!(throttled, Err(PaymentError::Unknown("rate_limit".to_owned())));
    // A key keeps the response 500, so the retries get it, too.
    account.fault(FaultKind::ErrorAfter, 1);
    let failed = account.stripe.create(&order(), euros(1000), Capture::AtOnce, "op-2").await;
    assert!(matches!(failed, Err(PaymentError::Unknown(_))), "{failed:?}");
    assert_eq!(account.stripe.find("op-2").await, Ok(None), "the search is late");
    account.server.advance(Duration::from_secs(120));
    let found = account.stripe.find("op-2").await.unwrap().unwrap();
    assert_eq!((found.key.as_deref(), found.amount), (Some("op-2"), euros(1000)));
    let denied = client(&account.server, "sk_live_1").read(&found.id).await;
    assert!(matches!(denied, Err(PaymentError::NotSent(_))), "{denied:?}");
    let unknown = account.stripe.read("pi_1/../2").await;
    assert!(matches!(unknown, Err(PaymentError::Refused(_))), "{unknown:?}");
    let uneven = Money::new(5124, "KWD".parse().unwrap());
    let uneven = account.stripe.create(&order(), uneven, Capture::AtOnce, "op-4").await;
    assert!(matches!(uneven, Err(PaymentError::Amount(_))), "{uneven:?}");
    let yen = Money::new(1000, "JPY".parse().unwrap());
    let other = |error| matches!(error, PaymentError::Amount(AmountError::OtherCurrency { .. }));
    assert!(account.stripe.capture(&found, yen, "op-5").await.is_err_and(other));
    assert!(account.stripe.refund(&found, yen, "op-6").await.is_err_and(other));
    assert_eq!(account.server.accounts().len(), 1);
}

#[tokio::test]
async fn all_payments_of_a_time_are_listed_in_pages() {
    let account = Account::open().await;
    for number in 0..60 {
        account.create(Capture::AtOnce, &format!("op-{number}")).await;
    }
    account.server.advance(Duration::from_secs(10));
    account.create(Capture::AtOnce, "later").await;
    let (from, until) =
        (Instant::from_millis(START * 1000).unwrap(), Instant::from_millis((START + 10) * 1000).unwrap());
    let first = account.stripe.created(from, until, None).await.unwrap();
    let second = account.stripe.created(from, until, first.next.as_deref()).await.unwrap();
    assert_eq!((first.items.len(), second.items.len(), second.next), (50, 10, None));
    let keys: Vec<_> = first.items.iter().chain(&second.items).filter_map(|intent| intent.key.clone()).collect();
    assert_eq!(keys, (0..60).rev().map(|number| format!("op-{number}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn the_events_of_a_payment_name_it_and_their_signature_is_accepted() {
    let account = Account::open().await;
    let intent = account.paid(Capture::AtOnce, "op-1").await;
    account.stripe.refund(&intent, euros(1), "op-2").await.unwrap();
    let secrets = ["whsec_old".to_owned(), "whsec_new".to_owned()];
    let events = account.server.events(0, usize::MAX).items;
    let refunded = events.iter().any(|event| event.kind == "charge.refunded");
    assert!(refunded && account.server.account(&intent.id).unwrap().status == Status::Succeeded);
    for event in events {
        let header = sign(&secrets, START, &event.body);
        let now = Instant::from_millis(START * 1000).unwrap();
        let opened = webhook::open(&header, &event.body, &["whsec_new"], now).unwrap();
        assert_eq!((opened.id, opened.kind, opened.intent), (event.id, event.kind, Some(intent.id.clone())));
    }
}

/// The program stripe-mock compares each request with Stripe's own description of its API.
/// `.ci/run payments` starts it.
#[tokio::test]
#[ignore = "needs stripe-mock, at the address in STRIPE_MOCK"]
async fn stripes_own_description_accepts_each_call() {
    let address = std::env::var("STRIPE_MOCK").unwrap();
    let stripe = Stripe::new(aws::Service::new(aws::connector().unwrap(), &address, None), "sk_test_1".to_owned());
    for capture in [Capture::AtOnce, Capture::Later] {
        stripe.create(&order(), euros(1000), capture, "op-1").await.unwrap();
    }
    let intent = stripe.read("pi_1").await.unwrap();
    let part = Money::new(1, intent.amount.currency);
    stripe.capture(&intent, part, "op-2").await.unwrap();
    stripe.cancel("pi_1", "op-3").await.unwrap();
    stripe.refund(&intent, part, "op-4").await.unwrap();
    stripe.refunds("pi_1").await.unwrap();
    stripe.find("op-1").await.unwrap();
    let until = Instant::from_millis(START * 1000).unwrap();
    stripe.created(Instant::EPOCH, until, Some("pi_1")).await.unwrap();
}
