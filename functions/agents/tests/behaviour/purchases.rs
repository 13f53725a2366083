//! Tests of purchases: a checkout becomes one order, and the order is paid once.

use emulators::faults::{Fault, FaultKind};
use fixture::crash_after;
use futures::future::join_all;
use http_api::sample::{Answered, Call};
use key_schema::order::{OrderStatus, PlacedOrder};
use key_schema::payment::PaymentMethod;
use key_schema::promotion::Conditions;
use serde_json::{Value, json};

use crate::shop::{
    CANCEL, COMPLETE, CREATE, ORDER, READ, REPLACE, Shop, amount, codes, payment, refused, shipping, usd, wanted, with,
};

const THREE_D_SECURE: &str = "pm_card_threeDSecure2Required";
const DECLINED: &str = "pm_card_chargeDeclined";

/// Returns the amount that the provider has captured for each payment.
fn captured(shop: &Shop) -> Vec<i64> {
    shop.provider.accounts().iter().map(|account| account.captured).filter(|amount| *amount > 0).collect()
}

fn is_alive(order: &PlacedOrder) -> bool {
    order.head.status != OrderStatus::Cancelled
}

#[tokio::test]
async fn an_agent_buys_as_a_guest_with_a_card() {
    let shop = Shop::open().await;
    shop.ship().await;
    shop.promote("TEN", Conditions::default()).await;
    let more = with(shipping("CH", None), &json!({ "discounts": { "codes": ["TEN"] } }));
    let body = with(wanted(&[("tea", 2)]), &more);
    let session = shop.expect(201, shop.acme.call("POST /ucp/checkout-sessions").json(&body)).await;
    assert_eq!(session["status"], "ready_for_complete", "{session}");
    let done = shop.expect(200, shop.acme.complete(&session, "spt_card_visa")).await;
    assert_eq!((&done["status"], &done["id"], codes(&done)), (&json!("completed"), &session["id"], vec![]), "{done}");
    assert_eq!(done["totals"], session["totals"]);
    assert_eq!((amount(&done, "total"), captured(&shop), shop.stock("tea").await), (Some(1600), vec![1600], 8));

    let link = done["order"]["permalink_url"].as_str().unwrap();
    let id = done["order"]["id"].as_str().unwrap();
    let (page, token) = link.split_once("#token=").unwrap();
    assert!(page.ends_with(&format!("/orders/{id}")), "{link}");
    let order = shop.order(&id.parse().unwrap()).await;
    assert_eq!(order.head.token_hash, Some(key_schema::order::guest::OrderToken::given(token).hash()));
    assert_eq!((order.head.status, order.head.total), (OrderStatus::Paid, usd(1600)));
    assert!(order.head.customer_id.as_str().starts_with("guest:"));

    let read = shop.expect(200, shop.acme.call(ORDER).path("id", id)).await;
    assert_eq!((&read["checkout_id"], &read["totals"]), (&session["id"], &done["totals"]), "{read}");
    assert_eq!(read["line_items"][0]["quantity"], json!({ "original": 2, "total": 2, "fulfilled": 0 }));
    let place = &read["fulfillment"]["expectations"][0]["destination"];
    assert_eq!((&place["first_name"], &place["last_name"]), (&json!("Gil"), &json!("Roth")));
    assert_eq!(place["address_country"], "CH");
    let other = shop.agent("other").await;
    for call in [other.call(ORDER).path("id", id), shop.acme.call(ORDER).path("id", "none")] {
        assert_eq!(codes(&shop.expect(200, call).await), ["not_found"]);
    }

    // The checkout is what it was, whatever the shop does later.
    shop.reprice("tea", 900).await;
    assert_eq!(shop.see(&session).await, done);
    assert_eq!(shop.expect(200, shop.acme.complete(&session, "pm_card_visa")).await, done);
    for call in [shop.acme.about(CANCEL, &session), shop.acme.about(REPLACE, &session).json(&body)] {
        assert_eq!(refused(&shop.send(call).await), (409, "checkout_completed"));
    }
    assert_eq!((captured(&shop), shop.orders().await.len()), (vec![1600], 1));
}

