use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use emulators::payments::{Delivery, Mode, Webhook, sign};
use ring::hmac;
use serde_json::json;
use tokio::sync::mpsc;

use super::*;

/// The result comes from Python's hmac.
#[test]
fn a_signature_is_the_documented_one() {
    let header = sign(&["whsec_old", "whsec_new"], 1_492_774_577, r#"{"id":"evt_1","object":"event"}"#);
    let expected = "t=1492774577,\
        v1=1d95cf3dccbc6b325136d01298e6f894dc35559d1958c99dd5d6998ae6f1d2df,\
        v1=4c53cebce3a0d7beefae28a4012889b04ff702db3c428f6b139f58303f8d6ac0,\
        v0=4243bb6a23d313a3b1dc6fe4f50cd6fc3e3a717778e7d243a1874b53e13e74c1";
    assert_eq!(header, expected);
}

/// Verifies a delivery as Stripe documents it for a receiver.
fn is_signed(delivery: &Delivery, secret: &str) -> bool {
    let parts: Vec<(&str, &str)> = delivery.signature.split(',').filter_map(|part| part.split_once('=')).collect();
    let at = parts.iter().find(|(name, _)| *name == "t").unwrap().1;
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let payload = format!("{at}.{}", delivery.body);
    parts.iter().filter(|(name, _)| *name == "v1").any(|(_, tag)| {
        let tag: Vec<u8> =
            (0..tag.len()).step_by(2).map(|at| u8::from_str_radix(&tag[at..at + 2], 16).unwrap()).collect();
        hmac::verify(&key, payload.as_bytes(), &tag).is_ok()
    })
}

type Deliveries = mpsc::UnboundedReceiver<Delivery>;

/// Gives the provider an endpoint that accepts events only while it is up.
fn endpoint(stripe: &Stripe, secrets: &[&str]) -> (Deliveries, Arc<Mutex<bool>>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let is_up = Arc::new(Mutex::new(true));
    let up = Arc::clone(&is_up);
    let send = move |delivery| {
        let accepted = *up.lock().unwrap();
        sender.send(delivery).unwrap();
        Box::pin(async move { accepted }) as _
    };
    let secrets = secrets.iter().map(|&secret| secret.to_owned()).collect();
    stripe.server.set_webhook(Some(Webhook::new(secrets, Box::new(send))));
    (receiver, is_up)
}

fn kind(delivery: &Delivery) -> String {
    let event: Value = serde_json::from_str(&delivery.body).unwrap();
    assert_eq!((&event["object"], &event["id"]), (&json!("event"), &json!(delivery.event)));
    event["type"].as_str().unwrap().to_owned()
}

/// A missing delivery fails the test instead of blocking it.
async fn next<T>(receiver: &mut mpsc::UnboundedReceiver<T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), receiver.recv()).await.unwrap().unwrap()
}

async fn kinds(deliveries: &mut Deliveries, count: usize) -> Vec<String> {
    let mut kinds = Vec::new();
    while kinds.len() < count {
        kinds.push(kind(&next(deliveries).await));
    }
    assert!(deliveries.try_recv().is_err());
    kinds
}

#[tokio::test]
async fn each_change_emits_its_events() {
    let stripe = Stripe::new().await;
    let (created, charged) = ("payment_intent.created", "charge.succeeded");
    let authorised = "payment_intent.amount_capturable_updated";
    let (failed, action) = ("payment_intent.payment_failed", "payment_intent.requires_action");
    let (succeeded, canceled) = ("payment_intent.succeeded", "payment_intent.canceled");
    let of = |method: &str| MANUAL.replace("pm_card_visa", method);
    let mut count = 0;
    let mut expect = |what: &str, kinds: &[&str]| {
        assert_eq!(stripe.events_after(count), kinds, "{what}");
        count += kinds.len() as u64;
    };
    let intent = stripe.created(MANUAL).await;
    expect("authorised", &[created, charged, authorised]);
    stripe.post(&format!("{INTENTS}/{intent}/capture"), "amount_to_capture=700").await;
    expect("captured in part", &["charge.captured", "charge.refunded", succeeded]);
    stripe.post("/v1/refunds", &format!("payment_intent={intent}")).await;
    expect("refunded", &["refund.created", "charge.refunded"]);
    stripe.created(AUTOMATIC).await;
    expect("paid", &[created, charged, succeeded]);
    stripe.created(&of("pm_card_chargeDeclined")).await;
    expect("declined", &[created, "charge.failed", failed]);
    let intent = stripe.created(&of("pm_card_authenticationRequired")).await;
    expect("needs action", &[created, action]);
    stripe.server.decline(&intent).unwrap();
    expect("not authenticated", &[failed]);
    stripe.created(&of("pm_usBankAccount_processing")).await;
    expect("processing", &[created, "payment_intent.processing"]);
    let intent = stripe.created(MANUAL).await;
    expect("authorised again", &[created, charged, authorised]);
    stripe.post(&format!("{INTENTS}/{intent}/cancel"), "").await;
    expect("canceled", &["charge.refunded", canceled]);
    let intent = stripe.created(MANUAL).await;
    expect("authorised at last", &[created, charged, authorised]);
    stripe.server.expire(&intent).unwrap();
    expect("expired", &["charge.refunded", "charge.expired", canceled]);
}

