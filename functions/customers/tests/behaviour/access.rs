//! Tests of permissions. One test compares the routes in the code with those in the template.

use std::collections::BTreeSet;

use fixture::seed;
use http_api::sample::Call;
use key_schema::guest_cart::{CartToken, GuestCart};
use key_schema::id::GuestCartId;
use key_schema::instant::Instant;
use serde_json::{Value, json};

use crate::shop::{Shop, if_match, sign_up};

/// Builds a valid request to a route for a customer with one address, product and session.
fn valid(route: &'static str, customer: &str) -> Call {
    let body = match route {
        "POST /v1/customers" => json!({ "email": "new@example.com", "username": "new", "name": "New" }),
        "PATCH /v1/customers/{id}" => json!({ "name": "Other" }),
        "PUT /v1/customers/{id}/addresses/{name}" => json!({ "street": "1 Road", "city": "Ulm", "country": "DE" }),
        // Ann's email address is verified, so the route accepts any code.
        "PUT /v1/customers/{id}/email/verification" => json!({ "code": "000000" }),
        "POST /v1/customers/{id}/sessions" => json!({ "device": "phone" }),
        "PUT /v1/customers/{id}/cart/items/{product}" => json!({ "quantity": 2 }),
        "POST /v1/customers/{id}/cart/claim" => json!({ "cart_id": guest_cart().id, "cart_token": token().as_str() }),
        _ => json!({}),
    };
    let mut call = Call::new(route).json(&body);
    for (name, value) in [("name", "home"), ("product", "p0")] {
        if route.contains(&format!("{{{name}}}")) {
            call = call.path(name, value);
        }
    }
    if route.contains("/sessions/{id}") {
        call = call.path("id", "session-1");
    } else if route.contains("{id}") {
        call = call.path("id", customer);
    }
    if route == "GET /v1/customers" {
        call = call.query("tier", "bronze");
    }
    // Requests for addresses need no If-Match. Each request increases the version, so a second
    // request with If-Match 1 would fail.
    if route.contains("addresses") { call } else { if_match(call, 1) }
}

/// Returns the routes that need a sign-in. [`crate::guest_carts`] tests the routes of guest carts,
/// which need no sign-in.
fn routes() -> Vec<&'static str> {
    customers::routes().keys().filter(|route| !route.contains("/v1/carts")).collect()
}

fn token() -> CartToken {
    CartToken::new([7; 32])
}

fn guest_cart() -> GuestCart {
    GuestCart {
        id: GuestCartId::new("guest").unwrap(),
        token_hash: token().hash(),
        expires_at: Instant::now().plus_seconds(60),
        lines: [].into(),
        claim: None,
    }
}

async fn shop_with_ann() -> Shop {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    shop.customer("bob").await;
    shop.product("p0").await;
    shop.cart("ann", 1, 60).await;
    shop.session("ann", "session-1", 60).await;
    shop.put(&seed::stored(guest_cart())).await;
    shop
}

async fn state(shop: &Shop) -> Vec<Value> {
    let mut all = Vec::new();
    for route in ["GET /v1/customers/{id}", "GET /v1/customers/{id}/sessions", "GET /v1/customers/{id}/cart"] {
        all.push(shop.send(valid(route, "ann").staff("s")).await.body);
    }
    all
}

#[tokio::test]
async fn every_route_answers_401_without_a_token() {
    let shop = shop_with_ann().await;
    for route in routes() {
        for call in [valid(route, "ann"), valid(route, "not\u{7}an id"), Call::new(route).body("{")] {
            let answer = shop.send(call).await;
            assert_eq!((answer.status, answer.code()), (401, Some("unauthenticated")), "{route}");
        }
    }
}

#[tokio::test]
async fn another_customers_items_are_not_found_and_stay_unchanged() {
    let shop = shop_with_ann().await;
    let before = state(&shop).await;
    for route in routes().into_iter().filter(|route| route.contains("{id}")) {
        let answer = shop.send(valid(route, "ann").customer("bob")).await;
        assert_eq!((answer.status, answer.code()), (404, Some("not_found")), "{route}");
    }
    assert_eq!(state(&shop).await, before);
}

