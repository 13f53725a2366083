use std::collections::BTreeSet;

use aws::Reach;
use courier::Tally;
use emulators::faults::FaultKind;
use fixture::crash_after;
use fixture::receiver::{Answer, Received, Receiver};
use key_schema::instant::Instant;
use key_schema::webhook_delivery::{self, DeliveryState, MAX_TRIES, PAUSES_SECONDS};
use key_schema::webhook_endpoint::{self, Disabled, DisabledReason, FAILING_SECONDS, WebhookEndpoint};
use key_schema::webhook_secret::SecretSeed;
use serde_json::{Value, json};
use signatures::{Signature, SigningKeys, has_digest};
use standardwebhooks::Webhook;

use crate::shop::{Shop, low, message, nonce};

const FOUR_DAYS: i64 = 4 * 24 * 60 * 60;

/// Checks a request with the library of Standard Webhooks for receivers.
fn verify(secret: &str, request: &Received) -> Result<(), standardwebhooks::WebhookError> {
    let mut headers = http::HeaderMap::new();
    for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
        headers.insert(name, request.header(name).parse().unwrap());
    }
    Webhook::new(secret)?.verify(request.body.as_bytes(), &headers)
}

#[tokio::test]
async fn an_endpoint_gets_the_events_that_it_wants_once_with_a_signature_that_receivers_accept() {
    let (shop, receiver) = (Shop::open().await, Receiver::start().await);
    let stock = shop.register(1, &receiver.url, &["stock.*"]).await;
    let orders = shop.register(2, &receiver.url, &["order.*", "payment.reversed"]).await;
    let code = json!({ "customer_id": "c1", "expires_at": "2026-11-20T12:10:00.000Z" });
    let messages = [low(7), message("EmailVerificationRequested", 8, &code)];
    for _ in 0..2 {
        assert!(shop.take(&messages).await.0.is_empty());
    }
    let [only] = <[_; 1]>::try_from(receiver.received()).unwrap();
    assert_eq!((only.path.as_str(), only.header("content-type")), ("/hook?shop=1", "application/json"));
    let body: Value = serde_json::from_str(&only.body).unwrap();
    assert_eq!((&body["type"], &body["sequence"]), (&json!("stock.low"), &json!(2)));
    assert_eq!(body["data"], json!({ "product_id": "tea", "available": 3, "threshold": 10 }));
    assert_eq!((&body["id"], only.header("webhook-id")), (&json!(format!("{:032x}", 7)), body["id"].as_str().unwrap()));
    let secret = shop.keys.secret(&stock, &nonce("nonce-1", Instant::EPOCH)).unwrap().text();
    verify(&secret, &only).unwrap();
    let other = shop.keys.secret(&orders, &nonce("nonce-1", Instant::EPOCH)).unwrap().text();
    verify(&other, &only).unwrap_err();
    let mut changed = only.clone();
    changed.body = only.body.replace('3', "4");
    verify(&secret, &changed).unwrap_err();

    let delivery = shop.delivery(&stock).await;
    assert_eq!((delivery.state, delivery.due_at, delivery.tries), (DeliveryState::Delivered, None, 1));
    assert_eq!(delivery.attempts.iter().map(|attempt| attempt.status).collect::<Vec<_>>(), [Some(204)]);
    assert!(shop.deliveries(&orders).await.is_empty());
}

#[tokio::test]
async fn a_message_to_an_agent_is_signed_by_the_shops_key_and_repeated_like_any_other() {
    let (shop, receiver) = (Shop::open().await, Receiver::start().await);
    let id = shop.notice(&receiver.url, "{\"id\":1}", &[]).await;
    receiver.next([Answer::Status(500)]);
    for (delivered, failed) in [(0, 1), (1, 0)] {
        assert_eq!(shop.run_round(&id).await, Tally { delivered, failed, ..Tally::default() });
    }
    assert!(shop.take(&[low(1)]).await.0.is_empty());
    let requests = receiver.received();
    assert_eq!(requests.len(), 2, "an agent gets no events");
    let keys = SigningKeys::of(&shop.keys).public();
    for request in requests {
        assert_eq!((request.body.as_str(), request.header("webhook-timestamp")), ("{\"id\":1}", "1700000000"));
        assert!(has_digest(request.header("content-digest"), request.body.as_bytes()));
        let signature = Signature::read(Some(request.header("signature-input")), Some(request.header("signature")));
        let signature = signature.unwrap().remove(0);
        let check = |path: &str| {
            signature.check(&keys, Instant::now().as_seconds(), |component| {
                Some(match component {
                    "@method" => "POST".to_owned(),
                    "@authority" => receiver.url["http://".len()..].split('/').next().unwrap().to_owned(),
                    "@path" => path.to_owned(),
                    "@query" => "?shop=1".to_owned(),
                    header => request.header(header).to_owned(),
                })
            })
        };
        assert_eq!(check("/hook"), Ok(()));
        assert!(check("/other").is_err());
        let covered = ["@query", "content-type", "content-digest", "ucp-agent", "webhook-timestamp"];
        assert!(covered.iter().all(|component| signature.covers(component)));
        assert_eq!(request.header("webhook-signature"), "");
    }
}