#[tokio::test]
async fn an_event_shows_the_payment_at_its_time_and_names_its_request() {
    let stripe = Stripe::new().await;
    let created = stripe.post_with_key(INTENTS, "k", MANUAL).await.body;
    let capture = format!("{INTENTS}/{}/capture", created["id"].as_str().unwrap());
    stripe.post(&capture, "").await;
    let event = stripe.server.events(2, 1).items.remove(0);
    assert_eq!((event.kind.as_str(), event.created), ("payment_intent.amount_capturable_updated", START));
    let body: Value = serde_json::from_str(&event.body).unwrap();
    assert_eq!(body["data"]["object"], created);
    assert_eq!((&body["request"]["idempotency_key"], &body["livemode"]), (&json!("k"), &json!(false)));
    assert!(body["request"]["id"].as_str().unwrap().starts_with("req_"));
}

#[tokio::test]
async fn events_are_delivered_at_once_twice_reversed_late_or_never() {
    let events = ["payment_intent.created", "charge.succeeded", "payment_intent.succeeded"];
    let [created, charged, paid] = events;
    for (mode, delivered) in [
        (Mode::AtOnce, vec![created, charged, paid]),
        (Mode::Twice, vec![created, created, charged, charged, paid, paid]),
        (Mode::Reversed, vec![paid, charged, created]),
    ] {
        let stripe = Stripe::new().await;
        let (mut deliveries, _) = endpoint(&stripe, &["whsec_1"]);
        stripe.server.set_mode(mode);
        let intent = stripe.created(AUTOMATIC).await;
        assert_eq!(kinds(&mut deliveries, delivered.len()).await, delivered, "{mode:?}");
        assert_eq!(stripe.server.redeliver(&intent).await, 3);
        assert_eq!(kinds(&mut deliveries, 3).await, events, "{mode:?}");
    }
    for (mode, pending) in [(Mode::Held, 3), (Mode::Never, 0)] {
        let stripe = Stripe::new().await;
        let (mut deliveries, _) = endpoint(&stripe, &["whsec_1"]);
        stripe.server.set_mode(mode);
        stripe.created(AUTOMATIC).await;
        let waiting = stripe.server.pending();
        assert_eq!((waiting.len(), stripe.server.events(0, 9).items.len()), (pending, 3), "{mode:?}");
        assert!(deliveries.try_recv().is_err(), "{mode:?}");
        // A test delivers them in any order, and an hour later.
        stripe.server.advance(Duration::from_secs(3600));
        for event in waiting.iter().rev() {
            assert!(stripe.server.deliver(event).await);
        }
        let reversed: Vec<&str> = waiting.iter().rev().map(|event| event.kind.as_str()).collect();
        assert_eq!(kinds(&mut deliveries, pending).await, reversed, "{mode:?}");
        assert_eq!(stripe.server.deliver_pending().await, pending, "{mode:?}");
        let mut times = Vec::new();
        while let Ok(delivery) = deliveries.try_recv() {
            times.push(delivery.signature.starts_with(&format!("t={},", START + 3600)));
        }
        assert_eq!(times, vec![true; pending], "{mode:?}");
        assert!(stripe.server.pending().is_empty());
    }
}

#[tokio::test]
async fn an_event_that_was_not_accepted_waits_for_the_next_delivery() {
    let stripe = Stripe::new().await;
    stripe.server.set_mode(Mode::Held);
    let (mut deliveries, is_up) = endpoint(&stripe, &["whsec_1"]);
    stripe.created(AUTOMATIC).await;
    *is_up.lock().unwrap() = false;
    assert_eq!((stripe.server.deliver_pending().await, stripe.server.pending().len()), (0, 3));
    *is_up.lock().unwrap() = true;
    assert_eq!((stripe.server.deliver_pending().await, stripe.server.pending().len()), (3, 0));
    assert_eq!(kinds(&mut deliveries, 6).await.len(), 6);
    stripe.created(AUTOMATIC).await;
    stripe.server.discard_pending();
    assert_eq!(stripe.server.deliver_pending().await, 0);
}

#[tokio::test]
async fn each_secret_signs_and_the_fault_signs_wrongly() {
    let stripe = Stripe::new().await;
    stripe.server.set_mode(Mode::Held);
    let (mut deliveries, _) = endpoint(&stripe, &["whsec_old", "whsec_new"]);
    stripe.created(AUTOMATIC).await;
    stripe.fault(FaultKind::WrongSignature);
    stripe.server.deliver_pending().await;
    for is_right in [false, true, true] {
        let delivery = next(&mut deliveries).await;
        for secret in ["whsec_old", "whsec_new"] {
            assert_eq!(is_signed(&delivery, secret), is_right, "{secret}");
        }
        assert!(!is_signed(&delivery, "whsec_other"));
    }
    let event = &stripe.server.events(0, 1).items[0];
    let delivery = stripe.server.sign_delivery(event).unwrap();
    assert!(is_signed(&delivery, "whsec_old") && deliveries.try_recv().is_err());
}

#[tokio::test]
async fn an_endpoint_gets_the_events_by_http() {
    type Got = mpsc::UnboundedSender<(String, String)>;
    async fn receive(State(got): State<Got>, headers: HeaderMap, body: String) {
        got.send((headers["stripe-signature"].to_str().unwrap().to_owned(), body)).unwrap();
    }
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let router = Router::new().route("/hook", post(receive)).with_state(sender);
    tokio::spawn(async move { axum::serve(listener, router).await });
    let stripe = Stripe::new().await;
    stripe.server.set_webhook(Some(Webhook::at(&url, vec!["whsec_1".to_owned()]).unwrap()));
    stripe.created(AUTOMATIC).await;
    for _ in 0..3 {
        let (signature, body) = next(&mut receiver).await;
        let delivery = Delivery { event: String::new(), body, signature };
        assert!(is_signed(&delivery, "whsec_1"));
    }
    stripe.server.set_webhook(Some(Webhook::at(&format!("{url}/none"), Vec::new()).unwrap()));
    assert!(!stripe.server.deliver(&stripe.server.events(0, 1).items[0]).await);
}
