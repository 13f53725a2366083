//! Tests of changes and reads of the settings.

use serde_json::{Value, json};

use crate::shop::{Shop, change, first, get, put, whole};

#[tokio::test]
async fn the_settings_are_empty_at_version_0_before_the_first_change() {
    let shop = Shop::open().await;
    let function = shop.function();
    let answer = function.send(get()).await;
    assert_eq!((answer.status, answer.version()), (200, Some(0)));
    assert_eq!(answer.body, json!({ "values": {}, "version": 0 }));
    assert_eq!(function.send(whole()).await.body, json!({ "values": {}, "private": {}, "version": 0 }));
}

#[tokio::test]
async fn the_first_settings_need_version_0_or_if_none_match() {
    let body = json!({ "values": { "banner": "Ice" }, "private": { "partner": [1, { "a": null }] } });
    for (call, status) in [(first(&body), 201), (change(&body, 0), 200)] {
        let shop = Shop::open().await;
        let function = shop.function();
        let set = function.send(call.clone()).await;
        assert_eq!((set.status, set.version()), (status, Some(1)), "{}", set.body);
        assert_eq!(set.header("location"), (status == 201).then_some("/v1/settings"));
        let expected = json!({ "values": body["values"], "private": body["private"], "version": 1 });
        assert_eq!(set.body, expected);
        assert_eq!(function.send(whole()).await.body, expected);
        assert_eq!(function.send(get()).await.body, json!({ "values": body["values"], "version": 1 }));
        let again = function.send(call).await;
        let refused = if status == 201 { (409, Some("already_exists")) } else { (412, Some("version_mismatch")) };
        assert_eq!((again.status, again.code()), refused);
    }
}

#[tokio::test]
async fn a_change_replaces_all_settings_and_needs_the_current_version() {
    let shop = Shop::open().await;
    let function = shop.function();
    function.set(first(&json!({ "values": { "a": 1, "b": 2 }, "private": { "c": 3 } }))).await;
    let body = json!({ "values": { "b": 3 } });
    assert_eq!(function.send(change(&body, u64::MAX)).await.code(), Some("version_mismatch"));
    for tag in ["W/\"1\"", "\"01\"", "\"x\""] {
        assert_eq!(function.send(put(&body).header("if-match", tag)).await.status, 412, "{tag}");
    }
    let changed = function.set(change(&body, 1)).await;
    assert_eq!((changed.status, changed.version()), (200, Some(2)));
    assert_eq!(changed.body, json!({ "values": { "b": 3 }, "private": {}, "version": 2 }));
}

/// An unknown tag is parsed as version 0. It must not create the first settings.
#[tokio::test]
async fn an_unknown_tag_changes_no_settings() {
    let shop = Shop::open().await;
    let function = shop.function();
    for tag in ["W/\"0\"", "\"00\"", "\"\"", "\"x\"", "\"1\""] {
        let answer = function.send(put(&json!({ "values": {} })).header("if-match", tag)).await;
        assert_eq!((answer.status, answer.code()), (412, Some("version_mismatch")), "{tag}");
    }
    assert_eq!(function.send(whole()).await.version(), Some(0));
}

#[tokio::test]
async fn everyone_sees_the_public_values_and_only_staff_see_the_private_values() {
    let shop = Shop::open().await;
    let function = shop.function();
    function.set(first(&json!({ "values": { "a": 1 }, "private": { "b": 2 } }))).await;
    for call in [get(), get().customer("ann"), get().staff("s1")] {
        let answer = function.send(call).await;
        assert_eq!((answer.status, &answer.body), (200, &json!({ "values": { "a": 1 }, "version": 1 })));
    }
    assert_eq!(function.version().await, 1);
}

