//! Tests of the fields of an order's steps, and of cancellations.

use http_api::sample::Call;
use serde_json::{Value, json};

use crate::shop::{Shop, money, moved, order};

/// Places an order of ann for two pieces, and moves it to a status.
async fn at(shop: &Shop, status: &str, key: &str) -> Value {
    let placed = shop.send(order(&[("tea", 2)], key)).await;
    assert_eq!(placed.status, 201, "{}", placed.body);
    let way: &[&str] = match status {
        "pending" => &[],
        "paid" => &["paid"],
        _ => &["paid", "picking"],
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

#[tokio::test]
async fn the_customer_sees_the_shipment_and_the_message_of_staff_but_not_their_notes_and_ids() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    let picking = at(&shop, "picking", "p").await;
    let refused = shop.send(step(&picking, &json!({ "to": "cancelled", "message": "x" })).customer("ann")).await;
    assert_eq!((refused.status, refused.pointers()), (422, vec!["/message"]));
    let shipped = json!({
        "to": "shipped", "carrier": "Post", "tracking": "T1", "note": "Looks like fraud", "message": "It comes on Monday",
    });
    let moved = shop.send(step(&picking, &shipped).staff("sam")).await.body;
    let last = moved["history"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["by"], &last["note"]), (&json!("sam"), &json!("Looks like fraud")));

    let order = read(&shop, &picking).await;
    let id = || Call::new("GET /v1/orders/{id}/history").path("id", picking["id"].as_str().unwrap()).customer("ann");
    let history = shop.send(id()).await.body["items"].clone();
    assert_eq!(order["history"], history);
    let last = history.as_array().unwrap().last().unwrap();
    assert_eq!(*last, json!({ "status": "shipped", "at": last["at"], "message": "It comes on Monday" }));
    assert_eq!(order["history"][0]["by"], "ann", "the customer's own step");
    let shipment = (&order["carrier"], &order["tracking"], &order["shipped_at"]);
    assert_eq!(shipment, (&json!("Post"), &json!("T1"), &last["at"]));
    assert!(!order.to_string().contains("sam") && !order.to_string().contains("fraud"), "{order}");
}

async fn read(shop: &Shop, order: &Value) -> Value {
    let call = Call::new("GET /v1/orders/{id}").path("id", order["id"].as_str().unwrap()).customer("ann");
    shop.send(call).await.body
}

#[tokio::test]
async fn staffs_list_has_what_the_next_status_change_needs() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    let placed = at(&shop, "pending", "k").await;
    let list = async |status: &str| {
        let list = shop.send(Call::new("GET /v1/orders").query("status", status).staff("sam")).await.body;
        list["items"][0].clone()
    };
    let invoice = Call::new("POST /v1/orders/{id}/invoice").path("id", placed["id"].as_str().unwrap());
    assert_eq!(shop.send(invoice.staff("sam")).await.status, 201);
    let mut listed = list("pending").await;
    assert_eq!((&listed["id"], &listed["version"]), (&placed["id"], &json!(2)));
    // Each order of the list can take the first of its next statuses, with its version.
    for (status, next) in [
        ("pending", &["paid", "cancelled"][..]),
        ("paid", &["picking", "cancelled"]),
        ("picking", &["shipped", "cancelled"]),
        ("shipped", &["delivered"]),
        ("delivered", &["returned"]),
        ("returned", &[]),
    ] {
        assert_eq!((&listed["status"], &listed["next_statuses"]), (&json!(status), &json!(next)));
        if let Some(to) = next.first() {
            assert_eq!(shop.send(moved(&listed, to)).await.status, 200, "{to}");
            listed = list(to).await;
        }
    }
}

#[tokio::test]
async fn the_actions_of_an_order_are_what_its_customer_may_do() {
    let shop = Shop::open().await;
    shop.product("tea", 20).await;
    for (status, expected) in [("pending", &["pay", "cancel"][..]), ("paid", &["cancel"]), ("picking", &[])] {
        let order = at(&shop, status, status).await;
        assert_eq!((&order["status"], &order["actions"]), (&json!(status), &json!(expected)));
        assert_eq!(read(&shop, &order).await["actions"], order["actions"]);
        let pay = Call::new("POST /v1/orders/{id}/payments").path("id", order["id"].as_str().unwrap());
        let pay = pay
            .header("idempotency-key", &format!("pay-{status}"))
            .json(&json!({ "method": "wallet" }))
            .customer("ann");
        let paid = shop.send(pay).await;
        assert_eq!(paid.code() != Some("illegal_transition"), expected.contains(&"pay"), "{status}: {}", paid.body);
        let order = read(&shop, &order).await;
        let answer = shop.send(step(&order, &json!({ "to": "cancelled" })).customer("ann")).await;
        assert_eq!(answer.status == 200, expected.contains(&"cancel"), "{status}: {}", answer.body);
    }
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
        assert_eq!(order["next_statuses"].as_array().unwrap().last(), Some(&json!("cancelled")), "{order}");
        assert!(!order["actions"].as_array().unwrap().contains(&json!("cancel")), "{order}");
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
        let payments = read(&shop, &seen).await["payments"].as_array().unwrap().len();
        assert_eq!(payments, usize::from(paid.status == 200), "a lost race writes no payment");
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