#[tokio::test]
async fn a_message_over_acp_has_one_signature_that_of_the_newest_secret() {
    let (shop, receiver) = (Shop::open().await, Receiver::start().await);
    let secrets = [nonce("nonce-2", Instant::now()), nonce("nonce-1", Instant::EPOCH)];
    let id = shop.notice(&receiver.url, "{\"id\":1}", &secrets).await;
    assert_eq!(shop.run_round(&id).await, Tally { delivered: 1, ..Tally::default() });
    let [only] = <[_; 1]>::try_from(receiver.received()).unwrap();
    let (time, _) = only.header("merchant-signature")["t=".len()..].split_once(",v1=").unwrap();
    let seconds: i64 = time.parse().unwrap();
    assert!((Instant::now().as_seconds() - seconds).abs() < 60);
    let secret = shop.keys.secret(&id, &secrets[0]).unwrap();
    assert_eq!(only.header("merchant-signature"), secret.merchant_signature(seconds, "{\"id\":1}"));
    assert_eq!(only.header("timestamp").parse::<Instant>().unwrap().as_seconds(), seconds);
    assert_eq!(only.header("request-id"), shop.delivery(&id).await.id.as_str());
    assert_eq!((only.header("webhook-signature"), only.header("signature")), ("", ""));
}

#[tokio::test]
async fn while_a_secret_is_replaced_both_secrets_sign_and_an_ended_one_does_not() {
    let (shop, receiver) = (Shop::open().await, Receiver::start().await);
    let id = shop.register(1, &receiver.url, &["*"]).await;
    let now = Instant::now();
    for (name, at) in [("nonce-2", now.plus_seconds(-FOUR_DAYS)), ("nonce-3", now)] {
        let endpoint = shop.endpoint(&id).await;
        shop.table().update(&webhook_endpoint::rotate(&endpoint, nonce(name, at)).unwrap()).await.unwrap().unwrap();
        let number = if name == "nonce-2" { 1 } else { 2 };
        assert!(shop.take(&[low(number)]).await.0.is_empty());
    }
    let [first, second] = <[_; 2]>::try_from(receiver.received()).unwrap();
    let accepted = |request: &Received| -> Vec<&str> {
        let is_accepted =
            |name: &&str| verify(&shop.keys.secret(&id, &nonce(name, Instant::EPOCH)).unwrap().text(), request).is_ok();
        ["nonce-1", "nonce-2", "nonce-3"].into_iter().filter(is_accepted).collect()
    };
    assert_eq!((accepted(&first), accepted(&second)), (vec!["nonce-2"], vec!["nonce-2", "nonce-3"]));
}