#[tokio::test]
async fn values_keep_every_digit_of_the_request() {
    let shop = Shop::open().await;
    let function = shop.function();
    let text = r#"{"values":{"rate":1.10,"big":123456789012345678901234567890,"tiny":5e-324,"#.to_owned()
        + r##""text":"ä\u0000\ud83d\ude00 \"#%/$","nothing":null,"":1"##;
    // The name of a setting follows the rules of an id, so it cannot be empty.
    let refused = function.send(first(&Value::Null).body(text.clone() + "}}")).await;
    assert_eq!((refused.status, refused.pointers()), (422, vec!["/values"]));
    let text = text.replace(r#","":1"#, "}}");
    function.set(first(&Value::Null).body(text.clone())).await;
    let event = serde_json::from_value(get().event()).unwrap();
    let raw = settings::routes().answer(&function.app, event).await.body.unwrap();
    let raw = String::from_utf8(raw.to_vec()).unwrap();
    for part in ["1.10", "123456789012345678901234567890", "5e-324", r##""ä\u0000\ud83d\ude00 \"#%/$""##] {
        assert!(raw.contains(part), "{part} in {raw}");
    }
}

#[tokio::test]
async fn invalid_settings_are_refused_and_the_largest_are_accepted() {
    let shop = Shop::open().await;
    let function = shop.function();
    let refused = async |body: Value, pointers: &[&str]| {
        let answer = function.send(first(&body)).await;
        assert_eq!((answer.status, answer.code(), answer.pointers()), (422, Some("invalid_body"), pointers.to_vec()));
    };
    refused(json!({ "values": { "x".repeat(129): 1 } }), &["/values"]).await;
    refused(json!({ "values": {}, "private": { "a\u{7}": 1 } }), &["/private"]).await;
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    refused(json!({ "values": { "deep": nested(17) } }), &["/values"]).await;
    // The overhead is `{"n":"…"}` and `{"p":""}` around the text.
    let sized = |bytes: usize| json!({ "values": { "n": "x".repeat(bytes - 16) }, "private": { "p": "" } });
    refused(sized(32_769), &["/values"]).await;
    assert_eq!(function.send(first(&Value::Null).body("{\"values\":{\"a\":1,\"a\":2}}")).await.status, 400);
    assert_eq!(function.send(first(&Value::Null).body("{\"values\":{\"a\":1e999}}")).await.status, 422);
    assert_eq!(function.send(get()).await.version(), Some(0));
    function.set(first(&sized(32_768))).await;
    function.set(change(&json!({ "values": { "x".repeat(128): nested(16) }, "private": null }), 1)).await;
    assert_eq!(function.send(whole()).await.body["private"], json!({}));
}

#[tokio::test]
async fn the_limits_of_orders_are_checked_and_may_be_left_out() {
    let shop = Shop::open().await;
    let function = shop.function();
    for (wrong, pointer) in [
        (json!(3), "/values/orders"),
        (json!({ "pending_minutes": 0 }), "/values/orders/pending_minutes"),
        (json!({ "pending_minutes": 43_201 }), "/values/orders/pending_minutes"),
        (json!({ "pending_minutes": "60" }), "/values/orders/pending_minutes"),
        (json!({ "max_pending_orders": 1.5 }), "/values/orders/max_pending_orders"),
        (json!({ "max_pending_orders": 1_001 }), "/values/orders/max_pending_orders"),
        (json!({ "max_pending_quantity": -1 }), "/values/orders/max_pending_quantity"),
        (json!({ "max_pending_quantity": 1_000_000_001 }), "/values/orders/max_pending_quantity"),
        (json!({ "max_pending_lines": 499 }), "/values/orders/max_pending_lines"),
        (json!({ "max_pending_lines": 500_001 }), "/values/orders/max_pending_lines"),
        (json!({ "max_orders_per_day": 0 }), "/values/orders/max_orders_per_day"),
        (json!({ "max_orders_per_day": 1_000_001 }), "/values/orders/max_orders_per_day"),
        (json!({ "shipping_tax": "goods" }), "/values/orders/shipping_tax"),
        (json!({ "max_pending": 1 }), "/values/orders/max_pending"),
    ] {
        let refused = function.send(first(&json!({ "values": { "orders": wrong, "banner": "Ice" } }))).await;
        assert_eq!((refused.status, refused.pointers()), (422, vec![pointer]), "{}", refused.body);
    }
    let misplaced = function.send(first(&json!({ "values": {}, "private": { "orders": {} } }))).await;
    assert_eq!((misplaced.status, misplaced.pointers()), (422, vec!["/private"]), "{}", misplaced.body);
    assert_eq!(function.send(get()).await.version(), Some(0));

    let limits = json!({ "pending_minutes": 43_200, "max_pending_orders": 1, "max_pending_quantity": 1_000_000_000,
                         "max_pending_lines": 500_000, "max_orders_per_day": 1_000_000, "shipping_tax": "apportioned" });
    for (version, orders) in (0..).zip([json!({}), json!({ "max_pending_orders": 20 }), limits]) {
        let set = function.send(change(&json!({ "values": { "orders": orders, "banner": "Ice" } }), version)).await;
        assert_eq!((set.status, &set.body["values"]["orders"]), (200, &orders), "{}", set.body);
    }
}

#[tokio::test]
async fn the_maintenance_mode_is_checked_and_belongs_to_the_public_values() {
    let shop = Shop::open().await;
    let function = shop.function();
    for (wrong, pointer) in [
        (json!(true), "/values/maintenance"),
        (json!({}), "/values/maintenance/on"),
        (json!({ "on": 1 }), "/values/maintenance/on"),
        (json!({ "on": null }), "/values/maintenance/on"),
        (json!({ "on": true, "retry_after_seconds": 0 }), "/values/maintenance/retry_after_seconds"),
        (json!({ "on": true, "retry_after_seconds": 86_401 }), "/values/maintenance/retry_after_seconds"),
        (json!({ "on": true, "until": "noon" }), "/values/maintenance/until"),
    ] {
        let refused = function.send(first(&json!({ "values": { "maintenance": wrong } }))).await;
        assert_eq!((refused.status, refused.pointers()), (422, vec![pointer]), "{}", refused.body);
    }
    let misplaced = function.send(first(&json!({ "values": {}, "private": { "maintenance": { "on": true } } }))).await;
    assert_eq!((misplaced.status, misplaced.pointers()), (422, vec!["/private"]), "{}", misplaced.body);
    assert_eq!(function.send(get()).await.version(), Some(0));

    // A change may contain `maintenance` and `orders` together. During maintenance the settings can
    // still be changed, so that staff can end the maintenance.
    let orders = json!({ "max_pending_orders": 20 });
    for (version, mode) in (0..).zip([json!({ "on": true }), json!({ "on": true, "retry_after_seconds": 86_400 })]) {
        let set = change(&json!({ "values": { "maintenance": mode, "orders": orders } }), version);
        let set = function.send(set).await;
        assert_eq!((set.status, &set.body["values"]["maintenance"]), (200, &mode), "{}", set.body);
        assert_eq!(function.send(get()).await.body["values"]["maintenance"], mode);
    }
    assert_eq!(function.send(change(&json!({ "values": {} }), 2)).await.status, 200);
}