#[tokio::test]
async fn the_buyer_may_come_with_the_payment() {
    let shop = Shop::open().await;
    let lines = json!({ "line_items": [{ "item": { "id": "tea" }, "quantity": 1 }] });
    let session = shop.expect(201, shop.acme.call("POST /ucp/checkout-sessions").json(&lines)).await;
    let early = shop.expect(200, shop.acme.complete(&session, "pm_card_visa")).await;
    assert_eq!((&early["status"], codes(&early)), (&json!("incomplete"), vec!["missing", "missing"]), "{early}");
    let body = with(payment("pm_card_visa"), &json!({ "buyer": { "email": "gil@example.com", "first_name": "Gil" } }));
    // The price that the agent has seen counts, also when the buyer comes later.
    shop.reprice("tea", 600).await;
    let changed = shop.expect(200, shop.acme.about(COMPLETE, &session).json(&body)).await;
    assert_eq!(
        (&changed["status"], codes(&changed)),
        (&json!("ready_for_complete"), vec!["price_changed"]),
        "{changed}"
    );
    assert_eq!(shop.orders().await.len(), 0);
    let done = shop.expect(200, shop.acme.about(COMPLETE, &session).json(&body)).await;
    assert_eq!((&done["status"], &done["buyer"]["first_name"]), (&json!("completed"), &json!("Gil")), "{done}");
    assert_eq!((captured(&shop), shop.stock("tea").await), (vec![600], 9));
}

#[tokio::test]
async fn a_declined_card_leaves_the_checkout_open_for_another_one() {
    let shop = Shop::open().await;
    let session = shop.ready().await;
    let complete = |token: &str, key: &str| shop.acme.complete(&session, token).header("idempotency-key", key);
    let declined = shop.expect(200, complete(DECLINED, "k1")).await;
    assert_eq!(codes(&declined), ["payment_failed"], "{declined}");
    assert_eq!((&declined["status"], declined.get("order")), (&json!("ready_for_complete"), None));
    assert!(declined["messages"][0]["content"].as_str().unwrap().contains("generic_decline"), "{declined}");
    // The stock is reserved, and a repeated request does not try the card again.
    let tries = shop.provider.accounts()[0].clone();
    assert_eq!(codes(&shop.expect(200, complete(DECLINED, "k1")).await), ["payment_failed"]);
    assert_eq!(shop.provider.accounts(), [tries]);
    assert_eq!((shop.stock("tea").await, codes(&shop.see(&session).await)), (9, vec!["payment_failed"]));
    let wrong = shop.send(complete("pm_card_visa", "k1")).await;
    assert_eq!(refused(&wrong), (409, "idempotency_conflict"));

    let done = shop.expect(200, complete("pm_card_visa", "k2")).await;
    assert_eq!((&done["status"], captured(&shop)), (&json!("completed"), vec![500]), "{done}");
    assert_eq!((shop.orders().await.len(), shop.stock("tea").await), (1, 9));
    for key in ["k1", "k2"] {
        let token = if key == "k1" { DECLINED } else { "pm_card_visa" };
        assert_eq!(shop.expect(200, complete(token, key)).await["status"], "completed");
    }
    assert_eq!(captured(&shop), [500]);
}

#[tokio::test]
async fn a_card_that_needs_its_owner_sends_the_buyer_to_the_shop() {
    let shop = Shop::open().await;
    shop.set_values(&json!({ "agents": { "shop_url": "https://shop.example" } })).await;
    let session = shop.ready().await;
    let escalated = shop.expect(200, shop.acme.complete(&session, THREE_D_SECURE)).await;
    assert_eq!((&escalated["status"], codes(&escalated)), (&json!("requires_escalation"), vec!["requires_3ds"]));
    let url = escalated["continue_url"].as_str().unwrap();
    assert!(url.starts_with("https://shop.example/orders/") && url.contains("#token="), "{url}");
    assert_eq!((escalated.get("order"), captured(&shop).len()), (None, 0));

    // The buyer authenticates, and the notice of the provider arrives.
    let intent = shop.provider.accounts()[0].intent.clone();
    shop.provider.confirm(&intent, None).unwrap();
    let order = shop.orders().await.remove(0).head.data.id;
    shop.app.shop.settled(&order, Some(&intent)).await.unwrap();
    let done = shop.see(&session).await;
    assert_eq!((&done["status"], &done["order"]["id"]), (&json!("completed"), &json!(order)), "{done}");
}