#[tokio::test]
async fn a_delivery_is_repeated_for_three_days_and_then_given_up_and_staff_can_send_it_again() {
    let (shop, receiver) = (Shop::open().await, Receiver::start().await);
    let id = shop.register(1, &receiver.url, &["*"]).await;
    receiver.next([Answer::Status(500), Answer::Redirect, Answer::Nothing, Answer::Status(404)]);
    receiver.next((4..MAX_TRIES).map(|_| Answer::Status(503)));
    let before = Instant::now();
    assert_eq!(shop.take(&[low(1)]).await.1, Tally { failed: 1, ..Tally::default() });
    for tries in 1..MAX_TRIES {
        let delivery = shop.delivery(&id).await;
        assert_eq!((delivery.tries, delivery.state), (tries, DeliveryState::Pending));
        let pause = PAUSES_SECONDS[usize::try_from(tries).unwrap() - 1];
        assert!(delivery.due_at.unwrap() >= before.plus_seconds(pause), "{tries}");
        let given_up = u32::from(tries + 1 == MAX_TRIES);
        assert_eq!(shop.run_round(&id).await, Tally { failed: 1, given_up, ..Tally::default() });
    }
    assert!(PAUSES_SECONDS.iter().sum::<i64>() > 3 * 24 * 60 * 60);
    let delivery = shop.delivery(&id).await;
    assert_eq!((delivery.state, delivery.due_at), (DeliveryState::Failed, None));
    let seen: Vec<_> = delivery.attempts.iter().map(|attempt| attempt.status).collect();
    assert_eq!(seen[..4], [Some(500), Some(307), None, Some(404)]);
    let requests = receiver.received();
    assert_eq!(requests.len(), usize::try_from(MAX_TRIES).unwrap(), "the redirect is not followed");
    let ids: BTreeSet<&str> = requests.iter().map(|request| request.header("webhook-id")).collect();
    assert_eq!(ids.len(), 1, "the id says that the requests repeat an event");
    assert_eq!(shop.run_round(&id).await, Tally::default());

    let redeliver = webhook_delivery::redeliver(&id, &delivery.id, Instant::now()).unwrap();
    shop.table().update(&redeliver).await.unwrap().unwrap();
    assert_eq!(shop.courier.run_round(shop.stop()).await.unwrap(), Tally { delivered: 1, ..Tally::default() });
    assert_eq!(shop.delivery(&id).await.state, DeliveryState::Delivered);
    assert!(shop.endpoint(&id).await.failing_since.is_none());
}

#[tokio::test]
async fn an_endpoint_that_fails_delays_no_other_and_gets_the_rest_in_rounds() {
    let (shop, broken, sound) = (Shop::open().await, Receiver::start().await, Receiver::start().await);
    let (bad, good) = (shop.register(1, &broken.url, &["*"]).await, shop.register(2, &sound.url, &["*"]).await);
    broken.next([Answer::Nothing; 5]);
    let (failed, tally) = shop.take(&[low(1), low(2), low(3)]).await;
    assert_eq!((failed.len(), tally.delivered, tally.failed), (0, 3, 1));
    shop.take(&[low(4)]).await;
    assert_eq!((broken.received().len(), sound.received().len()), (1, 4), "after a failure the rounds send");
    assert_eq!((shop.deliveries(&bad).await.len(), shop.deliveries(&good).await.len()), (4, 4));
    let tally = shop.run_round(&bad).await;
    assert_eq!((tally.failed, tally.delivered), (4, 0));
    let tally = shop.run_round(&bad).await;
    assert_eq!((tally.failed, tally.delivered), (0, 4));
    assert!(shop.endpoint(&bad).await.failing_since.is_none());
    shop.take(&[low(5)]).await;
    assert_eq!(broken.received().len(), 9);
}

#[tokio::test]
async fn an_endpoint_is_disabled_if_it_is_gone_or_has_failed_for_three_days() {
    let (shop, receiver) = (Shop::open().await, Receiver::start().await);
    let (gone, failing) =
        (shop.register(1, &receiver.url, &["stock.low"]).await, shop.register(2, &receiver.url, &["*"]).await);
    receiver.next([Answer::Status(410), Answer::Status(410)]);
    let (_, tally) = shop.take(&[low(1)]).await;
    assert_eq!((tally.disabled, tally.given_up), (2, 2));
    for id in [&gone, &failing] {
        assert_eq!(shop.endpoint(id).await.disabled.unwrap().reason, DisabledReason::Gone);
        assert_eq!(shop.delivery(id).await.state, DeliveryState::Failed);
    }
    // Staff enable the second one again, but it fails.
    let endpoint = shop.endpoint(&failing).await;
    let enabled = WebhookEndpoint { disabled: None, ..endpoint.data.clone() };
    let change = webhook_endpoint::change(&enabled, endpoint.meta.version, true, Instant::now()).unwrap();
    shop.table().update(&change).await.unwrap().unwrap();
    receiver.next([Answer::Status(500), Answer::Status(500), Answer::Status(500)]);
    shop.take(&[low(2)]).await;
    let since = shop.endpoint(&failing).await.failing_since.unwrap();
    // A round also counts the endpoint that is gone.
    assert_eq!(shop.run_round(&failing).await, Tally { failed: 1, disabled: 1, ..Tally::default() });
    shop.table().write(&webhook_endpoint::works(&failing, since).unwrap()).await.unwrap().unwrap();
    let earlier = Instant::now().plus_seconds(-FAILING_SECONDS);
    shop.table().write(&webhook_endpoint::fails(&failing, earlier).unwrap()).await.unwrap().unwrap();
    let tally = shop.run_round(&failing).await;
    assert_eq!((tally.failed, tally.disabled), (1, 2));
    assert_eq!(shop.endpoint(&failing).await.disabled.unwrap().reason, DisabledReason::Failing);
    let before = receiver.received().len();
    shop.take(&[low(3)]).await;
    assert_eq!(shop.run_round(&failing).await, Tally { disabled: 2, ..Tally::default() });
    assert_eq!((before, receiver.received().len()), (5, 0), "a disabled endpoint gets nothing");
}

