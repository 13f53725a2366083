//! Tests of the steps of an order: their callers, their statuses, and their effects.

use http_api::sample::{Answered, Call};
use serde_json::{Value, json};

use crate::shop::{Shop, money, moved, order, staff_order};

const STATUSES: [&str; 7] = ["pending", "paid", "picking", "shipped", "delivered", "cancelled", "returned"];

/// The legal steps. Staff may take each of them.
const STEPS: [(&str, &str); 8] = [
    ("pending", "paid"),
    ("paid", "picking"),
    ("picking", "shipped"),
    ("shipped", "delivered"),
    ("delivered", "returned"),
    ("pending", "cancelled"),
    ("paid", "cancelled"),
    ("picking", "cancelled"),
];

/// Places an order of ann for two pieces, and moves it to a status.
async fn at(shop: &Shop, status: &str, key: &str) -> Value {
    let placed = shop.send(order(&[("tea", 2)], key)).await;
    assert_eq!(placed.status, 201, "{}", placed.body);
    let way: &[&str] = match status {
        "pending" => &[],
        "paid" => &["paid"],
        "picking" => &["paid", "picking"],
        "shipped" => &["paid", "picking", "shipped"],
        "delivered" => &["paid", "picking", "shipped", "delivered"],
        "cancelled" => &["cancelled"],
        _ => &["paid", "picking", "shipped", "delivered", "returned"],
    };
    let mut now = placed.body;
    for to in way {
        let answer = shop.send(moved(&now, to)).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        now = answer.body;
    }
    now
}

fn step(order: &Value, body: &Value) -> Call {
    let call = Call::new("POST /v1/orders/{id}/status").path("id", order["id"].as_str().unwrap()).json(body);
    call.header("if-match", &format!("\"{}\"", order["version"]))
}

async fn read(shop: &Shop, order: &Value) -> Value {
    let call = Call::new("GET /v1/orders/{id}").path("id", order["id"].as_str().unwrap()).customer("ann");
    shop.send(call).await.body
}

#[tokio::test]
async fn the_note_of_a_step_has_no_invisible_characters() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    let placed = at(&shop, "pending", "k").await;
    let body = json!({ "to": "cancelled", "note": "ok \u{202e}by\u{2066} staff\u{200b}" });
    let cancelled = shop.send(step(&placed, &body).customer("ann")).await;
    assert_eq!(cancelled.status, 200, "{}", cancelled.body);
    assert_eq!(cancelled.body["history"][1]["note"], "ok by staff");
}

#[tokio::test]
async fn exactly_the_legal_steps_succeed_and_returned_goods_are_in_stock_again() {
    let shop = Shop::open().await;
    shop.product("tea", 1_000).await;
    for from in STATUSES {
        for to in STATUSES.into_iter().filter(|to| *to != "pending") {
            let (before, stock) = (at(&shop, from, &format!("{from} {to}")).await, shop.stock("tea").await);
            let answer = shop.send(moved(&before, to)).await;
            if STEPS.contains(&(from, to)) {
                assert_eq!((answer.status, &answer.body["status"]), (200, &json!(to)), "{from} {to}: {}", answer.body);
                let last = answer.body["history"].as_array().unwrap().last().unwrap().clone();
                assert_eq!((&last["status"], &last["by"]), (&json!(to), &json!("sam")));
                assert_eq!(read(&shop, &before).await, answer.body);
                let back = if ["cancelled", "returned"].contains(&to) { 2 } else { 0 };
                assert_eq!(shop.stock("tea").await, stock + back, "{from} {to}");
            } else {
                assert_eq!((answer.status, answer.code()), (409, Some("illegal_transition")), "{from} {to}");
                assert_eq!(read(&shop, &before).await, before);
                assert_eq!(shop.stock("tea").await, stock);
            }
        }
    }
}