#[tokio::test]
async fn an_instrument_that_the_shop_does_not_take_is_a_message() {
    let shop = Shop::open().await;
    let session = shop.ready().await;
    let instrument = |handler: &str, token: &str| {
        let credential = json!({ "type": "token", "token": token });
        json!({ "payment": { "instruments": [{ "id": "i", "handler_id": handler, "credential": credential }] } })
    };
    for body in [
        json!({ "payment": { "instruments": [] } }),
        instrument("other", "pm_card_visa"),
        instrument("stripe", "tok_visa"),
        instrument("stripe", "pm_card&amount=1"),
        instrument("stripe", &format!("pm_{}", "x".repeat(500))),
    ] {
        let answer = shop.expect(200, shop.acme.about(COMPLETE, &session).json(&body)).await;
        assert_eq!(
            (&answer["status"], codes(&answer)),
            (&json!("ready_for_complete"), vec!["payment_failed"]),
            "{body}"
        );
    }
    assert!(shop.orders().await.is_empty() && shop.provider.accounts().is_empty());
    let unknown = shop.expect(200, shop.acme.complete(&session, "pm_unknown")).await;
    assert_eq!((codes(&unknown), captured(&shop).len()), (vec!["payment_failed"], 0), "{unknown}");
}

#[tokio::test]
async fn a_price_that_changed_is_shown_before_it_is_charged() {
    let shop = Shop::open().await;
    let session = shop.ready().await;
    shop.reprice("tea", 700).await;
    // The agent repeats its request, because the response may be lost.
    let complete = |key: &str| shop.acme.complete(&session, "pm_card_visa").header("idempotency-key", key);
    for _ in 0..3 {
        let changed = shop.expect(200, complete("k1")).await;
        assert_eq!((&changed["status"], codes(&changed)), (&json!("ready_for_complete"), vec!["price_changed"]));
        assert_eq!((amount(&changed, "total"), shop.orders().await.len(), captured(&shop).len()), (Some(700), 0, 0));
    }
    // A read shows a price, too.
    shop.reprice("tea", 800).await;
    assert_eq!(amount(&shop.see(&session).await, "total"), Some(800));
    let done = shop.expect(200, complete("k2")).await;
    assert_eq!((&done["status"], captured(&shop)), (&json!("completed"), vec![800]));
    let repeated = shop.expect(200, complete("k1")).await;
    assert_eq!((&repeated["status"], captured(&shop)), (&json!("completed"), vec![800]));
}

/// The price of the stored method does not matter if a read has shown another one.
#[tokio::test]
async fn the_price_that_counts_is_the_one_that_was_shown_last() {
    let shop = Shop::open().await;
    let session = shop.ready().await;
    let litres = json!({ "item": { "id": "tea", "quantity_unit": { "unit": "LTR" } }, "quantity": 1 });
    let refused = shop.acme.about(REPLACE, &session).json(&json!({ "line_items": [litres] }));
    for show in [shop.acme.about(READ, &session), refused, shop.acme.complete(&session, "tok_visa")] {
        shop.reprice("tea", 400).await;
        assert_eq!(amount(&shop.expect(200, show).await, "total"), Some(400));
        shop.reprice("tea", 500).await;
        let changed = shop.expect(200, shop.acme.complete(&session, "pm_card_visa")).await;
        assert_eq!((codes(&changed), captured(&shop).len()), (vec!["price_changed"], 0), "{changed}");
    }
}