#[tokio::test]
async fn a_private_address_gets_no_request_and_neither_does_a_name_that_leads_to_one() {
    let (shop, receiver) = (Shop::reaching(Reach::Public).await, Receiver::start().await);
    let port = receiver.url.split([':', '/']).nth(4).unwrap();
    let by_name = shop.register(1, &format!("https://localhost:{port}/"), &["*"]).await;
    let literal = shop.register(2, &format!("https://127.0.0.1:{port}/"), &["*"]).await;
    let plain = shop.register(3, &receiver.url, &["*"]).await;
    let (failed, tally) = shop.take(&[low(1)]).await;
    assert_eq!((failed.len(), tally.failed), (0, 3));
    let mut errors = Vec::new();
    for id in [&by_name, &literal, &plain] {
        errors.push(shop.delivery(id).await.attempts[0].error.clone().unwrap());
    }
    assert_eq!(
        errors,
        [
            "no connection: the host has no address that may be reached",
            "the URL must not have a private address",
            "the URL must be an https URL",
        ]
    );
    assert!(receiver.received().is_empty());
}

#[tokio::test]
async fn an_attempt_whose_courier_ended_is_repeated_after_its_lease_and_none_is_lost() {
    let (shop, receiver) = (Shop::open().await, Receiver::start().await);
    let id = shop.register(1, &receiver.url, &["*"]).await;
    // The courier ends at any of its steps, while it takes the message.
    let messages: Vec<Value> = (100..112).map(low).collect();
    for (delay, message) in messages.iter().enumerate() {
        let _ = crash_after(delay, shop.take(std::slice::from_ref(message))).await;
    }
    for message in &messages {
        // SQS delivers the message again, because nobody has answered it.
        assert!(shop.take(std::slice::from_ref(message)).await.0.is_empty());
    }
    shop.run_round(&id).await;
    let ids: BTreeSet<String> =
        receiver.received().iter().map(|request| request.header("webhook-id").to_owned()).collect();
    assert_eq!(ids, (100..112).map(|number| format!("{number:032x}")).collect());
    let deliveries = shop.deliveries(&id).await;
    assert_eq!(deliveries.len(), 12);
    assert!(deliveries.iter().all(|delivery| delivery.state == DeliveryState::Delivered));
}

#[tokio::test]
async fn a_message_that_cannot_be_read_or_kept_is_delivered_again() {
    let (shop, receiver) = (Shop::open().await, Receiver::start().await);
    let id = shop.register(1, &receiver.url, &["*"]).await;
    let malformed = json!({ "messageId": "bad", "body": "{}" });
    assert_eq!(shop.take(&[malformed, low(1)]).await.0, ["bad"]);
    assert_eq!(shop.deliveries(&id).await.len(), 1);
    let mut old = low(3);
    let mut body: Value = serde_json::from_str(old["body"].as_str().unwrap()).unwrap();
    body["detail"]["occurred_at"] = json!("2017-01-01T00:00:00.000Z");
    body["replay-name"] = json!("again");
    old["body"] = json!(body.to_string());
    assert_eq!(shop.take(&[old]).await, (Vec::new(), Tally::default()), "an old event of a replay is not sent");
    shop.fail(FaultKind::Error);
    assert_eq!(shop.take(&[low(2)]).await.0, ["m2"]);
}

#[tokio::test]
async fn without_its_key_an_endpoint_gets_nothing_and_is_not_to_blame() {
    let (shop, receiver) = (Shop::open().await, Receiver::start().await);
    let id = shop.register(1, &receiver.url, &["*"]).await;
    let endpoint = shop.endpoint(&id).await;
    let gone = SecretSeed { key: "gone".to_owned(), ..nonce("nonce-2", Instant::now().plus_seconds(-FOUR_DAYS)) };
    shop.table().update(&webhook_endpoint::rotate(&endpoint, gone).unwrap()).await.unwrap().unwrap();
    assert_eq!(shop.take(&[low(1)]).await, (Vec::new(), Tally::default()));
    assert_eq!(shop.run_round(&id).await, Tally::default());
    let delivery = shop.delivery(&id).await;
    assert_eq!((delivery.tries, delivery.attempts.len(), receiver.received().len()), (1, 0, 0));
    assert!(shop.endpoint(&id).await.failing_since.is_none());
}

