//! Tests of checkouts until they are completed.

use futures::future::join_all;
use key_schema::id::CustomerId;
use key_schema::instant::Instant;
use key_schema::promotion::Conditions;
use key_schema::quota::Quota;
use serde_json::{Value, json};

use crate::shop::{
    CANCEL, COMPLETE, CREATE, READ, REPLACE, Shop, amount, codes, on_host, payment, refused, registration, shipping,
    wanted, with,
};

#[tokio::test]
async fn a_checkout_says_what_is_missing_until_it_is_ready() {
    let shop = Shop::open().await;
    shop.ship().await;
    shop.promote("TEN", Conditions::default()).await;
    let lines = json!({ "line_items": [{ "id": "a", "item": { "id": "tea" }, "quantity": 2 }] });
    let created = shop.send(shop.acme.call(CREATE).json(&lines)).await;
    let session = &created.body;
    assert_eq!((created.status, &session["status"]), (201, &json!("incomplete")), "{session}");
    let path = format!("/ucp/checkout-sessions/{}", session["id"].as_str().unwrap());
    assert_eq!(created.header("location"), Some(path.as_str()));
    let ships = |session: &Value| session["ucp"]["capabilities"].get("dev.ucp.shopping.fulfillment").is_some();
    assert!(ships(session));
    assert_eq!(codes(session), ["missing", "missing", "missing"]);
    assert_eq!((amount(session, "subtotal"), amount(session, "total")), (Some(1000), Some(1000)));
    assert_eq!((&session["line_items"][0]["id"], &session["currency"]), (&json!("a"), &json!("USD")));

    let body = with(wanted(&[("tea", 2)]), &shipping("CH", None));
    let replaced = shop.expect(200, shop.acme.about(REPLACE, session).json(&body)).await;
    assert_eq!((&replaced["status"], &replaced["id"]), (&json!("ready_for_complete"), &session["id"]), "{replaced}");
    assert_eq!((amount(&replaced, "fulfillment"), amount(&replaced, "total")), (Some(700), Some(1700)));
    let group = &replaced["fulfillment"]["methods"][0]["groups"][0];
    assert_eq!((&group["selected_option_id"], group["options"].as_array().unwrap().len()), (&json!("parcel"), 2));

    let more = with(shipping("CH", Some("courier")), &json!({ "discounts": { "codes": ["ten", "NOPE"] } }));
    let replaced = shop.expect(200, shop.acme.about(REPLACE, session).json(&with(wanted(&[("tea", 2)]), &more))).await;
    assert_eq!((amount(&replaced, "discount"), amount(&replaced, "total")), (Some(-100), Some(2900)), "{replaced}");
    assert_eq!(codes(&replaced), ["discount_code_invalid"]);
    assert_eq!(replaced["messages"][0]["path"], "$.discounts.codes[1]");
    assert_eq!(replaced["discounts"]["applied"][0]["code"], "ten");
    assert_eq!(replaced["status"], "ready_for_complete");
    assert_eq!(shop.see(session).await, replaced);

    let abroad =
        shop.expect(200, shop.acme.about(REPLACE, session).json(&with(wanted(&[("tea", 2)]), &shipping("AT", None))));
    let abroad = abroad.await;
    assert_eq!((&abroad["status"], codes(&abroad)), (&json!("incomplete"), vec!["address_undeliverable"]));
    assert_eq!(amount(&abroad, "discount"), None, "a replacement has the new codes only");
    assert_eq!((shop.stock("tea").await, shop.orders().await.len()), (10, 0));
}