#[tokio::test]
async fn a_repeated_request_pays_only_the_order_that_it_has_placed() {
    let shop = Shop::open().await;
    let session = shop.ready().await;
    let complete = |token: &str, key: &str| shop.acme.complete(&session, token).header("idempotency-key", key);
    shop.expect(200, complete(DECLINED, "k1")).await;
    shop.ok(shop.acme.about(REPLACE, &session).json(&wanted(&[("tea", 3)]))).await;
    let repeated = shop.expect(200, complete(DECLINED, "k1")).await;
    assert_eq!((&repeated["status"], shop.stock("tea").await), (&json!("ready_for_complete"), 10), "{repeated}");
    shop.expect(200, complete(DECLINED, "k2")).await;
    let repeated = shop.expect(200, complete(DECLINED, "k1")).await;
    assert_eq!((amount(&repeated, "total"), captured(&shop).len()), (Some(1500), 0), "{repeated}");
    assert_eq!(shop.stock("tea").await, 7);
}

#[tokio::test]
async fn an_agent_tries_ten_cards_for_an_order() {
    let shop = Shop::open().await;
    let session = shop.ready().await;
    for number in 0..10 {
        let key = format!("k{number}");
        let declined = shop.expect(200, shop.acme.complete(&session, DECLINED).header("idempotency-key", &key)).await;
        assert_eq!(codes(&declined), ["payment_failed"], "{declined}");
    }
    // A key is used up for every card.
    let reused = shop.acme.complete(&session, "pm_card_visa").header("idempotency-key", "k7");
    assert_eq!(refused(&shop.send(reused).await), (409, "idempotency_conflict"));
    let refused = shop.expect(200, shop.acme.complete(&session, "pm_card_visa")).await;
    assert_eq!((&refused["status"], captured(&shop).len()), (&json!("requires_escalation"), 0), "{refused}");
}

#[tokio::test]
async fn a_payment_whose_result_is_not_known_is_in_progress_and_charged_once() {
    for kind in [FaultKind::Error, FaultKind::ErrorAfter] {
        let shop = Shop::open().await;
        let session = shop.ready().await;
        let complete = |token: &str, key: &str| shop.acme.complete(&session, token).header("idempotency-key", key);
        shop.expect(200, complete(DECLINED, "k1")).await;
        shop.provider.faults().add(Fault { kind, rate: 1.0, count: None, seed: 0 }).unwrap();
        let unknown = shop.expect(200, complete("pm_card_visa", "k2")).await;
        // If only the response is lost, a read of the payment tells the result.
        let is_lost = kind == FaultKind::ErrorAfter;
        let expected = if is_lost { "completed" } else { "complete_in_progress" };
        assert_eq!((&unknown["status"], codes(&unknown)), (&json!(expected), vec![]), "{kind:?}: {unknown}");
        shop.provider.faults().clear();
        let repeated = shop.expect(200, complete("pm_card_visa", "k2")).await;
        assert_eq!(repeated["status"], if is_lost { "completed" } else { "ready_for_complete" }, "{repeated}");
        assert_eq!(shop.expect(200, complete("pm_card_visa", "k3")).await["status"], "completed");
        assert_eq!((captured(&shop), shop.orders().await.len()), (vec![500], 1));
    }
}

