use serde_json::json;

use super::*;
use emulators::payments::{Status, SteeringError};

const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);

#[tokio::test]
async fn each_test_payment_method_has_its_documented_outcome() {
    let stripe = Stripe::new().await;
    for (method, status, state, code, decline_code) in [
        ("pm_card_visa", 200, "requires_capture", "", ""),
        ("pm_card_authenticationRequired", 200, "requires_action", "", ""),
        ("pm_usBankAccount_processing", 200, "processing", "", ""),
        ("pm_card_chargeDeclined", 402, "requires_payment_method", "card_declined", "generic_decline"),
        ("pm_card_visa_chargeDeclined", 402, "requires_payment_method", "card_declined", "generic_decline"),
        (
            "pm_card_visa_chargeDeclinedInsufficientFunds",
            402,
            "requires_payment_method",
            "card_declined",
            "insufficient_funds",
        ),
        ("pm_card_chargeDeclinedExpiredCard", 402, "requires_payment_method", "expired_card", ""),
        ("pm_card_chargeDeclinedProcessingError", 402, "requires_payment_method", "processing_error", ""),
    ] {
        let intent = stripe.created("amount=1000&currency=eur&capture_method=manual").await;
        let body = format!("payment_method={method}");
        let confirmed = stripe.post(&format!("{INTENTS}/{intent}/confirm"), &body).await;
        assert_eq!(confirmed.status, status, "{method}");
        let got = (confirmed.error("code"), confirmed.error("decline_code"));
        assert_eq!(got, (code, decline_code), "{method}");
        let stored = stripe.intent(&intent).await;
        assert_eq!(stored["status"], state, "{method}");
        assert_eq!(stored["last_payment_error"]["code"].as_str().unwrap_or_default(), code, "{method}");
        if status == 402 {
            let error = &confirmed.body["error"];
            assert_eq!((error["type"].as_str(), &error["payment_intent"]["id"]), (Some("card_error"), &stored["id"]));
            assert_eq!(
                (&stored["latest_charge"]["status"], &stored["payment_method"]),
                (&json!("failed"), &Value::Null)
            );
            assert_eq!(error["charge"], stored["latest_charge"]["id"]);
        }
    }
}

#[tokio::test]
async fn a_declined_payment_can_be_confirmed_again() {
    let stripe = Stripe::new().await;
    let declined = AUTOMATIC.replace("pm_card_visa", "pm_card_chargeDeclined");
    let intent = stripe.created(&declined).await;
    let confirm = format!("{INTENTS}/{intent}/confirm");
    let missing = stripe.post(&confirm, "").await;
    assert!(missing.error("message").contains("missing a payment method"), "{missing:?}");
    let paid = stripe.post(&confirm, "payment_method=pm_card_visa").await;
    assert_eq!((paid.body["status"].as_str(), &paid.body["last_payment_error"]), (Some("succeeded"), &Value::Null));
}

#[tokio::test]
async fn a_capture_takes_a_part_and_releases_the_rest() {
    let stripe = Stripe::new().await;
    let created = stripe.post(INTENTS, "amount=1000&currency=EUR&capture_method=manual").await.body;
    let id = created["id"].as_str().unwrap();
    assert_eq!(
        (created["status"].as_str(), created["currency"].as_str()),
        (Some("requires_payment_method"), Some("eur"))
    );
    assert!(created["client_secret"].as_str().unwrap().starts_with(&format!("{id}_secret_")));
    let held = stripe.post(&format!("{INTENTS}/{id}/confirm"), "payment_method=pm_card_visa").await.body;
    assert_eq!((&held["amount_capturable"], &held["amount_received"]), (&json!(1000), &json!(0)));
    assert!(held["latest_charge"].is_string());
    let charge = &stripe.intent(id).await["latest_charge"];
    assert_eq!(charge["payment_method_details"]["card"]["capture_before"], START + 604_800);
    assert_eq!((&charge["captured"], &charge["status"]), (&json!(false), &json!("succeeded")));

    let captured = stripe.post(&format!("{INTENTS}/{id}/capture"), "amount_to_capture=700").await.body;
    assert_eq!(captured["status"], "succeeded");
    assert_eq!((&captured["amount_capturable"], &captured["amount_received"]), (&json!(0), &json!(700)));
    let charge = &stripe.intent(id).await["latest_charge"];
    assert_eq!((&charge["amount_captured"], &charge["amount_refunded"]), (&json!(700), &json!(300)));
    let Account { status, capturable, captured, refunded, .. } = stripe.account(id);
    assert_eq!((status, capturable, captured, refunded), (Status::Succeeded, 0, 700, 0));
}