#[tokio::test]
async fn the_response_to_another_customer_is_the_same_for_existing_and_missing_items() {
    let shop = shop_with_ann().await;
    for route in routes().into_iter().filter(|route| route.contains("{id}")) {
        let theirs = shop.send(valid(route, "ann").customer("bob")).await;
        let mut absent = valid(route, "nobody").customer("bob");
        if route.contains("/sessions/{id}") {
            // A call keeps the first value of a parameter, so the test builds a new call.
            absent = Call::new(route).path("id", "no-session").json(&json!({})).customer("bob");
        }
        assert_eq!(shop.send(absent).await.body, theirs.body, "{route}");
    }
}

#[tokio::test]
async fn lists_over_all_customers_are_for_staff() {
    let shop = shop_with_ann().await;
    let answer = shop.send(valid("GET /v1/customers", "ann").customer("ann")).await;
    assert_eq!((answer.status, answer.code()), (403, Some("forbidden")));
}

#[tokio::test]
async fn staff_may_use_every_route() {
    let shop = shop_with_ann().await;
    // These two routes remove items that other routes need.
    let (empty, last) = ("DELETE /v1/customers/{id}/cart", "DELETE /v1/customers/{id}");
    for route in routes().into_iter().filter(|route| ![empty, last].contains(route)).chain([empty]) {
        let answer = shop.send(valid(route, "ann").staff("s")).await;
        assert!((200..300).contains(&answer.status), "{route}: {} {}", answer.status, answer.body);
    }
    let version = shop.read("ann").await.version().unwrap();
    let erase = if_match(Call::new(last).path("id", "ann").staff("s"), version);
    assert_eq!(shop.send(erase).await.status, 204);
}

#[tokio::test]
async fn an_id_may_have_every_character_that_a_path_can_carry() {
    let shop = Shop::open().await;
    for (n, id) in ["a#b", "50$", "a~b c", "Ωmega", "山田"].into_iter().enumerate() {
        let created = shop.send(sign_up(id, &format!("{n}@example.com"), id)).await;
        assert_eq!(created.status, 201, "{}", created.body);
        assert_eq!(shop.read(id).await.body["id"], id);
    }
    for route in routes().into_iter().filter(|route| route.contains("{id}")) {
        for bad in ["a\u{7}b", "\u{85}", "a/b", "a?b", "50%", "..", &"x".repeat(129)] {
            let mut call = Call::new(route).path("id", bad).staff("s").json(&json!({}));
            for name in ["name", "product"] {
                call = call.path(name, "x");
            }
            let answer = shop.send(if_match(call, 1)).await;
            assert_eq!(answer.status, 422, "{route} {bad:?}");
        }
    }
    for (route, name) in [
        ("PUT /v1/customers/{id}/addresses/{name}", "name"),
        ("DELETE /v1/customers/{id}/addresses/{name}", "name"),
        ("GET /v1/customers/{id}/cart/items/{product}", "product"),
        ("PUT /v1/customers/{id}/cart/items/{product}", "product"),
        ("DELETE /v1/customers/{id}/cart/items/{product}", "product"),
    ] {
        let call = Call::new(route).path("id", "Ωmega").path(name, "a\nb").customer("Ωmega").json(&json!({}));
        let answer = shop.send(call).await;
        assert_eq!((answer.status, answer.code()), (422, Some("invalid_id")), "{route}");
    }
}

#[test]
fn the_template_has_the_routes_of_the_code_and_only_routes_of_guest_carts_need_no_token() {
    let template = fixture::template();
    let given = template.routes.iter().filter(|route| route.function == "Customers");
    let keys: BTreeSet<String> = given.clone().map(template::Route::key).collect();
    assert_eq!(customers::routes().keys().map(str::to_owned).collect::<BTreeSet<_>>(), keys);
    for route in given {
        assert_eq!(route.authorizer.is_none(), route.path.starts_with("/v1/carts"), "{}", route.key());
    }
}
