use serde_json::json;

use super::*;
use emulators::payments::SteeringError;

#[tokio::test]
async fn refunds_never_exceed_the_captured_amount() {
    let stripe = Stripe::new().await;
    let (held, other) = (stripe.created(MANUAL).await, stripe.created(MANUAL).await);
    let refund =
        async |intent: &str, rest: &str| stripe.post("/v1/refunds", &format!("payment_intent={intent}{rest}")).await;
    let early = refund(&held, "").await;
    assert!(early.error("message").contains("does not have a successful charge to refund"), "{early:?}");
    stripe.post(&format!("{INTENTS}/{held}/capture"), "amount_to_capture=700").await;
    let first = refund(&held, "&amount=200&reason=duplicate&metadata[operation]=7").await;
    assert_eq!((first.status, &first.body["status"], &first.body["amount"]), (200, &json!("succeeded"), &json!(200)));
    assert_eq!(first.body["metadata"], json!({"operation": "7"}));
    let much = refund(&held, "&amount=501").await;
    assert_eq!((much.status, much.error("param")), (400, "amount"));
    assert!(much.error("message").contains("greater than unrefunded amount"), "{much:?}");
    assert_eq!(refund(&held, "").await.body["amount"], 500);
    assert_eq!(refund(&held, "&amount=1").await.error("code"), "charge_already_refunded");
    assert_eq!(refund("pi_other", "").await.error("code"), "resource_missing");
    assert_eq!((stripe.account(&held).captured, stripe.account(&held).refunded), (700, 700));
    assert_eq!(stripe.intent(&held).await["latest_charge"]["refunded"], true);

    stripe.post(&format!("{INTENTS}/{other}/cancel"), "").await;
    let amounts = async |query: &str| {
        let list = stripe.get(&format!("/v1/refunds?{query}")).await.body;
        let amounts: Vec<i64> =
            list["data"].as_array().unwrap().iter().map(|one| one["amount"].as_i64().unwrap()).collect();
        (amounts, list["has_more"].as_bool().unwrap())
    };
    // The released amounts are refunds, too.
    assert_eq!(amounts(&format!("payment_intent={held}")).await, (vec![500, 200, 300], false));
    assert_eq!(amounts("limit=1").await, (vec![1000], true));
    let id = first.body["id"].as_str().unwrap();
    assert_eq!(amounts(&format!("payment_intent={held}&starting_after={id}")).await, (vec![300], false));
    assert_eq!(stripe.get(&format!("/v1/refunds/{id}")).await.body, first.body);
    assert_eq!(stripe.get("/v1/refunds/re_other").await.status, 404);
}

#[tokio::test]
async fn a_refund_can_pend_or_fail_later() {
    for (method, first, later, refunded, events) in [
        ("pm_card_pendingRefund", "pending", "succeeded", 400, vec!["refund.updated"]),
        ("pm_card_refundFail", "succeeded", "failed", 0, vec!["refund.failed", "refund.updated"]),
    ] {
        let stripe = Stripe::new().await;
        let intent = stripe.created(&AUTOMATIC.replace("pm_card_visa", method)).await;
        let refund = stripe.post("/v1/refunds", &format!("payment_intent={intent}&amount=400")).await.body;
        assert_eq!((refund["status"].as_str(), stripe.account(&intent).refunded), (Some(first), 400), "{method}");
        let before = stripe.events_after(0).len() as u64;
        stripe.server.settle_refunds(&intent).unwrap();
        assert_eq!(stripe.events_after(before), events, "{method}");
        let settled = stripe.get(&format!("/v1/refunds/{}", refund["id"].as_str().unwrap())).await.body;
        assert_eq!((settled["status"].as_str(), stripe.account(&intent).refunded), (Some(later), refunded), "{method}");
        assert_eq!(stripe.server.settle_refunds(&intent), Err(SteeringError::NoRefund));
    }
}