/// UCP stores a key with every result, so another request with it is a conflict, and none is executed twice.
#[tokio::test]
async fn a_key_is_used_up_by_every_result() {
    let shop = Shop::open().await;
    shop.priced("gone", 100, 0).await;
    let session = shop.ready().await;
    let keyed = |call: Call, key: &str| call.header("idempotency-key", key);
    let empty = json!({ "line_items": [{ "item": { "id": "tea" }, "quantity": 1 }] });
    let early = shop.expect(201, shop.acme.call(CREATE).json(&empty)).await;
    let replace = |lines: &[(&str, u64)]| shop.acme.about(REPLACE, &session).json(&wanted(lines));
    let create = |lines: &[(&str, u64)]| shop.acme.call(CREATE).json(&wanted(lines));
    for (key, call, said, other) in [
        (
            "k1",
            shop.acme.complete(&session, "tok_visa"),
            "payment_failed",
            shop.acme.complete(&session, "pm_card_visa"),
        ),
        ("k2", shop.acme.complete(&early, "pm_card_visa"), "missing", shop.acme.complete(&early, "pm_card_amex")),
        ("k3", create(&[("gone", 1)]), "out_of_stock", create(&[("tea", 1)])),
        ("k4", replace(&[("gone", 1)]), "out_of_stock", replace(&[("tea", 2)])),
        ("k5", shop.acme.call(CANCEL).path("id", "none"), "not_found", shop.acme.about(CANCEL, &session)),
    ] {
        let first = shop.send(keyed(call.clone(), key)).await;
        assert_eq!((first.status, codes(&first.body)[0]), (200, said), "{key}: {}", first.body);
        if key == "k2" {
            // What is missing comes meanwhile.
            shop.ok(shop.acme.about(REPLACE, &early).json(&wanted(&[("tea", 1)]))).await;
        }
        let again = shop.send(keyed(call, key)).await;
        assert_eq!((&again.body, again.header("idempotency-replayed")), (&first.body, Some("true")), "{key}");
        assert_eq!(refused(&shop.send(keyed(other, key)).await), (409, "idempotency_conflict"), "{key}");
    }
    assert!(shop.orders().await.is_empty() && captured(&shop).is_empty());

    let done = shop.expect(200, keyed(shop.acme.complete(&session, "pm_card_visa"), "k6")).await;
    assert_eq!(done["status"], "completed", "{done}");
    // Another request shows the order, whatever its token is, and uses up its key, too.
    for (key, token, other) in [("k7", "tok_visa", "pm_card_visa"), ("k8", "pm_card_visa", "tok_visa")] {
        assert_eq!(shop.expect(200, keyed(shop.acme.complete(&session, token), key)).await, done);
        assert_eq!(shop.expect(200, keyed(shop.acme.complete(&session, token), key)).await, done);
        let other = shop.send(keyed(shop.acme.complete(&session, other), key)).await;
        assert_eq!(refused(&other), (409, "idempotency_conflict"), "{key}");
    }
    assert_eq!((captured(&shop), shop.orders().await.len()), (vec![500], 1));
    let records = format!("{:?}", shop.items("IDEMPOTENCY#").await);
    assert!(records.contains("payment_failed") && !records.contains("#token="), "{records}");
    shop.ok(shop.acme.about(CANCEL, &early)).await;
    let canceled = shop.send(shop.acme.complete(&early, "tok_visa")).await;
    assert_eq!(refused(&canceled), (409, "checkout_canceled"));
}

#[tokio::test]
async fn a_checkout_whose_payment_is_being_processed_does_not_change() {
    let shop = Shop::open().await;
    let session = shop.ready().await;
    let accepted = shop.expect(200, shop.acme.complete(&session, "pm_usBankAccount_processing")).await;
    assert_eq!((&accepted["status"], accepted.get("order")), (&json!("complete_in_progress"), None), "{accepted}");
    let replaced = shop.expect(200, shop.acme.about(REPLACE, &session).json(&wanted(&[("tea", 3)]))).await;
    let message = &replaced["messages"][0];
    assert_eq!((&message["code"], &message["severity"]), (&json!("payment_in_progress"), &json!("recoverable")));
    assert_eq!((&replaced["status"], &replaced["line_items"]), (&accepted["status"], &accepted["line_items"]));
    assert_eq!(refused(&shop.send(shop.acme.about(CANCEL, &session)).await), (409, "conflict"));
    assert_eq!(shop.see(&session).await, accepted);
    assert_eq!(shop.stock("tea").await, 9);
}

#[tokio::test]
async fn completed_at_once_by_many_requests_a_checkout_is_one_order_and_one_charge() {
    let shop = Shop::open().await;
    let session = shop.ready().await;
    let calls = (0..8).map(|number| {
        let call = shop.acme.complete(&session, "pm_card_visa");
        if number % 2 == 0 { call.header("idempotency-key", "k1") } else { call }
    });
    let answers: Vec<Answered> = join_all(calls.map(|call| shop.settled(call))).await;
    for answer in &answers {
        let status = answer.body["status"].as_str().unwrap_or_default();
        assert!(matches!(status, "completed" | "complete_in_progress") || answer.status == 409, "{}", answer.body);
    }
    let done = shop.expect(200, shop.acme.complete(&session, "pm_card_visa")).await;
    assert_eq!(done["status"], "completed", "{done}");
    let orders = shop.orders().await;
    assert_eq!((orders.len(), captured(&shop), shop.stock("tea").await), (1, vec![500], 9));
    assert_eq!(orders[0].payments.iter().filter(|payment| payment.captured > 0).count(), 1);
}