#[tokio::test]
async fn a_choice_that_the_shop_cannot_follow_is_refused_and_never_replaced() {
    let shop = Shop::open().await;
    shop.ship().await;
    let choose = |method: Value| with(wanted(&[("tea", 2)]), &json!({ "fulfillment": { "methods": [method] } }));
    let session =
        shop.expect(201, shop.acme.call(CREATE).json(&with(wanted(&[("tea", 1)]), &shipping("CH", None)))).await;
    // A destination of an earlier request can be chosen by its id.
    let again = shop.acme.about(REPLACE, &session).json(&choose(json!({ "selected_destination_id": "home" })));
    let again = shop.expect(200, again).await;
    let method = &again["fulfillment"]["methods"][0];
    assert_eq!(
        (&method["selected_destination_id"], &method["destinations"][0]["id"]),
        (&json!("home"), &json!("home"))
    );
    assert_eq!(
        (&method["destinations"][0]["type"], &again["status"]),
        (&json!("shipping_address"), &json!("ready_for_complete"))
    );
    let before = shop.items("CHECKOUT#").await;
    let unknown = choose(json!({ "destinations": [{ "id": "work" }], "selected_destination_id": "moon" }));
    let kilograms = json!({ "item": { "id": "tea", "quantity_unit": { "unit": "KGM", "scale": 2 } }, "quantity": 7 });
    for (body, code, path) in [
        (&unknown, "destination_unknown", "$.fulfillment.methods[0].selected_destination_id"),
        (&json!({ "line_items": [kilograms] }), "quantity_unit_mismatch", "$.line_items"),
    ] {
        let answer = shop.expect(200, shop.acme.about(REPLACE, &session).json(body)).await;
        let message = &answer["messages"][0];
        assert_eq!((&message["code"], &message["path"]), (&json!(code), &json!(path)), "{answer}");
        assert_eq!((&message["severity"], &answer["line_items"]), (&json!("recoverable"), &again["line_items"]));
        assert_eq!(shop.items("CHECKOUT#").await, before, "{body}");
    }
    // A new checkout has what is possible.
    let created = shop.expect(201, shop.acme.call(CREATE).json(&unknown)).await;
    let method = &created["fulfillment"]["methods"][0];
    assert_eq!((&created["status"], &method["selected_destination_id"]), (&json!("incomplete"), &Value::Null));
    assert!(codes(&created).contains(&"destination_unknown"), "{created}");
    let pieces = json!({ "item": { "id": "tea", "quantity_unit": { "unit": "C62" } }, "quantity": 7 });
    let both = shop.expect(201, shop.acme.call(CREATE).json(&json!({ "line_items": [pieces, kilograms] }))).await;
    assert_eq!((both["line_items"].as_array().unwrap().len(), &both["line_items"][0]["quantity"]), (1, &json!(7)));
    assert!(codes(&both).contains(&"quantity_unit_mismatch"), "{both}");
    let none = shop.expect(200, shop.acme.call(CREATE).json(&json!({ "line_items": [kilograms] }))).await;
    assert_eq!((&none["ucp"]["status"], codes(&none)), (&json!("error"), vec!["quantity_unit_mismatch"]), "{none}");
}

#[tokio::test]
async fn what_cannot_be_bought_is_a_message_and_not_an_error() {
    let shop = Shop::open().await;
    shop.priced("gone", 100, 0).await;
    shop.priced("old", 100, 5).await;
    shop.retire("old").await;
    shop.priced("shirt", 100, 0).await;
    shop.vary("shirt", fixture::seed::product("shirt-m", fixture::seed::usd(100)), "M", 5).await;
    let session = shop.check_out(&[("tea", 1), ("gone", 1), ("old", 1), ("nothing", 1), ("", 1), ("shirt", 1)]).await;
    assert_eq!(session["line_items"].as_array().unwrap().len(), 1, "{session}");
    assert_eq!(session["status"], "ready_for_complete");
    let mut said = codes(&session);
    said.sort_unstable();
    assert_eq!(said, ["item_unavailable", "item_unavailable", "item_unavailable", "item_unavailable", "out_of_stock"]);

    let none = shop.expect(200, shop.acme.call(CREATE).json(&wanted(&[("gone", 1)]))).await;
    assert_eq!((&none["ucp"]["status"], none.get("id"), codes(&none)), (&json!("error"), None, vec!["out_of_stock"]));
    assert_eq!(none["messages"][0]["severity"], "unrecoverable");

    let many = shop.check_out(&[("tea", 6), ("tea", 5)]).await;
    assert_eq!((&many["status"], &many["line_items"][0]["quantity"]), (&json!("incomplete"), &json!(11)), "{many}");
    assert_eq!(many["messages"][0]["severity"], "recoverable");

    // A product that is sold out later stays in the checkout.
    shop.set_stock("tea", 0).await;
    let sold_out = shop.see(&session).await;
    assert_eq!(sold_out["status"], "incomplete", "{sold_out}");
    let refused = shop.expect(200, shop.acme.complete(&session, "pm_card_visa")).await;
    assert_ne!(refused["status"], "completed");
    assert!(shop.orders().await.is_empty());
}

