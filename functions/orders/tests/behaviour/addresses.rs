//! Tests of the addresses of orders.

use http_api::sample::Call;
use key_schema::address::PostalAddress;
use key_schema::customer;
use key_schema::id::CustomerId;
use key_schema::instant::Instant;
use key_schema::order::addresses;
use serde_json::{Value, json};

use crate::shop::{Shop, checkout, errors, moved, order, staff_order};

fn address() -> Value {
    json!({
        "name": "Ann", "line1": "Limmatquai 1", "line2": "3rd floor", "city": "Zürich", "region": "ZH",
        "postal_code": "8001", "country": "CH", "phone": "+41 44 000 00 00",
    })
}

fn with(mut body: Value, field: &str, value: Value) -> Value {
    body[field] = value;
    body
}

/// Opens a shop with tea, where ann has the address `home` in her profile.
async fn shop() -> Shop {
    let shop = Shop::open().await;
    shop.product("tea", 1_000).await;
    save(&shop, "home", &saved("Bahnhofstrasse 1", "Bern", "3011")).await;
    shop
}

/// Returns a Swiss address of a profile.
fn saved(line1: &str, city: &str, postal_code: &str) -> PostalAddress {
    PostalAddress {
        name: "Ann at home".into(),
        line1: line1.into(),
        line2: None,
        city: city.into(),
        region: None,
        postal_code: Some(postal_code.into()),
        country: "CH".parse().unwrap(),
        phone: None,
    }
}

async fn save(shop: &Shop, name: &str, address: &PostalAddress) {
    let ann = CustomerId::new("ann").unwrap();
    let put = customer::put_address(&ann, &name.parse().unwrap(), address, None, Instant::now()).unwrap();
    shop.own().update(&put).await.unwrap().unwrap();
}

fn get(order: &Value) -> Call {
    Call::new("GET /v1/orders/{id}").path("id", order["id"].as_str().unwrap()).customer("ann")
}

async fn read(shop: &Shop, order: &Value) -> Value {
    shop.send(get(order)).await.body
}

#[tokio::test]
async fn an_order_keeps_the_addresses_that_it_was_placed_with() {
    let shop = shop().await;
    let billing = with(address(), "name", json!("Ann's company"));
    let body = json!({
        "customer_id": "ann", "lines": [{ "product_id": "tea", "quantity": 1 }],
        "shipping_address": address(), "billing_address": billing,
    });
    let attempt = || order(&[("tea", 1)], "k").json(&body);
    let placed = shop.send(attempt()).await;
    assert_eq!(placed.status, 201, "{}", placed.body);
    assert_eq!((&placed.body["shipping_address"], &placed.body["billing_address"]), (&address(), &billing));
    assert_eq!(shop.send(attempt()).await.body, placed.body, "a repeated request gets the same response");
    assert_eq!(read(&shop, &placed.body).await, placed.body);
    let paid = shop.send(moved(&placed.body, "paid")).await;
    assert_eq!((paid.status, &paid.body["shipping_address"]), (200, &address()), "{}", paid.body);

    let list = Call::new("GET /v1/customers/{id}/orders").path("id", "ann").customer("ann");
    let list = shop.send(list).await.body;
    assert_eq!(list["items"][0]["destination"], json!({ "country": "CH", "city": "Zürich" }), "{list}");
}

#[tokio::test]
async fn the_list_of_a_customers_orders_in_one_status_has_all_of_them_over_all_pages() {
    let shop = shop().await;
    let mut paid = Vec::new();
    for n in 0..7 {
        let placed = shop.send(order(&[("tea", 1)], &format!("k{n}"))).await.body;
        if n % 3 == 0 {
            assert_eq!(shop.send(moved(&placed, "paid")).await.status, 200);
            paid.insert(0, placed["id"].clone());
        }
    }
    let list = Call::new("GET /v1/customers/{id}/orders").path("id", "ann").query("status", "paid").customer("ann");
    let seen: Vec<Value> = shop.all(&list, 1).await.0.iter().map(|order| order["id"].clone()).collect();
    assert_eq!(seen, paid);
}

#[tokio::test]
async fn the_name_of_an_address_stands_for_the_address_at_the_time_of_the_order() {
    let shop = shop().await;
    shop.fill_cart(&[("tea", 1)]).await;
    let placed = shop.check_out(&json!({ "shipping_address": "home" })).await;
    let expected = json!({
        "name": "Ann at home", "line1": "Bahnhofstrasse 1", "city": "Bern", "postal_code": "3011", "country": "CH",
    });
    assert_eq!((placed.status, &placed.body["shipping_address"]), (201, &expected), "{}", placed.body);
    assert_eq!(placed.body.get("billing_address"), None);

    save(&shop, "home", &saved("Elsewhere 2", "Basel", "4001")).await;
    assert_eq!(read(&shop, &placed.body).await["shipping_address"], expected);
}

