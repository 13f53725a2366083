//! Tests that no response shows whether another customer has an item.

use http_api::sample::Call;
use serde_json::json;

use crate::shop::{Shop, if_match};

/// Builds bob's valid request to a route, about the customer or the session with this id.
fn valid(route: &'static str, id: &str) -> Call {
    let body = match route {
        "PATCH /v1/customers/{id}" => json!({ "name": "Other" }),
        "PUT /v1/customers/{id}/addresses/{name}" => {
            json!({ "name": "Ann", "line1": "1 Road", "city": "Doha", "country": "QA" })
        }
        "PUT /v1/customers/{id}/email/verification" => json!({ "code": "000000" }),
        "POST /v1/customers/{id}/sessions" => json!({ "device": "phone" }),
        "PUT /v1/customers/{id}/cart/items/{product}" => json!({ "quantity": 2 }),
        "POST /v1/customers/{id}/cart/claim" => json!({ "cart_id": "guest", "cart_token": "token" }),
        _ => json!({}),
    };
    let call = Call::new(route).json(&body).path("id", id).path("name", "home").path("product", "p0");
    if_match(call, 1).customer("bob")
}

#[tokio::test]
async fn the_response_to_another_customer_is_the_same_for_existing_and_missing_items() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    shop.customer("bob").await;
    shop.product("p0").await;
    shop.cart("ann", 1, 60).await;
    shop.session("ann", "session-1", 60).await;
    let routes = customers::routes();
    for route in routes.keys().filter(|route| route.contains("{id}") && !route.contains("/v1/carts")) {
        let [theirs, none] =
            if route.contains("/sessions/{id}") { ["session-1", "no-session"] } else { ["ann", "nobody"] };
        let [theirs, none] = [shop.send(valid(route, theirs)).await, shop.send(valid(route, none)).await];
        assert_eq!((theirs.status, theirs.body), (404, none.body), "{route}");
    }
}