#[tokio::test]
async fn a_call_in_the_wrong_state_is_refused_as_stripe_refuses_it() {
    let stripe = Stripe::new().await;
    let (held, paid) = (stripe.created(MANUAL).await, stripe.created(AUTOMATIC).await);
    let (open, ended) = (stripe.created("amount=50&currency=usd").await, stripe.created(MANUAL).await);
    let processing = stripe.created(&AUTOMATIC.replace("pm_card_visa", "pm_usBankAccount_processing")).await;
    let canceled = stripe.post(&format!("{INTENTS}/{ended}/cancel"), "cancellation_reason=duplicate").await.body;
    assert_eq!((&canceled["status"], &canceled["cancellation_reason"]), (&json!("canceled"), &json!("duplicate")));
    assert_eq!((&canceled["canceled_at"], &canceled["amount_capturable"]), (&json!(START), &json!(0)));
    let state = "payment_intent_unexpected_state";
    for (intent, call, code, message) in [
        (&held, "capture?amount_to_capture=1001", "amount_too_large", "greater than the authorized amount"),
        (&held, "confirm", state, "has a status of requires_capture"),
        (&open, "capture", state, "has a status of requires_payment_method"),
        (&open, "confirm", state, "missing a payment method"),
        (&paid, "capture", state, "has already been captured"),
        (&paid, "confirm", state, "has already succeeded"),
        (&paid, "cancel", state, "has a status of succeeded"),
        (&ended, "capture", state, "has a status of canceled"),
        (&ended, "confirm", state, "has a status of canceled"),
        (&ended, "cancel", state, "has a status of canceled"),
        (&processing, "capture", state, "has a status of processing"),
        (&processing, "confirm", state, "has a status of processing"),
    ] {
        let before = stripe.account(intent);
        let refused = stripe.post(&format!("{INTENTS}/{intent}/{call}"), "").await;
        assert_eq!((refused.status, refused.error("code")), (400, code), "{call}");
        assert!(refused.error("message").contains(message), "{call}: {refused:?}");
        assert_eq!(refused.body["error"]["payment_intent"]["id"], intent.as_str(), "{call}");
        assert_eq!(stripe.account(intent), before, "{call}");
    }
}

#[tokio::test]
async fn the_customer_authenticates_or_fails_and_a_bank_debit_settles_or_fails() {
    for (method, action, status, code) in [
        ("pm_card_authenticationRequired", "confirm", Status::RequiresCapture, ""),
        (
            "pm_card_authenticationRequired",
            "decline",
            Status::RequiresPaymentMethod,
            "payment_intent_authentication_failure",
        ),
        (
            "pm_card_authenticationRequiredChargeDeclinedInsufficientFunds",
            "confirm",
            Status::RequiresPaymentMethod,
            "card_declined",
        ),
        ("pm_usBankAccount_processing", "confirm", Status::RequiresCapture, ""),
        ("pm_usBankAccount_processing", "decline", Status::RequiresPaymentMethod, "card_declined"),
    ] {
        let stripe = Stripe::new().await;
        let intent = stripe.created(&MANUAL.replace("pm_card_visa", method)).await;
        let is_action = stripe.intent(&intent).await["next_action"].is_object();
        assert_eq!(is_action, method.starts_with("pm_card"), "{method}");
        match action {
            "confirm" => stripe.server.confirm(&intent, None).unwrap(),
            _ => stripe.server.decline(&intent).unwrap(),
        }
        assert_eq!(stripe.account(&intent).status, status, "{method} {action}");
        let error = &stripe.intent(&intent).await["last_payment_error"]["code"];
        assert_eq!(error.as_str().unwrap_or_default(), code, "{method} {action}");
    }
}

#[tokio::test]
async fn a_customer_pays_with_the_client_secret_and_an_impossible_step_is_refused() {
    let stripe = Stripe::new().await;
    let intent = stripe.created("amount=1000&currency=eur").await;
    stripe.server.decline(&intent).unwrap();
    assert_eq!(stripe.account(&intent).status, Status::RequiresPaymentMethod);
    stripe.server.confirm(&intent, None).unwrap();
    assert_eq!(stripe.account(&intent).status, Status::Succeeded);
    let wrong = Err(SteeringError::Status(Status::Succeeded));
    assert_eq!(stripe.server.confirm(&intent, None), wrong);
    assert_eq!(stripe.server.decline(&intent), wrong);
    assert_eq!(stripe.server.expire(&intent), wrong);
    assert_eq!(stripe.server.expire("pi_other"), Err(SteeringError::Unknown("pi_other".to_owned())));
}