#[tokio::test]
async fn customers_may_only_pay_from_the_wallet_and_cancel_before_picking() {
    let shop = Shop::open().await;
    shop.product("tea", 1_000).await;
    shop.store_wallet(&[money(100_000)]).await;
    for from in STATUSES {
        for to in STATUSES.into_iter().filter(|to| *to != "pending") {
            let before = at(&shop, from, &format!("own {from} {to}")).await;
            let answer = shop.send(step(&before, &json!({ "to": to })).customer("ann")).await;
            let may = to == "cancelled" && ["pending", "paid"].contains(&from);
            assert_eq!(answer.status == 200, may, "{from} {to}: {}", answer.body);
            assert!(may || [403, 409].contains(&answer.status), "{from} {to}: {}", answer.body);
        }
    }
    let mine = at(&shop, "pending", "mine").await;
    let of_another = shop.send(step(&mine, &json!({ "to": "cancelled" })).customer("bob")).await;
    assert_eq!((of_another.status, of_another.code()), (404, Some("not_found")));
    let paid = shop.send(step(&mine, &json!({ "to": "paid", "pay_from_wallet": true })).customer("ann")).await;
    assert_eq!((paid.status, shop.balances().await), (200, vec![money(99_800)]));
}

#[tokio::test]
async fn only_staff_cancel_a_sale_of_a_shop_or_an_invoiced_order() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    let mut sale = json!({ "customer_id": "ann", "lines": [{ "product_id": "tea", "quantity": 2 }] });
    sale["store_id"] = json!("364");
    let place = Call::new("POST /v1/orders").header("idempotency-key", "sale").json(&sale);
    let sold = shop.send(place.staff("sam")).await;
    assert_eq!(sold.status, 201, "{}", sold.body);
    let invoiced = at(&shop, "paid", "invoiced").await;
    let id = invoiced["id"].as_str().unwrap();
    assert_eq!(shop.send(Call::new("POST /v1/orders/{id}/invoice").path("id", id).staff("sam")).await.status, 201);
    let invoiced = shop.send(Call::new("GET /v1/orders/{id}").path("id", id).staff("sam")).await.body;
    for order in [sold.body, invoiced] {
        let cancel = || step(&order, &json!({ "to": "cancelled" }));
        let refused = shop.send(cancel().customer("ann")).await;
        assert_eq!((refused.status, refused.code()), (403, Some("forbidden")), "{}", refused.body);
        assert_eq!(shop.send(cancel().staff("sam")).await.status, 200);
    }
    assert_eq!(shop.stock("tea").await, 10);

    // A pending order with an invoice is not cancelled, even if it is not paid in time.
    let pending = at(&shop, "pending", "waiting").await;
    assert!(pending["lapses_at"].is_string(), "{pending}");
    let id = pending["id"].as_str().unwrap();
    assert_eq!(shop.send(Call::new("POST /v1/orders/{id}/invoice").path("id", id).staff("sam")).await.status, 201);
    let invoiced = shop.send(Call::new("GET /v1/orders/{id}").path("id", id).staff("sam")).await.body;
    assert_eq!((&invoiced["status"], invoiced.get("lapses_at")), (&json!("pending"), None));
    let due = key_schema::order::open::lapsing(key_schema::instant::Instant::MAX).unwrap();
    assert!(shop.own().query(&due).await.unwrap().items.is_empty());
    assert_eq!(shop.send(moved(&invoiced, "paid")).await.status, 200);
}

#[tokio::test]
async fn a_step_needs_the_current_version() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    let seen = at(&shop, "pending", "k").await;
    let bare = Call::new("POST /v1/orders/{id}/status").path("id", seen["id"].as_str().unwrap()).staff("sam");
    let without = shop.send(bare.json(&json!({ "to": "paid" }))).await;
    assert_eq!((without.status, without.code()), (428, Some("if_match_missing")));
    assert_eq!(shop.send(moved(&seen, "paid")).await.status, 200);
    let late = shop.send(moved(&seen, "cancelled")).await;
    assert_eq!((late.status, late.code()), (412, Some("version_mismatch")));
    assert_eq!(shop.stock("tea").await, 8);
}

#[tokio::test]
async fn either_a_payment_or_a_concurrent_cancellation_takes_effect_but_not_both() {
    for round in 0..5 {
        let shop = Shop::open().await;
        shop.product("tea", 10).await;
        shop.store_wallet(&[money(500)]).await;
        let seen = at(&shop, "pending", &format!("k{round}")).await;
        let pay = step(&seen, &json!({ "to": "paid", "pay_from_wallet": true })).customer("ann");
        let (paid, cancelled) = tokio::join!(shop.send(pay), shop.send(moved(&seen, "cancelled")));
        let statuses = [paid.status, cancelled.status];
        assert!([[200, 412], [412, 200]].contains(&statuses), "{statuses:?}");
        let expected = if paid.status == 200 { (8, money(300)) } else { (10, money(500)) };
        assert_eq!((shop.stock("tea").await, shop.balances().await[0]), expected);
    }
}