#[tokio::test]
async fn no_order_is_placed_with_an_unusable_address() {
    let shop = shop().await;
    shop.fill_cart(&[("tea", 1)]).await;
    for (body, pointer, detail) in [
        (
            json!({ "shipping_address": "office" }),
            "/shipping_address",
            "is not the name of one of the customer's addresses",
        ),
        (
            json!({ "shipping_address": with(address(), "postal_code", Value::Null) }),
            "/shipping_address/postal_code",
            "is required in this country",
        ),
        (
            json!({ "shipping_address": with(address(), "postal_code", json!("80011")) }),
            "/shipping_address/postal_code",
            "is not a postal code of this country",
        ),
        (
            json!({ "shipping_address": address(), "billing_address": "office" }),
            "/billing_address",
            "is not the name of one of the customer's addresses",
        ),
        (json!({ "billing_address": address() }), "/shipping_address", "is required"),
        (
            json!({ "shipping_address": with(address(), "country", json!("Switzerland")) }),
            "/shipping_address/country",
            "must be an ISO 3166-1 alpha-2 code in upper case, such as DE",
        ),
        (
            json!({ "shipping_address": with(address(), "line1", json!("a\nb")) }),
            "/shipping_address/line1",
            "must not contain control characters",
        ),
        (
            json!({ "shipping_address": with(address(), "name", json!("\u{200B} ")) }),
            "/shipping_address/name",
            "must contain a visible character",
        ),
        (
            json!({ "shipping_address": with(address(), "planet", json!("Earth")) }),
            "/shipping_address/planet",
            "is not a field of this object",
        ),
    ] {
        let refused = shop.check_out(&body).await;
        assert_eq!((refused.status, refused.code()), (422, Some("invalid_body")), "{}", refused.body);
        assert_eq!(errors(&refused), [(pointer, "", detail)], "{body}");
    }
    assert_eq!((shop.has_cart().await, shop.stock("tea").await), (true, 1_000));
}

#[tokio::test]
async fn a_setting_requires_an_address_in_orders_by_customers_but_not_by_staff() {
    let shop = shop().await;
    shop.limit(&json!({ "shipping_address_required": true })).await;
    shop.fill_cart(&[("tea", 1)]).await;
    let refused = shop.send(checkout().json(&json!({}))).await;
    assert_eq!((refused.status, errors(&refused)), (422, vec![("/shipping_address", "", "is required")]));
    assert_eq!(shop.send(order(&[("tea", 1)], "k")).await.status, 422);
    assert_eq!(shop.send(staff_order(&[("tea", 1)], "k", &json!({}))).await.status, 201);
    assert_eq!(shop.check_out(&json!({ "shipping_address": "home" })).await.status, 201);
}

/// An order with 60 lines takes several transactions.
#[tokio::test]
async fn a_large_order_has_its_addresses_too() {
    let shop = shop().await;
    let products: Vec<String> = (0..60).map(|n| format!("p{n}")).collect();
    for product in &products {
        shop.product(product, 1).await;
    }
    let lines: Vec<(&str, u64)> = products.iter().map(|product| (product.as_str(), 1)).collect();
    let placed = shop.send(staff_order(&lines, "k", &json!({ "shipping_address": address() }))).await;
    assert_eq!((placed.status, &placed.body["shipping_address"]), (201, &address()), "{}", placed.body);
    assert_eq!(read(&shop, &placed.body).await["shipping_address"], address());
}

#[tokio::test]
async fn an_order_without_its_addresses_shows_country_and_city() {
    let shop = shop().await;
    let placed = shop.send(staff_order(&[("tea", 1)], "k", &json!({ "shipping_address": address() }))).await;
    let seen = shop.send(get(&placed.body)).await.header("etag").unwrap().to_owned();
    let again = || get(&placed.body).header("if-none-match", &seen);
    assert_eq!(shop.send(again()).await.status, 304);
    let ann = CustomerId::new("ann").unwrap();
    let all = shop.own().query(&addresses::of_customer(&ann).unwrap()).await.unwrap().items;
    assert_eq!(all.len(), 1);
    let erased = shop.own().batch_write(&addresses::erase(all.iter().map(|item| &item.data)).unwrap()).await;
    erased.unwrap();
    let left = shop.send(again()).await;
    let shown = json!({ "country": "CH", "city": "Zürich" });
    assert_eq!((left.status, &left.body["shipping_address"]), (200, &shown), "an erasure leaves the version");
}

#[tokio::test]
async fn an_order_to_a_country_without_postal_codes_has_none() {
    let shop = shop().await;
    let doha = json!({ "name": "Ann", "line1": "Street 1", "city": "Doha", "country": "QA" });
    shop.fill_cart(&[("tea", 1)]).await;
    let placed = shop.check_out(&json!({ "shipping_address": doha })).await;
    assert_eq!((placed.status, &placed.body["shipping_address"]), (201, &doha), "{}", placed.body);
}

#[tokio::test]
async fn the_longest_name_can_be_a_recipient_and_invisible_characters_are_removed() {
    let shop = shop().await;
    let long = "n".repeat(200);
    for (sent, stored) in [(long.as_str(), long.as_str()), ("A\u{202E}n\u{200B}n", "Ann")] {
        let body = json!({ "shipping_address": with(address(), "name", json!(sent)) });
        let placed = shop.send(staff_order(&[("tea", 1)], stored, &body)).await;
        assert_eq!(placed.status, 201, "{}", placed.body);
        assert_eq!(placed.body["shipping_address"]["name"], stored);
    }
    let mut hidden = with(address(), "postal_code", json!("80\u{200B}01"));
    hidden["phone"] = json!("+41 44\u{202E} 1");
    let placed = shop.send(staff_order(&[("tea", 1)], "hidden", &json!({ "shipping_address": hidden }))).await;
    let shown = &placed.body["shipping_address"];
    assert_eq!((&shown["postal_code"], &shown["phone"]), (&json!("8001"), &json!("+41 44 1")));
    let body = json!({ "shipping_address": with(address(), "name", json!("n".repeat(201))) });
    let refused = shop.send(staff_order(&[("tea", 1)], "k", &body)).await;
    assert_eq!((refused.status, refused.pointers()), (422, vec!["/shipping_address/name"]));
}