#[tokio::test]
async fn an_authorisation_expires_after_seven_days() {
    let stripe = Stripe::new().await;
    let (expiring, captured) = (stripe.created(MANUAL).await, stripe.created(MANUAL).await);
    stripe.post(&format!("{INTENTS}/{captured}/capture"), "").await;
    stripe.server.advance(WEEK - Duration::from_secs(1));
    assert_eq!(stripe.account(&expiring).status, Status::RequiresCapture);
    stripe.server.advance(Duration::from_secs(1));
    assert_eq!(stripe.account(&captured).captured, 1000);
    let intent = stripe.intent(&expiring).await;
    assert_eq!((&intent["status"], &intent["cancellation_reason"]), (&json!("canceled"), &json!("automatic")));
    let late = stripe.post(&format!("{INTENTS}/{expiring}/capture"), "").await;
    assert_eq!(late.error("code"), "payment_intent_unexpected_state");
    let steered = stripe.created(MANUAL).await;
    stripe.server.expire(&steered).unwrap();
    assert_eq!(stripe.account(&steered).status, Status::Canceled);
}

#[tokio::test]
async fn payments_are_listed_from_the_newest_in_pages_and_by_time() {
    let stripe = Stripe::new().await;
    let mut ids = Vec::new();
    for _ in 0..12 {
        ids.insert(0, stripe.created("amount=1000&currency=eur").await);
        stripe.server.advance(Duration::from_secs(1));
    }
    let (third, last) = (START + 2, START + 11);
    for (query, from, to, has_more) in [
        (String::new(), 0, 10, true),
        ("?limit=3".to_owned(), 0, 3, true),
        (format!("?limit=100&starting_after={}", ids[2]), 3, 12, false),
        (format!("?created[gte]={third}&created[lt]={last}&limit=100"), 1, 10, false),
        (format!("?created[gt]={third}&created[lte]={last}"), 0, 9, false),
    ] {
        let list = stripe.get(&format!("{INTENTS}{query}")).await.body;
        let found: Vec<&str> = list["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
        assert_eq!(
            (found, &list["has_more"]),
            (ids[from..to].iter().map(String::as_str).collect(), &json!(has_more)),
            "{query}"
        );
    }
    let charged = stripe.created(MANUAL).await;
    let expanded = stripe.get(&format!("{INTENTS}?limit=1&expand[]=data.latest_charge")).await.body;
    assert_eq!(expanded["data"][0]["latest_charge"]["payment_intent"], charged.as_str());
}

#[tokio::test]
async fn the_search_finds_metadata_only_some_time_after_a_change() {
    let stripe = Stripe::new().await;
    let body = "amount=1000&currency=eur&metadata[order]=A+1&metadata[shop]=1";
    let (one, two) = (stripe.created(body).await, stripe.created(body).await);
    let find = async |query: &str| {
        let found = stripe.get(&format!("{INTENTS}/search?limit=1&{query}")).await;
        assert_eq!((found.status, found.body["object"].as_str()), (200, Some("search_result")), "{query}");
        (found.body["data"][0]["id"].as_str().map(str::to_owned), found.body["next_page"].as_str().map(str::to_owned))
    };
    let query = "query=metadata['order']:'a%201'%20AND%20status:\"requires_payment_method\"";
    stripe.server.advance(Duration::from_secs(59));
    assert_eq!(find(query).await, (None, None));
    stripe.server.advance(Duration::from_secs(1));
    assert_eq!(find(query).await, (Some(two.clone()), Some(two.clone())));
    assert_eq!(find(&format!("{query}&page={two}")).await, (Some(one.clone()), None));
    assert_eq!(find("query=metadata['order']:'A+2'").await, (None, None));
    stripe.post(&format!("{INTENTS}/{two}"), "metadata[shop]=2").await;
    assert_eq!(find("query=metadata['order']:'A+1'").await, (Some(one), None));
}

#[tokio::test]
async fn metadata_is_merged_and_empty_values_remove_it() {
    let stripe = Stripe::new().await;
    let intent = stripe.created("amount=1000&currency=eur&metadata[a]=1&metadata[b]=%C3%A4+%26&description=Tea").await;
    for (body, metadata) in [
        ("", json!({"a": "1", "b": "ä &"})),
        ("metadata[a]=2&metadata[c]=3", json!({"a": "2", "b": "ä &", "c": "3"})),
        ("metadata[a]=", json!({"b": "ä &", "c": "3"})),
        ("metadata=", json!({})),
    ] {
        let updated = stripe.post(&format!("{INTENTS}/{intent}"), body).await.body;
        assert_eq!((&updated["metadata"], updated["description"].as_str()), (&metadata, Some("Tea")), "{body}");
    }
}