#[tokio::test]
async fn an_agent_cannot_see_or_change_what_is_not_its_own() {
    let shop = Shop::open().await;
    let other = shop.agent("other").await;
    let session = shop.ready().await;
    let before = shop.items("CHECKOUT#").await;
    for call in [
        other.about(READ, &session),
        other.about(REPLACE, &session).json(&wanted(&[("tea", 3)])),
        other.about(COMPLETE, &session).json(&payment("pm_card_visa")),
        other.about(CANCEL, &session),
        // A cart is read elsewhere.
        shop.acme.about("GET /ucp/carts/{id}", &session),
        shop.acme.call(READ).path("id", "none"),
        shop.acme.call(READ).path("id", "\u{7}"),
        shop.acme.call(REPLACE).path("id", "\u{7}").json(&wanted(&[("tea", 1)])),
        shop.acme.call(COMPLETE).path("id", "\u{7}").json(&payment("pm_card_visa")),
    ] {
        let answer = shop.send(call).await;
        assert_eq!((answer.status, &answer.body["ucp"]["status"]), (200, &json!("error")), "{}", answer.body);
        assert_eq!((codes(&answer.body), answer.body.get("id")), (vec!["not_found"], None));
    }
    assert_eq!(shop.items("CHECKOUT#").await, before);

    let mut expired = shop.session(&session).await;
    expired.data.expires_at = Instant::now().plus_seconds(-1);
    shop.put(&expired).await;
    assert_eq!(codes(&shop.see(&session).await), ["not_found"]);
    let complete = shop.expect(200, shop.acme.complete(&session, "pm_card_visa")).await;
    assert_eq!((codes(&complete), shop.orders().await.len()), (vec!["not_found"], 0));
}

#[tokio::test]
async fn a_repeated_request_has_one_effect_and_another_request_with_its_key_is_a_conflict() {
    let shop = Shop::open().await;
    let create = || shop.acme.call(CREATE).header("idempotency-key", "k1").json(&wanted(&[("tea", 1)]));
    let answers = join_all((0..4).map(|_| shop.settled(create()))).await;
    let first = &answers[0].body["id"];
    assert!(first.is_string() && answers.iter().all(|answer| answer.body["id"] == *first), "{answers:?}");
    assert_eq!(shop.items("CHECKOUT#").await.len(), 1);
    let again = shop.send(create()).await;
    assert_eq!((again.status, again.header("idempotency-replayed")), (201, Some("true")));
    let other = shop.acme.call(CREATE).header("idempotency-key", "k1").json(&wanted(&[("tea", 2)]));
    let answer = shop.send(other).await;
    assert_eq!(refused(&answer), (409, "idempotency_conflict"));
    assert!(answer.body["content"].is_string());
    // Another agent's keys are its own.
    let other = shop.agent("other").await;
    let own = shop.expect(201, other.call(CREATE).header("idempotency-key", "k1").json(&wanted(&[("tea", 1)]))).await;
    assert_ne!(own["id"], *first);

    let session = &again.body;
    let replace = || shop.acme.about(REPLACE, session).header("idempotency-key", "k2").json(&wanted(&[("tea", 3)]));
    shop.ok(replace()).await;
    shop.ok(shop.acme.about(REPLACE, session).json(&wanted(&[("tea", 4)]))).await;
    let replayed = shop.ok(replace()).await;
    assert_eq!(replayed.body["line_items"][0]["quantity"], 3, "a replay is the first response");
    assert_eq!(replayed.header("idempotency-replayed"), Some("true"));
    assert_eq!(shop.see(session).await["line_items"][0]["quantity"], 4, "a replay changes nothing");
    let cancel = || shop.acme.about(CANCEL, session).header("idempotency-key", "k3");
    assert_eq!(shop.expect(200, cancel()).await["status"], "canceled");
    assert_eq!(shop.expect(200, cancel()).await["status"], "canceled");
}

#[tokio::test]
async fn a_cancelled_checkout_takes_no_changes() {
    let shop = Shop::open().await;
    let session = shop.ready().await;
    assert_eq!(shop.expect(200, shop.acme.about(CANCEL, &session)).await["status"], "canceled");
    assert_eq!(shop.see(&session).await["status"], "canceled");
    for call in [
        shop.acme.about(CANCEL, &session),
        shop.acme.about(REPLACE, &session).json(&wanted(&[("tea", 1)])),
        shop.acme.complete(&session, "pm_card_visa"),
    ] {
        assert_eq!(refused(&shop.send(call).await), (409, "checkout_canceled"));
    }
    assert!(shop.orders().await.is_empty() && shop.provider.accounts().is_empty());
}