/// A function that stops anywhere, and an agent that repeats its request.
#[tokio::test]
async fn a_purchase_that_stops_anywhere_is_completed_by_its_repetition() {
    for waits in 0.. {
        let shop = Shop::open().await;
        let session = shop.ready().await;
        let call = || shop.acme.complete(&session, "pm_card_visa").header("idempotency-key", "k1");
        let is_done = crash_after(waits, shop.send(call())).await.is_some();
        let mut done = shop.settled(call()).await.body;
        for _ in 0..3 {
            if done["status"] == "completed" {
                break;
            }
            // The call of the provider whose result is not known. The cashier reads it meanwhile.
            for order in shop.orders().await {
                shop.app.shop.settled(&order.head.id, None).await.unwrap();
            }
            done = shop.settled(call()).await.body;
        }
        assert_eq!(done["status"], "completed", "after {waits}: {done}");
        let orders = shop.orders().await;
        assert_eq!((orders.len(), captured(&shop), shop.stock("tea").await), (1, vec![500], 9), "after {waits}");
        if is_done {
            assert!(waits > 5, "{waits}");
            break;
        }
    }
}

#[tokio::test]
async fn a_change_or_a_cancellation_gives_the_stock_of_an_unpaid_order_back() {
    let shop = Shop::open().await;
    let session = shop.ready().await;
    for (token, left) in [(DECLINED, 9), (THREE_D_SECURE, 7)] {
        shop.expect(200, shop.acme.complete(&session, token)).await;
        assert_eq!(shop.stock("tea").await, left);
        let body = wanted(&[("tea", 3)]);
        let replaced = shop.expect(200, shop.acme.about(REPLACE, &session).json(&body)).await;
        assert_eq!((&replaced["status"], amount(&replaced, "total")), (&json!("ready_for_complete"), Some(1500)));
        assert_eq!(
            (shop.stock("tea").await, shop.orders().await.iter().filter(|order| is_alive(order)).count()),
            (10, 0)
        );
    }
    shop.expect(200, shop.acme.complete(&session, DECLINED)).await;
    assert_eq!(shop.stock("tea").await, 7);
    let cancelled = shop.expect(200, shop.acme.about(CANCEL, &session)).await;
    assert_eq!((&cancelled["status"], shop.stock("tea").await, captured(&shop).len()), (&json!("canceled"), 10, 0));
    assert_eq!(shop.orders().await.iter().filter(|order| is_alive(order)).count(), 0);

    let session = shop.ready().await;
    shop.expect(200, shop.acme.complete(&session, DECLINED)).await;
    shop.ok(shop.acme.about(REPLACE, &session).json(&wanted(&[("tea", 2)]))).await;
    let done = shop.expect(200, shop.acme.complete(&session, "pm_card_visa")).await;
    assert_eq!((&done["status"], captured(&shop), shop.stock("tea").await), (&json!("completed"), vec![1000], 8));
}

/// The buyer pays in the shop, while the agent wants other goods.
#[tokio::test]
async fn a_change_does_not_undo_an_order_that_is_paid() {
    let shop = Shop::open().await;
    let session = shop.ready().await;
    shop.expect(200, shop.acme.complete(&session, THREE_D_SECURE)).await;
    let intent = shop.provider.accounts()[0].intent.clone();
    shop.provider.confirm(&intent, None).unwrap();
    let answer = shop.send(shop.acme.about(REPLACE, &session).json(&wanted(&[("tea", 2)]))).await;
    // The order is cancelled before its payment is known, or not at all. Money that arrives is given back.
    for order in shop.orders().await {
        shop.app.shop.settled(&order.head.id, Some(&intent)).await.unwrap();
    }
    let orders = shop.orders().await;
    let paid: Vec<&PlacedOrder> = orders.iter().filter(|order| order.head.status == OrderStatus::Paid).collect();
    let account = &shop.provider.accounts()[0];
    let kept = account.captured - account.refunded;
    assert_eq!(kept, paid.iter().map(|order| order.head.total.amount).sum::<i64>(), "{}", answer.body);
    let reserved = u64::try_from(paid.len()).unwrap();
    assert_eq!(shop.stock("tea").await, 10 - reserved);
}

