use super::*;

#[tokio::test]
async fn a_key_gets_the_stored_response_of_the_same_request() {
    let stripe = Stripe::new().await;
    for (body, status) in [(MANUAL.to_owned(), 200), (MANUAL.replace("pm_card_visa", "pm_card_chargeDeclined"), 402)] {
        let key = format!("key {status}");
        let first = stripe.post_with_key(INTENTS, &key, &body).await;
        assert_eq!((first.status, first.is_replayed), (status, false));
        // The order of the parameters does not matter.
        let (amount, rest) = body.split_once('&').unwrap();
        let again = stripe.post_with_key(INTENTS, &key, &format!("{rest}&{amount}")).await;
        assert_eq!(again, Reply { is_replayed: true, ..first });
    }
    assert_eq!(stripe.server.accounts().len(), 2);
}

#[tokio::test]
async fn a_key_is_refused_with_other_parameters_and_at_another_endpoint() {
    let stripe = Stripe::new().await;
    let intent = stripe.post_with_key(INTENTS, "k", MANUAL).await.body;
    let capture = format!("{INTENTS}/{}/capture", intent["id"].as_str().unwrap());
    for (path, body, message) in [
        (INTENTS, MANUAL.replace("1000", "1001"), "same parameters"),
        (INTENTS, format!("{MANUAL}&description=x"), "same parameters"),
        (capture.as_str(), String::new(), "same endpoint"),
    ] {
        let refused = stripe.post_with_key(path, "k", &body).await;
        assert_eq!((refused.status, refused.error("type")), (400, "idempotency_error"), "{body}");
        assert!(refused.error("message").contains(message), "{refused:?}");
    }
    assert_eq!(stripe.server.accounts().len(), 1);
    assert_eq!(stripe.post_with_key(INTENTS, &"k".repeat(256), MANUAL).await.status, 400);
}

#[tokio::test]
async fn a_key_is_in_use_while_its_request_runs_and_the_request_ends_without_its_client() {
    let stripe = Stripe::new().await;
    let hold = stripe.server.hold().await;
    let request = stripe.request("POST", INTENTS, MANUAL).header("idempotency-key", "k");
    let client = tokio::spawn(reply(request));
    until(|| stripe.server.keys_in_use() == 1).await;
    let seen = stripe.post_with_key(INTENTS, "k", MANUAL).await;
    assert_eq!((seen.status, stripe.server.accounts().len()), (409, 0));
    assert_eq!((seen.error("code"), seen.retry.as_deref()), ("idempotency_key_in_use", Some("true")));
    client.abort();
    assert!(client.await.is_err());
    drop(hold);
    until(|| stripe.server.keys_in_use() == 0).await;
    let replayed = stripe.post_with_key(INTENTS, "k", MANUAL).await;
    assert!(replayed.is_replayed);
    assert_eq!(stripe.server.accounts().len(), 1);
}

#[tokio::test]
async fn a_refusal_before_the_execution_is_not_stored_and_a_later_refusal_is() {
    let stripe = Stripe::new().await;
    let invalid = stripe.post_with_key(INTENTS, "k", "amount=x&currency=eur").await;
    assert_eq!((invalid.status, invalid.error("code")), (400, "parameter_invalid_integer"));
    let valid = stripe.post_with_key(INTENTS, "k", MANUAL).await;
    assert_eq!((valid.status, valid.is_replayed), (200, false));
    let capture = format!("{INTENTS}/{}/capture", valid.body["id"].as_str().unwrap());
    let much = stripe.post_with_key(&capture, "c", "amount_to_capture=1001").await;
    let again = stripe.post_with_key(&capture, "c", "amount_to_capture=1001").await;
    assert_eq!(again, Reply { is_replayed: true, ..much });
}

#[tokio::test]
async fn a_key_lives_for_24_hours_and_reads_have_none() {
    let stripe = Stripe::new().await;
    let day = Duration::from_secs(24 * 60 * 60);
    stripe.post_with_key(INTENTS, "k", MANUAL).await;
    stripe.server.advance(day - Duration::from_secs(1));
    assert!(stripe.post_with_key(INTENTS, "k", MANUAL).await.is_replayed);
    stripe.server.advance(Duration::from_secs(1));
    assert!(!stripe.post_with_key(INTENTS, "k", MANUAL).await.is_replayed);
    assert_eq!(stripe.server.accounts().len(), 2);
    let read = async || reply(stripe.request("GET", INTENTS, "").header("idempotency-key", "k")).await.unwrap();
    let before = read().await;
    stripe.post(INTENTS, MANUAL).await;
    assert_ne!(read().await, before);
}