#[tokio::test]
async fn an_agent_begins_a_limited_number_of_sessions_in_a_day() {
    let shop = Shop::open().await;
    let few = shop.agent_with("few", &with(registration("few"), &json!({ "checkouts_per_day": 2 }))).await;
    let sessions = shop.items("CHECKOUT#").await.len();
    let create = |route| few.call(route).json(&wanted(&[("tea", 1)]));
    shop.expect(201, create(CREATE)).await;
    shop.expect(201, create("POST /ucp/carts")).await;
    for route in [CREATE, "POST /ucp/carts"] {
        let answer = shop.send(create(route)).await;
        assert_eq!(refused(&answer), (429, "quota_exceeded"), "{}", answer.body);
        assert!(answer.header("retry-after").is_some());
    }
    assert_eq!(shop.items("CHECKOUT#").await.len(), sessions + 2);
    shop.ready().await;
}

#[tokio::test]
async fn the_unknown_codes_of_an_agent_are_limited_and_no_other_agent_is_concerned() {
    let shop = Shop::open().await;
    shop.promote("TEN", Conditions::default()).await;
    let other = shop.agent("other").await;
    let guests = CustomerId::guests_of(&"acme".parse().unwrap());
    shop.use_up(&guests, Quota::GuestCodes, 1).await;
    let mut sessions = Vec::new();
    let body = |code: &str| with(wanted(&[("tea", 1)]), &json!({ "discounts": { "codes": [code] } }));
    for (code, said) in [("TEN", &[][..]), ("WRONG", &["discount_code_invalid"]), ("TEN", &["discount_code_invalid"])] {
        let session = shop.expect(201, shop.acme.call(CREATE).json(&body(code))).await;
        assert_eq!((codes(&session), &session["status"]), (said.to_vec(), &json!("ready_for_complete")), "{session}");
        sessions.push(session);
    }
    // A code that was not checked is not checked later either.
    assert_eq!(shop.see(&sessions[2]).await["discounts"], json!({ "codes": [], "applied": [] }));
    assert_eq!(codes(&shop.see(&sessions[1]).await), ["discount_code_invalid"]);
    let session = shop.expect(201, other.call(CREATE).json(&body("TEN"))).await;
    assert_eq!(amount(&session, "discount"), Some(-50));
}

#[tokio::test]
async fn a_read_does_not_count_unknown_codes() {
    let shop = Shop::open().await;
    shop.promote("TEN", Conditions::default()).await;
    let body = |code: &str| with(wanted(&[("tea", 1)]), &json!({ "discounts": { "codes": [code] } }));
    let session = shop.expect(201, shop.acme.call(CREATE).json(&body("WRONG"))).await;
    shop.use_up(&CustomerId::guests_of(&"acme".parse().unwrap()), Quota::GuestCodes, 1).await;
    for _ in 0..3 {
        assert_eq!(codes(&shop.see(&session).await), ["discount_code_invalid"]);
    }
    let session = shop.expect(201, shop.acme.call(CREATE).json(&body("TEN"))).await;
    assert_eq!(amount(&session, "discount"), Some(-50));
}

#[tokio::test]
async fn a_shop_without_card_payments_sends_the_buyer_to_its_pages() {
    let shop = Shop::open_without_cards().await;
    let session = shop.check_out(&[("tea", 1)]).await;
    assert_eq!((&session["status"], codes(&session)), (&json!("requires_escalation"), vec!["payment_unavailable"]));
    assert_eq!(session["ucp"]["payment_handlers"], json!({}));
    let complete = shop.expect(200, shop.acme.complete(&session, "pm_card_visa")).await;
    assert_eq!((&complete["status"], shop.orders().await.len()), (&json!("requires_escalation"), 0));
    assert_eq!(shop.stock("tea").await, 10);
}