#[tokio::test]
async fn an_order_of_an_agent_lapses_and_its_checkout_is_cancelled() {
    let shop = Shop::open().await;
    let session = shop.ready().await;
    shop.expect(200, shop.acme.complete(&session, DECLINED)).await;
    let order = shop.orders().await.remove(0);
    let lapses_at = order.head.lapses_at.expect("it lapses").plus_seconds(1);
    let lapse = key_schema::order::lapse(&order.head, &order.lines, None, lapses_at).unwrap();
    shop.transact(&lapse).await;
    let seen = shop.see(&session).await;
    assert_eq!((&seen["status"], shop.stock("tea").await), (&json!("canceled"), 10), "{seen}");
    let answer = shop.send(shop.acme.about(REPLACE, &session).json(&wanted(&[("tea", 1)]))).await;
    assert_eq!(refused(&answer), (409, "checkout_canceled"));
    let paid = shop.expect(200, shop.acme.complete(&session, "pm_card_visa")).await;
    assert_eq!((&paid["status"], captured(&shop).len()), (&json!("canceled"), 0));
}

/// A guest has at most 20 unpaid orders, also through an agent.
#[tokio::test]
async fn an_agent_cannot_hold_more_stock_than_a_guest() {
    let shop = Shop::open().await;
    shop.set_values(&json!({ "orders": { "max_pending_orders": 2 } })).await;
    let mut sessions = Vec::new();
    for _ in 0..3 {
        let session = shop.ready().await;
        sessions.push(shop.expect(200, shop.acme.complete(&session, DECLINED)).await);
    }
    assert_eq!(codes(&sessions[2]), ["limit_reached"], "{}", sessions[2]);
    assert_eq!((&sessions[2]["status"], shop.stock("tea").await), (&json!("incomplete"), 8));
    let other = wanted(&[("tea", 1)]);
    let other = with(other, &json!({ "buyer": { "email": "eva@example.com", "first_name": "Eva" } }));
    let session = shop.expect(201, shop.acme.call("POST /ucp/checkout-sessions").json(&other)).await;
    assert_eq!(shop.expect(200, shop.acme.complete(&session, "pm_card_visa")).await["status"], "completed");
}

#[tokio::test]
async fn the_last_piece_goes_to_one_of_two_agents() {
    let shop = Shop::open().await;
    let other = shop.agent("other").await;
    shop.set_stock("tea", 1).await;
    let mine = shop.ready().await;
    let theirs = shop.expect(201, other.call("POST /ucp/checkout-sessions").json(&wanted(&[("tea", 1)]))).await;
    let calls: [Call; 2] = [shop.acme.complete(&mine, "pm_card_visa"), other.complete(&theirs, "pm_card_visa")];
    let answers = join_all(calls.map(|call| shop.settled(call))).await;
    let completed = answers.iter().filter(|answer| answer.body["status"] == "completed").count();
    assert_eq!((completed, shop.stock("tea").await, captured(&shop)), (1, 0, vec![500]), "{answers:?}");
    let lost = answers.iter().find(|answer| answer.body["status"] != "completed").unwrap();
    assert!(lost.status == 200 && codes(&lost.body).contains(&"out_of_stock"), "{}", lost.body);
}

/// An order that costs nothing needs no card. Staff confirm it, as for other guests.
#[tokio::test]
async fn an_order_that_costs_nothing_waits_for_staff() {
    let shop = Shop::open().await;
    shop.priced("sample", 0, 3).await;
    let session = shop.check_out(&[("sample", 1)]).await;
    let done: Value = shop.expect(200, shop.acme.complete(&session, "pm_card_visa")).await;
    assert_eq!((&done["status"], captured(&shop).len()), (&json!("complete_in_progress"), 0), "{done}");
    let order = shop.orders().await.remove(0);
    assert!(order.payments.iter().all(|payment| payment.method != PaymentMethod::Card));
    assert_eq!(shop.expect(200, shop.acme.about(CANCEL, &session)).await["status"], "canceled");
    assert_eq!(shop.stock("sample").await, 3);
}