#[tokio::test]
async fn a_field_is_refused_with_a_status_to_which_it_does_not_belong() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    let order = at(&shop, "pending", "k").await;
    for (body, pointer) in [
        (json!({ "to": "paid", "carrier": "Post" }), "/carrier"),
        (json!({ "to": "paid", "tracking": "T1" }), "/tracking"),
        (json!({ "to": "cancelled", "pay_from_wallet": true }), "/pay_from_wallet"),
        (json!({ "to": "paid", "refund": money(1) }), "/refund"),
        (json!({ "to": "placing" }), "/to"),
        (json!({ "to": "paid", "note": "" }), "/note"),
    ] {
        let refused = shop.send(step(&order, &body).staff("sam")).await;
        assert_eq!((refused.status, refused.pointers()), (422, vec![pointer]), "{body}");
    }
    assert_eq!(read(&shop, &order).await, order);
    let picking = at(&shop, "picking", "p").await;
    let shipped = json!({ "to": "shipped", "carrier": "Post", "tracking": "T1", "note": "On its way" });
    let answer = shop.send(step(&picking, &shipped).staff("sam")).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.body["history"].as_array().unwrap().last().unwrap()["note"], "On its way");
    let call = Call::new("GET /v1/customers/{id}/shipments").path("id", "ann").customer("ann");
    let shipments = shop.send(call).await.body["items"].clone();
    assert_eq!((&shipments[0]["carrier"], &shipments[0]["tracking"]), (&json!("Post"), &json!("T1")));
}

async fn refund(shop: &Shop, order: &Value, amount: i64, key: &str) -> Answered {
    let call = Call::new("POST /v1/orders/{id}/refunds").path("id", order["id"].as_str().unwrap()).staff("sam");
    shop.send(call.header("idempotency-key", key).json(&json!({ "amount": money(amount) }))).await
}

#[tokio::test]
async fn an_order_is_refunded_up_to_its_total_and_once_for_each_key() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    shop.store_wallet(&[money(500)]).await;
    let unpaid = at(&shop, "pending", "unpaid").await;
    let never = refund(&shop, &unpaid, 1, "n").await;
    assert_eq!((never.status, never.code()), (409, Some("illegal_transition")));
    let paid = at(&shop, "paid", "paid").await;
    let first = refund(&shop, &paid, 150, "a").await;
    assert_eq!((first.status, &first.body["refunded"]["amount"]), (201, &json!(150)));
    assert_eq!(refund(&shop, &paid, 150, "a").await.body, first.body, "the same key moves no more money");
    let reused = refund(&shop, &paid, 10, "a").await;
    assert_eq!((reused.status, reused.code()), (422, Some("idempotency_key_reused")));
    let much = refund(&shop, &paid, 51, "b").await;
    assert_eq!((much.status, much.pointers()), (422, vec!["/amount/amount"]));
    assert_eq!(refund(&shop, &paid, 50, "b").await.body["refunded"]["amount"], 200);
    assert_eq!(shop.balances().await, [money(700)]);
    let call = Call::new("POST /v1/orders/{id}/refunds").path("id", paid["id"].as_str().unwrap()).customer("ann");
    let own = shop.send(call.header("idempotency-key", "own").json(&json!({ "amount": money(1) }))).await;
    assert_eq!((own.status, own.code()), (403, Some("forbidden")));
}

#[tokio::test]
async fn concurrent_refunds_do_not_exceed_the_total() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    shop.store_wallet(&[money(0)]).await;
    let placed = shop.send(staff_order(&[("tea", 5)], "k", &json!({}))).await.body;
    let paid = shop.send(moved(&placed, "paid")).await.body;
    let keys: Vec<String> = (0..8).map(|n| n.to_string()).collect();
    let all = futures::future::join_all(keys.iter().map(|key| refund(&shop, &paid, 120, key))).await;
    let given = all.iter().filter(|answer| answer.status == 201).count();
    assert!(all.iter().all(|answer| [201, 422, 503].contains(&answer.status)), "{all:?}");
    assert!((1..=4).contains(&given), "{given}");
    assert_eq!(shop.balances().await, [money(120 * i64::try_from(given).unwrap())]);
}