#[tokio::test]
async fn a_wrong_body_is_refused_and_changes_nothing() {
    let shop = Shop::open().await;
    let session = shop.ready().await;
    let before = shop.items("").await;
    let line = |more| with(json!({ "item": { "id": "tea" }, "quantity": 1 }), &more);
    let lines: Vec<_> = (0..51).map(|_| line(json!({}))).collect();
    let places: Vec<_> = (0..6).map(|number| json!({ "id": format!("d{number}") })).collect();
    for body in [
        json!({}),
        json!([]),
        json!({ "line_items": [] }),
        json!({ "line_items": [{ "quantity": 1 }] }),
        json!({ "line_items": [line(json!({ "quantity": 0 }))] }),
        json!({ "line_items": [line(json!({ "quantity": -1 }))] }),
        json!({ "line_items": [line(json!({ "quantity": 1.5 }))] }),
        json!({ "line_items": [line(json!({ "quantity": 1_000_000_000_000_u64 }))] }),
        json!({ "line_items": [line(json!({ "id": "l".repeat(65) }))] }),
        json!({ "line_items": lines }),
        with(wanted(&[("tea", 1)]), &json!({ "buyer": { "first_name": "n".repeat(201) } })),
        with(wanted(&[("tea", 1)]), &json!({ "fulfillment": { "methods": [{ "destinations": places }] } })),
        with(wanted(&[("tea", 1)]), &json!({ "discounts": { "codes": "TEN" } })),
        with(wanted(&[("tea", 1)]), &json!({ "discounts": { "codes": vec!["c"; 21] } })),
    ] {
        for call in [shop.acme.call(CREATE), shop.acme.about(REPLACE, &session)] {
            let answer = shop.send(call.json(&body)).await;
            assert_eq!(refused(&answer), (400, "invalid_request"), "{body}: {}", answer.body);
        }
    }
    for body in [json!({}), json!({ "payment": {} }), json!({ "payment": { "instruments": [{ "credential": 1 }] } })] {
        let answer = shop.send(shop.acme.about(COMPLETE, &session).json(&body)).await;
        assert_eq!(refused(&answer), (400, "invalid_request"), "{body}: {}", answer.body);
    }
    for text in ["", "{", "{\"line_items\":1,\"line_items\":2}", &format!("{{\"x\":\"{}\"}}", "x".repeat(300_000))] {
        let answer = shop.send(shop.acme.call(CREATE).body(text)).await;
        assert!(matches!(answer.status, 400 | 413), "{}", answer.body);
    }
    assert_eq!(shop.items("").await, before);
}

#[tokio::test]
async fn the_profile_names_what_the_shop_can_do() {
    let shop = Shop::open().await;
    let read = || async { shop.send(on_host("GET /.well-known/ucp")).await };
    let answer = read().await;
    let ucp = &answer.body["ucp"];
    assert_eq!((answer.status, &ucp["version"]), (200, &json!("2026-08-25")));
    assert!(answer.header("cache-control").is_some_and(|control| control.contains("public, max-age=300")));
    let has = |body: &Value, name: &str| body["ucp"]["capabilities"].get(name).is_some();
    assert!(has(&answer.body, "dev.ucp.shopping.checkout") && has(&answer.body, "dev.ucp.shopping.order"));
    assert!(
        !has(&answer.body, "dev.ucp.shopping.fulfillment") && !has(&answer.body, "dev.ucp.shopping.catalog.search")
    );
    assert!(shop.ready().await["ucp"]["capabilities"].get("dev.ucp.shopping.fulfillment").is_none());
    let endpoint = ucp["services"]["dev.ucp.shopping"][0]["endpoint"].as_str().unwrap();
    assert_eq!(endpoint, "https://api.example/ucp");
    assert_eq!(ucp["payment_handlers"]["com.stripe.payments"][0]["id"], "stripe");
    shop.ship().await;
    assert!(has(&read().await.body, "dev.ucp.shopping.fulfillment"));
}

#[tokio::test]
async fn a_shop_names_its_pages_in_its_settings() {
    let shop = Shop::open().await;
    shop.set_values(&json!({
        "agents": { "shop_url": "https://shop.example/", "api_url": "https://agents.example", "terms_url": "https://shop.example/terms" },
        "orders": { "guest_orders": false },
    }))
    .await;
    let session = shop.check_out(&[("tea", 1)]).await;
    assert_eq!(session["continue_url"], "https://shop.example");
    let profile = shop.expect(200, on_host("GET /.well-known/ucp")).await;
    let endpoint = &profile["ucp"]["services"]["dev.ucp.shopping"][0]["endpoint"];
    assert_eq!(endpoint, "https://agents.example/ucp");
    assert_eq!(session["links"], json!([{ "type": "terms_of_service", "url": "https://shop.example/terms" }]));
    // Only customers with an account may order.
    assert_eq!((&session["status"], codes(&session)), (&json!("requires_escalation"), vec!["sign_in_required"]));
    assert_eq!(session["messages"][0]["severity"], "requires_buyer_input");
    let complete = shop.expect(200, shop.acme.complete(&session, "pm_card_visa")).await;
    assert_eq!((&complete["status"], shop.orders().await.len()), (&json!("requires_escalation"), 0));
}