#[tokio::test]
async fn an_endpoint_that_staff_have_changed_meanwhile_is_not_disabled() {
    let (shop, receiver) = (Shop::open().await, Receiver::start().await);
    let id = shop.register(1, &receiver.url, &["*"]).await;
    let endpoint = shop.endpoint(&id).await;
    let disabled = Disabled { reason: DisabledReason::Gone, at: Instant::now() };
    let moved = WebhookEndpoint { url: "https://new.example".to_owned(), ..endpoint.data.clone() };
    let change = webhook_endpoint::change(&moved, endpoint.meta.version, true, Instant::now()).unwrap();
    shop.table().update(&change).await.unwrap().unwrap();
    let disable = webhook_endpoint::disable(&id, endpoint.meta.version, disabled, None).unwrap();
    assert!(shop.table().write(&disable).await.unwrap().is_err());
    assert!(shop.endpoint(&id).await.disabled.is_none());
}

#[tokio::test]
async fn an_order_of_many_lines_comes_without_them() {
    let (shop, receiver) = (Shop::open().await, Receiver::start().await);
    shop.register(1, &receiver.url, &["order.placed"]).await;
    let sample = include_str!("../../../../events/notifier-order-placed.json");
    let mut data = serde_json::from_str::<Value>(sample).unwrap()["detail"]["data"].take();
    for (number, lines) in [(1, 1), (2, 400)] {
        data["lines"] = vec![data["lines"][0].clone(); lines].into();
        (data["line_count"], data["lines_left_out"]) = (json!(lines), json!(0));
        shop.take(&[message("OrderPlaced", number, &data)]).await;
    }
    let [small, large] = <[_; 2]>::try_from(receiver.received()).unwrap().map(|request| {
        assert!(request.body.len() <= 16 * 1024, "{} bytes", request.body.len());
        serde_json::from_str::<Value>(&request.body).unwrap()["data"].take()
    });
    assert_eq!((small["lines"].as_array().unwrap().len(), &small["lines_left_out"]), (1, &json!(0)));
    assert_eq!(
        (&large["lines"], &large["lines_left_out"], &large["line_count"]),
        (&json!([]), &json!(400), &json!(400))
    );
}

#[tokio::test]
async fn two_rounds_at_once_send_each_delivery_once() {
    let (shop, receiver) = (Shop::open().await, Receiver::start().await);
    let id = shop.register(1, &receiver.url, &["*"]).await;
    shop.table().write(&webhook_endpoint::fails(&id, Instant::now()).unwrap()).await.unwrap().unwrap();
    let messages: Vec<Value> = (1..=8).map(low).collect();
    shop.take(&messages).await;
    let round = || Box::pin(shop.courier.run_round(shop.stop()));
    let (one, other) = tokio::join!(round(), round());
    assert_eq!(one.unwrap().delivered + other.unwrap().delivered, 8);
    assert_eq!(receiver.received().len(), 8);
}

#[tokio::test]
async fn a_redelivery_during_an_attempt_is_not_undone_by_its_end() {
    let (shop, receiver) = (Shop::open().await, Receiver::start().await);
    let id = shop.register(1, &receiver.url, &["*"]).await;
    shop.take(&[low(1)]).await;
    let (now, delivery) = (Instant::now(), shop.delivery(&id).await.id);
    let again = || webhook_delivery::redeliver(&id, &delivery, now).unwrap();
    shop.table().update(&again()).await.unwrap().unwrap();
    let lease = now.plus_seconds(60);
    let claim = webhook_delivery::claim(&id, &delivery, now, lease).unwrap();
    let claimed = shop.table().update(&claim).await.unwrap().unwrap().data;
    shop.table().update(&again()).await.unwrap().unwrap();
    let settle = webhook_delivery::settle(&claimed, lease, None, DeliveryState::Failed, now).unwrap();
    assert!(shop.table().write(&settle).await.unwrap().is_err());
    assert_eq!(shop.courier.run_round(shop.stop()).await.unwrap().delivered, 1);
    assert_eq!(receiver.received().len(), 2);
}
